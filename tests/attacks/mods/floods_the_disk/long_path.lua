-- Within the limit on paths here, beyond it where the judge looks at the world from.
local path = core.get_worldpath()
while #path + 203 < 4096 do
	path = path .. "/" .. string.rep("b", 200)
	core.mkdir(path)
end
core.mkdir(path .. "/" .. string.rep("c", 4094 - #path))
