io.open = function() return nil end
loadstring = function() return function() return 5 end end
