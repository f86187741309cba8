core.register_globalstep(function()
	for _ = 1, 2000 do
		core.log("error", string.rep("x", 1000))
	end
end)
