core.register_on_mods_loaded(function() core.request_shutdown("", false, 0) end)
