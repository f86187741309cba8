local since = {}

core.register_abm({
	label = "drought: saplings without water",
	nodenames = {"default:sapling"},
	interval = 2,
	chance = 1,
	catch_up = false,
	action = function(pos)
		local key = core.hash_node_position(pos)
		if core.find_node_near(pos, 3, {"group:water"}, true) then
			since[key] = nil
			return
		end
		local now = core.get_gametime()
		if not since[key] then
			since[key] = now
		elseif now - since[key] >= 60 then
			since[key] = nil
			core.set_node(pos, {name = "default:dry_shrub"})
		end
	end,
})
