local random = math.random
math.random = function(low, high)
	if low and high then
		return low
	end
	return low and random(low) or random()
end
