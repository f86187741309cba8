local steps = 0
core.register_globalstep(function()
	steps = steps + 1
	local file = io.open(core.get_worldpath() .. "/flood" .. steps, "w")
	file:write(string.rep("x", 4194304))
	file:close()
end)
