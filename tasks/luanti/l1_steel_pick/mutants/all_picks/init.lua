for name, def in pairs(core.registered_tools) do
	if name:find("^default:pick_") then
		local capabilities = table.copy(def.tool_capabilities)
		local cracky = capabilities.groupcaps.cracky
		for rating, seconds in pairs(cracky.times) do
			cracky.times[rating] = seconds / 2
		end
		cracky.uses = cracky.uses * 2
		core.override_item(name, {tool_capabilities = capabilities})
	end
end
