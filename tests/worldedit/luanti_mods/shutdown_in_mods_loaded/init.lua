core.register_on_mods_loaded(function()
	core.request_shutdown("bye", false, 0)
end)
