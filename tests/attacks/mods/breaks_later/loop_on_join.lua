core.register_on_joinplayer(function(player)
	while true do end
end)
