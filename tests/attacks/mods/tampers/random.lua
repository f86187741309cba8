math.random = function() return 1 end
