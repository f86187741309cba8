core.register_on_joinplayer(function(player)
	core.request_shutdown("", false, 0)
end)
