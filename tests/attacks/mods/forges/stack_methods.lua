getmetatable(ItemStack("")).get_stack_max = function() return 5 end
