core.registered_privileges["interact"] = nil
