core.registered_abms = {}
