setmetatable(core.registered_items, {__index = function() return {stack_max = 5} end})
