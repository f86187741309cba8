core.register_on_joinplayer(function(p)
	p:set_physics_override({speed = 0/0, jump = 1/0, gravity = -1/0})
	p:set_properties({hp_max = 65535, eye_height = 0/0, stepheight = 1/0, visual_size = {x = 0/0, y = 0, z = 0}})
	pcall(p.set_pos, p, {x = 0/0, y = 0/0, z = 0/0})
	pcall(p.add_velocity, p, {x = 1/0, y = 0, z = 0})
	pcall(p.set_look_horizontal, p, 0/0)
	for i = 1, 20 do
		p:hud_add({hud_elem_type = "text", text = "\255\254" .. string.rep("x", 60000), number = 4294967295,
			position = {x = 0/0, y = 1/0}})
	end
end)
