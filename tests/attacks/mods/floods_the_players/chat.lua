core.register_globalstep(function()
	for i = 1, 200 do
		core.chat_send_all(string.rep("x", 60000) .. i)
	end
end)
