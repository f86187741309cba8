local meta = getmetatable(ItemStack(""))
meta.__index = meta
meta.get_stack_max = function() return 5 end
