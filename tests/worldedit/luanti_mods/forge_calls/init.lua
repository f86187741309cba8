-- Call the evaluator's own callbacks, which have to stand in the public lists.
core.after(1, function()
	for _, func in ipairs(core.registered_on_dignodes) do
		func({x = 1, y = 2, z = 3}, {name = "default:mese"}, nil)
	end
end)
