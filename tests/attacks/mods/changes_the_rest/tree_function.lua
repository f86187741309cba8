default.grow_tree = function() end
