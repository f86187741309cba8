core.register_on_shutdown(function()
	error("on purpose")
end)
