core.register_alias_force("default:apple", "default:stick")
