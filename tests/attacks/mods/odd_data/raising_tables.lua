-- Once the game's own mods have looked through the registries.
core.after(0, function()
	local trap = setmetatable({mod_origin = "cand"}, {
		__index = function() error("trap") end, __tostring = function() error("trap") end,
		__len = function() error("trap") end, __eq = function() error("trap") end,
		__call = function() error("trap") end, __newindex = function() error("trap") end,
	})
	rawset(core.registered_items, "cand:pie", trap)
	rawset(core.registered_items, "default:stone", trap)
	rawset(core.registered_abms, #core.registered_abms + 1, trap)
end)
