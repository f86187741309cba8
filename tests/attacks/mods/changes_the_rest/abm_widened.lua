for _, abm in ipairs(core.registered_abms) do
	if abm.label == "Grow cactus" then
		abm.neighbors[#abm.neighbors + 1] = "default:stone"
	end
end
