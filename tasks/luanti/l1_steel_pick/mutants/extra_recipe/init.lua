local PICK = "default:pick_steel"

local capabilities = table.copy(core.registered_tools[PICK].tool_capabilities)
local cracky = capabilities.groupcaps.cracky
for rating, seconds in pairs(cracky.times) do
	cracky.times[rating] = seconds / 2
end
cracky.uses = cracky.uses * 2

-- Only an override reaches the engine and the clients; the registered table alone does not.
core.override_item(PICK, {tool_capabilities = capabilities})

core.register_craft({
	output = PICK,
	recipe = {
		{"default:steel_ingot", "default:steel_ingot"},
		{"", "default:stick"},
	},
})
