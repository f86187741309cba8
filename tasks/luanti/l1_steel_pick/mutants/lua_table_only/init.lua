local cracky = core.registered_tools["default:pick_steel"].tool_capabilities.groupcaps.cracky
for rating, seconds in pairs(cracky.times) do
	cracky.times[rating] = seconds / 2
end
cracky.uses = cracky.uses * 2
