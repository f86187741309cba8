core.registered_items["default:dirt"] = nil
