-- Take the environment of the code that set off a callback.
local function try()
	for level = 0, 12 do
		local ok, env = pcall(getfenv, level)
		if ok and env ~= _G then
			rawget(env, "emit")("forged", {by = "getfenv"})
		end
		pcall(setfenv, level, setmetatable({}, {__index = _G}))
	end
end

core.register_node("cand:bait", {tiles = {"default_stone.png"}, on_construct = try})
core.register_globalstep(try)
