while true do
	print(string.rep("x", 1e5))
end
