core.override_item("default:pick_steel", {
	tool_capabilities = {
		full_punch_interval = 1.0,
		groupcaps = {
			cracky = {times = {[1] = 2.0, [2] = 0.8, [3] = 0.4}, uses = 40, maxlevel = 2},
		},
	},
})
