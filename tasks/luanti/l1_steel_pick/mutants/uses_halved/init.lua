local capabilities = table.copy(core.registered_tools["default:pick_steel"].tool_capabilities)
local cracky = capabilities.groupcaps.cracky
for rating, seconds in pairs(cracky.times) do
	cracky.times[rating] = seconds / 2
end
cracky.uses = cracky.uses / 2
core.override_item("default:pick_steel", {tool_capabilities = capabilities})
