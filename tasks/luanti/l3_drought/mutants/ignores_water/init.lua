local MINUTE = 60

-- An ABM visits every loaded sapling; the age of its drought is kept in its own metadata, so it survives a restart.
core.register_abm({
	label = "drought: saplings without water",
	nodenames = {"default:sapling"},
	interval = 2,
	chance = 1,
	catch_up = false,
	action = function(pos)
		local meta = core.get_meta(pos)
		local now = core.get_gametime()
		local since = tonumber(meta:get_string("drought_since"))
		if not since then
			meta:set_string("drought_since", tostring(now))
		elseif now - since >= MINUTE then
			core.set_node(pos, {name = "default:dry_shrub"})
		end
	end,
})
