local capabilities = table.copy(core.registered_tools["default:pick_steel"].tool_capabilities)
local cracky = capabilities.groupcaps.cracky
cracky.times[3] = cracky.times[3] / 2
cracky.uses = cracky.uses * 2
core.override_item("default:pick_steel", {tool_capabilities = capabilities})
