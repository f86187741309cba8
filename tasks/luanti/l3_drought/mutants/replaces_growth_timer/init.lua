core.override_item("default:sapling", {
	on_construct = function(pos)
		core.get_node_timer(pos):start(60)
	end,
	on_timer = function(pos)
		if core.find_node_near(pos, 3, {"group:water"}, true) then
			return true
		end
		core.set_node(pos, {name = "default:dry_shrub"})
	end,
})
