for _ = 1, 16 do
	if core.handle_async then
		core.handle_async(function() while true do end end, function() end)
	end
end
