core.after(1, function()
	core.request_shutdown("bye", false, 0)
end)
