core.register_on_mods_loaded(function()
	core.registered_items["default:dirt"].groups = {}
end)
