core.after(1, function()
	error("on purpose")
end)
