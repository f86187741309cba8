core.register_on_chat_message(function()
	return true
end)
