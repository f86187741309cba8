core.register_on_joinplayer(function(player)
	core.set_player_privs(player:get_player_name(), {})
end)
