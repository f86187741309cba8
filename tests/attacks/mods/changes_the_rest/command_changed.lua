core.override_chatcommand("me", {func = function() return true end})
