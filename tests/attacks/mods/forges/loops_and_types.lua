next = function() return nil end
pairs = function() return next, {} end
type = function() return "table" end
