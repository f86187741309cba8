local steps = 0
core.register_globalstep(function()
	steps = steps + 1
	if steps == 60 then
		error("soon")
	end
end)
