core.settings:set("movement_gravity", "1")
