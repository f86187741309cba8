core.registered_nodes["default:dirt"] = nil
