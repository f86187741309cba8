local hoard = {}
while true do
	hoard[#hoard + 1] = string.rep("x", 1e6) .. #hoard
end
