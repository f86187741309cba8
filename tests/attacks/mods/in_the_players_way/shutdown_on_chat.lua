core.register_on_chat_message(function()
	core.request_shutdown()
	return true
end)
