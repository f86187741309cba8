core.register_node("coplamp:lantern", {
	description = "Copper Lantern",
	drawtype = "nodebox",
	node_box = {
		type = "wallmounted",
		wall_bottom = {-0.25, -0.5, -0.25, 0.25, 0.2, 0.25},
		wall_top = {-0.25, -0.2, -0.25, 0.25, 0.5, 0.25},
		wall_side = {-0.5, -0.35, -0.25, 0, 0.35, 0.25},
	},
	tiles = {"coplamp_lantern.png"},
	inventory_image = "coplamp_lantern.png",
	wield_image = "coplamp_lantern.png",
	paramtype = "light",
	paramtype2 = "wallmounted",
	sunlight_propagates = true,
	walkable = false,
	light_source = 13,
	groups = {cracky = 3, oddly_breakable_by_hand = 3, attached_node = 1},
	sounds = default.node_sound_metal_defaults(),
})

local INGOT = "default:copper_ingot"

core.register_craft({
	output = "coplamp:lantern",
	recipe = {
		{INGOT, INGOT, INGOT},
		{INGOT, "default:torch", INGOT},
		{INGOT, INGOT, INGOT},
	},
})
