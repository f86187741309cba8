core.register_globalstep(function()
	for _ = 1, 2e8 do end
end)
