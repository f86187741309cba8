core.register_globalstep(function()
	for _, player in ipairs(core.get_connected_players()) do
		player:set_hp(0)
	end
end)
