rawset(core.registered_craftitems["default:apple"] or core.registered_nodes["default:apple"], "stack_max", 5)
