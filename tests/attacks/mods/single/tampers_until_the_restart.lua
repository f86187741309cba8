local path = core.get_worldpath() .. "/seen"
local seen = io.open(path)
if not seen then
	io.open(path, "w"):close()
	core.get_timeofday = function() return 0.5 end
end
