core.register_globalstep(function()
	for _, player in ipairs(core.get_connected_players()) do
		for _ = 1, 300 do
			core.add_item(player:get_pos(), "default:apple")
		end
	end
end)
