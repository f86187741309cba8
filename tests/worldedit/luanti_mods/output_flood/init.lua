for _ = 1, 1e9 do
	core.log("action", string.rep("x", 10000))
end
