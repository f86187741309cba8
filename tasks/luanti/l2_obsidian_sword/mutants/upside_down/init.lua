local BLOWS = 60

core.register_tool("obsword:sword_obsidian", {
	description = "Obsidian Sword",
	inventory_image = "obsword_sword_obsidian.png",
	tool_capabilities = {
		full_punch_interval = 0.8,
		max_drop_level = 1,
		groupcaps = {
			snappy = {times = {[1] = 2.2, [2] = 1.0, [3] = 0.35}, uses = 30, maxlevel = 3},
		},
		damage_groups = {fleshy = 10},
		punch_attack_uses = BLOWS,
	},
	sound = {breaks = "default_tool_breaks"},
	groups = {sword = 1},
})

core.register_craft({
	output = "obsword:sword_obsidian",
	recipe = {
		{"default:stick"},
		{"default:obsidian"},
		{"default:obsidian"},
	},
})
