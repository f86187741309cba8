-- Patch the methods of the engine's objects, before anything else sees a player.
table.insert(core.registered_on_joinplayers, 1, function(player)
	local methods = getmetatable(player)
	methods = methods.__index or methods
	methods.get_hp = function()
		return 777
	end
	methods.get_luaentity = function()
		return {name = "forged"}
	end
end)
core.callback_origins[core.registered_on_joinplayers[1]] = {mod = "cand", name = "join"}
