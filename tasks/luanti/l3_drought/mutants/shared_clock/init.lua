core.register_abm({
	label = "drought: saplings without water",
	nodenames = {"default:sapling"},
	interval = 60,
	chance = 1,
	catch_up = false,
	action = function(pos)
		if not core.find_node_near(pos, 3, {"group:water"}, true) then
			core.set_node(pos, {name = "default:dry_shrub"})
		end
	end,
})
