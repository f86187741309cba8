table.remove(core.registered_abms)
