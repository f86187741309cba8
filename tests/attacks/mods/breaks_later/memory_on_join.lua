core.register_on_joinplayer(function(player)
	local hoard = {}
	while true do
		hoard[#hoard + 1] = string.rep("x", 1e6) .. #hoard
	end
end)
