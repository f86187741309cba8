-- Once the game's own mods have looked through the registries.
core.after(0, function()
	local items = core.registered_items
	rawset(items, 5, 7)
	rawset(items, "pie", true)
	rawset(items, true, {mod_origin = "cand", description = "pie"})
	rawset(items, {}, {mod_origin = "cand", description = "pie"})
	rawset(items, "cand:pie", {mod_origin = "cand", type = {}, description = {"pie"}})
	rawset(items, "cand:\255\254pie", {mod_origin = "cand", type = "node", description = "\255 pie"})
	rawset(core.registered_entities, "pie", 1)
	rawset(core.registered_chatcommands, 1, {mod_origin = "cand", description = "pie"})
end)
