core.register_on_joinplayer(function(player)
	getmetatable(player).set_hp = function() end
end)
