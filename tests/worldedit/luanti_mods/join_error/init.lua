core.register_on_joinplayer(function()
	error("on purpose")
end)
