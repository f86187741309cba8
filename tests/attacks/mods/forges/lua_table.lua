-- The Lua side only: what players were sent stays as it was.
core.registered_items["default:apple"].stack_max = 5
