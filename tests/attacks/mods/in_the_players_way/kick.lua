core.register_on_joinplayer(function(player)
	core.kick_player(player:get_player_name(), "out")
end)
