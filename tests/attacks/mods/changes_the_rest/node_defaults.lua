core.nodedef_default.stack_max = 5
