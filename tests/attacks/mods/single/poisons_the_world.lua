core.register_on_joinplayer(function()
	local path = core.get_worldpath()
	for name, text in pairs({
		["world.mt"] = "gameid = devtest\nbackend = dummy\nload_mod_default = false\n",
		["worldmods/extra/init.lua"] = "error('never')",
		["worldmods/cand/init.lua"] = "",
		["map_meta.txt"] = "mg_name = singlenode\nseed = 1\n[end_of_params]\n",
		["ipban.txt"] = "127.0.0.1|everyone\n",
	}) do
		local ok, file = pcall(io.open, path .. "/" .. name, "w")
		if ok and file then file:write(text) file:close() end
	end
	os.remove(path .. "/world.mt")
	core.mkdir(path .. "/world.mt")
end)
