core.override_item("default:pick_steel", {tool_capabilities = {
	full_punch_interval = 0/0, max_drop_level = 1,
	groupcaps = {cracky = {times = {[1] = 1/0, [2] = 0/0, [3] = -1/0}, uses = 20, maxlevel = 2}},
	damage_groups = {fleshy = 4},
}})
