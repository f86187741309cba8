core.register_on_joinplayer(function()
	core.registered_items["default:dirt"].groups = {}
end)
