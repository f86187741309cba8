core.register_on_mods_loaded(function() error("late") end)
