core.register_globalstep(function()
	for _, player in ipairs(core.get_connected_players()) do
		player:get_inventory():set_size("main", 0)
	end
end)
