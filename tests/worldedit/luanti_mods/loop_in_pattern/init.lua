core.register_on_chat_message(function()
	return string.find(string.rep("a", 200), string.rep(".-", 30) .. "b")
end)
