core.settings:set("enable_damage", "false")
