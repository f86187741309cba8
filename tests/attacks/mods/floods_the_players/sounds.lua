core.register_globalstep(function()
	for _ = 1, 2000 do
		core.sound_play(string.rep("x", 1000), {gain = 1})
	end
end)
