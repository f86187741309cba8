core.register_globalstep(function()
	local zero = {x = 0, y = 0, z = 0}
	for _ = 1, 2000 do
		core.add_particle({
			pos = {x = 0, y = 9, z = 0}, velocity = zero, acceleration = zero, expirationtime = 1, size = 1,
			texture = string.rep("x", 1000),
		})
	end
end)
