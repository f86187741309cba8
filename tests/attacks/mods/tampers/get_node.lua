core.get_node = function() return {name = "default:stone", param1 = 0, param2 = 0} end
