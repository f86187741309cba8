core.register_on_joinplayer(function()
	while true do end
end)
