-- Once the game"s own mods have looked through the registries.
core.after(0, function()
	local text = "pie " .. string.rep("\255", 500)
	for i = 1, 5000 do
		rawset(core.registered_items, "cand:pie" .. i, {mod_origin = "cand", description = text})
	end
end)
