core.register_on_prejoinplayer(function()
	return "nobody comes in"
end)
