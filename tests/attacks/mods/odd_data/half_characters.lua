core.register_globalstep(function()
	core.chat_send_all("\237\160\128 \255\254 \240\159 \27(c@#zzz) \27" .. string.char(math.random(0, 255)))
end)
core.register_on_chat_message(function() error({odd = "error value"}) end)
