local steps = 0
core.register_globalstep(function()
	steps = steps + 1
	while steps > 20 do end
end)
