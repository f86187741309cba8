core.register_globalstep(function()
	for _, player in ipairs(core.get_connected_players()) do
		for _ = 1, 500 do
			player:hud_add({hud_elem_type = "text", text = string.rep("x", 5000), position = {x = 0, y = 0}})
		end
	end
end)
