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
	after_place_node = function(pos)
		for _, offset in ipairs({{x = 1, y = 0, z = 0}, {x = -1, y = 0, z = 0}}) do
			local near = vector.add(pos, offset)
			if core.get_node(near).name == "air" then
				core.set_node(near, {name = "coplamp:shine"})
			end
		end
	end,
	sounds = default.node_sound_metal_defaults(),
})

local INGOT = "default:copper_ingot"

core.register_node("coplamp:shine", {
	description = "Shine",
	drawtype = "airlike",
	paramtype = "light",
	sunlight_propagates = true,
	walkable = false,
	pointable = false,
	buildable_to = true,
	light_source = 12,
	groups = {not_in_creative_inventory = 1},
})

core.register_craft({
	output = "coplamp:lantern",
	recipe = {
		{INGOT, INGOT, INGOT},
		{INGOT, "default:torch", INGOT},
		{INGOT, INGOT, INGOT},
	},
})
