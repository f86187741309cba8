core.registered_entities["__builtin:item"] = nil
