core.register_globalstep(function()
	for _ = 1, 2e9 do end
end)
