core.register_on_joinplayer(function(player)
	core.after(0.5, core.disconnect_player, player:get_player_name())
end)
