core.registered_on_joinplayers = {}
