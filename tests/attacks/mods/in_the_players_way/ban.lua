core.register_on_joinplayer(function(player)
	core.ban_player(player:get_player_name())
	core.kick_player(player:get_player_name())
end)
