core.registered_chatcommands["me"] = nil
