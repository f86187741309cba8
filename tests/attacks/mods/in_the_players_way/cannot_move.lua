core.register_on_joinplayer(function(player)
	player:set_physics_override({speed = 0, jump = 0, gravity = 0})
end)
