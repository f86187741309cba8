core.register_on_joinplayer(function(player)
	error("hello")
end)
