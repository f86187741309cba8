core.is_protected = function() return true end
