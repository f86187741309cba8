core.register_on_mods_loaded(function()
	core.registered_items["default:stone"] = nil
	core.registered_on_dignodes = {}
	for index = #core.registered_on_cheats, 1, -1 do
		core.registered_on_cheats[index] = nil
	end
	core.clear_craft({output = "default:pick_steel"})
end)
