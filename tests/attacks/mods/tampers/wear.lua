getmetatable(ItemStack("")).add_wear = function() return true end
