core.register_on_joinplayer(function(player)
	if #core.get_connected_players() > 1 then
		error("two")
	end
end)
