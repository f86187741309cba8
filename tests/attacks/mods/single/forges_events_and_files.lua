core.register_on_joinplayer(function(player)
	for name, list in pairs(core) do
		if type(list) == "table" and tostring(name):find("^registered_on_") then
			for _, f in pairs(list) do
				if type(f) == "function" and debug.getinfo(f, "S").source:find("events") then
					pcall(f, player, player, {name = "default:stone"}, player, 1, 1)
					pcall(f, {x = 0, y = 9, z = 0}, {name = "default:stone"}, player)
				end
			end
		end
	end
end)
for _, path in ipairs({"/game/channel/evt", "/game/channel/cmd", "/game/gate/page", "/proc/self/mem"}) do
	for _, mode in ipairs({"r", "w", "a", "r+"}) do
		local ok, file = pcall(io.open, path, mode)
		if ok and file then
			file:write('{"seq":1,"step":1,"kind":"mods_loaded","data":{}}\n')
			error("a channel file is open to mods")
		end
	end
end
