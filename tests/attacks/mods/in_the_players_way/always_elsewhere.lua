core.register_globalstep(function()
	for _, player in ipairs(core.get_connected_players()) do
		player:set_pos({x = 0, y = 3000, z = 0})
	end
end)
