core.register_on_joinplayer(function(player)
	player:hud_add({hud_elem_type = "text", text = "x", position = {x = 0, y = 0}})
end)
