-- Later than load time, when the engine itself copies every definition for its worker threads.
core.after(0, function()
	local dirt = core.registered_items["default:dirt"]
	rawset(dirt, "co", coroutine.create(function() end))
	rawset(dirt, "file", io.open(core.get_worldpath() .. "/f", "w"))
	rawset(dirt, "stack", ItemStack("default:stick 3 4 five"))
	rawset(dirt, coroutine.create(function() end), dirt)
end)
