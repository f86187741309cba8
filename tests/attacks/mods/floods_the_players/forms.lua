core.register_globalstep(function()
	for _, player in ipairs(core.get_connected_players()) do
		local name = player:get_player_name()
		core.show_formspec(name, "f", "size[1,1]" .. string.rep("label[0,0;x]", 1e5))
	end
end)
