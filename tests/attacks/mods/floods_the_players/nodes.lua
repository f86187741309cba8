core.register_globalstep(function()
	for _ = 1, 2000 do
		local pos = {x = math.random(-30, 30), y = 12, z = math.random(-30, 30)}
		core.set_node(pos, {name = "default:chest"})
		core.get_meta(pos):set_string("x", string.rep("y", 1e4))
	end
end)
