local number = 0
core.register_globalstep(function()
	number = number + 1
	local file = io.open(core.get_worldpath() .. "/" .. number, "w")
	file:write(string.rep("x", 2e7))
	file:close()
end)
