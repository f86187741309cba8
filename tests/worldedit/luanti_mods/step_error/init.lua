local steps = 0
core.register_globalstep(function()
	steps = steps + 1
	if steps == 20 then
		error("on purpose")
	end
end)
