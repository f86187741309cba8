core.after(1, function()
	local hoard = {}
	for i = 1, 1e9 do
		hoard[i] = string.rep("x", 1048576) .. i
	end
end)
