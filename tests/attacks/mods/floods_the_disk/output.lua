core.register_globalstep(function()
	print(string.rep("x", 1e6))
end)
