core.register_globalstep(function()
	local file = io.open(core.get_worldpath() .. "/one", "a")
	for _ = 1, 50 do
		file:write(string.rep("x", 1e7))
	end
	file:close()
end)
