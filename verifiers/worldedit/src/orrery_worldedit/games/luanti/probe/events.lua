-- What happens in the game, one event per callback. Registered before the candidate's callbacks, so that none of
-- them can swallow an event. An event that the candidate itself caused by calling code carries "via".

local captured, channel = ...
local pcall, pairs, type, rawget = pcall, pairs, type, rawget
local insert, remove = table.insert, table.remove
local C, I = captured.C, captured.I
local emit = channel.emit

local handlers = {} -- {kind, list, name, func}: what must still be registered at the end

local events = {handlers = handlers}

-- Mods pass plain tables as players; a method called on one raises.
local function name_of(player)
	local ok, name = pcall(I.ObjectRef.get_player_name, player)
	if ok and name ~= "" then
		return name
	end
	local ok_entity, entity = pcall(I.ObjectRef.get_luaentity, player)
	return ok_entity and type(entity) == "table" and rawget(entity, "name") or nil
end

local function stack_text(stack)
	local ok, text = pcall(I.ItemStack.to_string, stack)
	return ok and text or nil
end

local function node_name(node)
	return type(node) == "table" and rawget(node, "name") or nil
end

local function field(value, key)
	return type(value) == "table" and rawget(value, key) or nil
end

-- Registers `describe` for an event. The callback returns nothing: it never decides.
local function on(kind, register, list, describe)
	local add = C[register]
	if not add then
		return
	end
	local function handler(...)
		local data = describe(...)
		data.via = events.caller()
		emit(kind, data)
	end
	add(handler)
	handlers[#handlers + 1] = {kind = kind, list = C[list], name = list, func = handler}
end

on("join", "register_on_joinplayer", "registered_on_joinplayers", function(player)
	return {name = name_of(player)}
end)

on("new", "register_on_newplayer", "registered_on_newplayers", function(player)
	return {name = name_of(player)}
end)

on("leave", "register_on_leaveplayer", "registered_on_leaveplayers", function(player, timed_out)
	return {name = name_of(player), timed_out = timed_out and true or false}
end)

on("dig", "register_on_dignode", "registered_on_dignodes", function(pos, node, digger)
	return {pos = pos, node = node_name(node), by = name_of(digger)}
end)

on("place", "register_on_placenode", "registered_on_placenodes", function(pos, node, placer)
	return {pos = pos, node = node_name(node), by = name_of(placer)}
end)

on("punch_node", "register_on_punchnode", "registered_on_punchnodes", function(pos, node, puncher)
	return {pos = pos, node = node_name(node), by = name_of(puncher)}
end)

on("punch_player", "register_on_punchplayer", "registered_on_punchplayers",
	function(player, hitter, time, _, _, damage)
		return {name = name_of(player), by = name_of(hitter), time = time, damage = damage}
	end)

on("rightclick_player", "register_on_rightclickplayer", "registered_on_rightclickplayers", function(player, clicker)
	return {name = name_of(player), by = name_of(clicker)}
end)

on("die", "register_on_dieplayer", "registered_on_dieplayers", function(player, reason)
	return {name = name_of(player), type = field(reason, "type")}
end)

on("respawn", "register_on_respawnplayer", "registered_on_respawnplayers", function(player)
	return {name = name_of(player)}
end)

on("craft", "register_on_craft", "registered_on_crafts", function(stack, player)
	return {name = name_of(player), item = stack_text(stack)}
end)

on("chat", "register_on_chat_message", "registered_on_chat_messages", function(name, message)
	return {name = name, message = message}
end)

on("command", "register_on_chatcommand", "registered_on_chatcommands", function(name, command, params)
	return {name = name, command = command, params = params}
end)

on("eat", "register_on_item_eat", "registered_on_item_eats", function(hp, _, stack, player)
	return {name = name_of(player), hp = hp, item = stack_text(stack)}
end)

on("pickup", "register_on_item_pickup", "registered_on_item_pickups", function(stack, player)
	return {name = name_of(player), item = stack_text(stack)}
end)

on("cheat", "register_on_cheat", "registered_on_cheats", function(player, cheat)
	return {name = name_of(player), type = field(cheat, "type")}
end)

-- Drops show here too, as "take" from the player's inventory.
on("inventory", "register_on_player_inventory_action", "registered_on_player_inventory_actions",
	function(player, action, _, info)
		return {
			name = name_of(player), action = action,
			from = field(info, "from_list") or field(info, "listname"), to = field(info, "to_list"),
			index = field(info, "from_index") or field(info, "index"), to_index = field(info, "to_index"),
			count = field(info, "count"), item = stack_text(field(info, "stack")),
		}
	end)

on("protection", "register_on_protection_violation", "registered_on_protection_violation", function(pos, name)
	return {pos = pos, name = name}
end)

on("fields", "register_on_player_receive_fields", "registered_on_player_receive_fields", function(player, form, fields)
	return {name = name_of(player), form = form, fields = captured.copy(fields)}
end)

on("shutdown", "register_on_shutdown", "registered_on_shutdown", function()
	return {}
end)

on("mods_loaded", "register_on_mods_loaded", "registered_on_mods_loaded", function()
	return {mods = C.get_modnames()}
end)

-- The engine's list of loggers is nested, and the logger must not return a value.
local function hp_handler(player, change, reason)
	emit("hp", {
		name = name_of(player), change = change, type = field(reason, "type"), from = field(reason, "from"),
		by = name_of(field(reason, "object")), node = field(reason, "node"), via = events.caller(),
	})
end
C.register_on_player_hpchange(hp_handler, false)
handlers[#handlers + 1] = {
	kind = "hp", name = "registered_on_player_hpchanges", func = hp_handler,
	list = C.registered_on_player_hpchanges.loggers,
}

-- The engine survives an error in on_shutdown and says nothing; what comes after it does not run.
on("finished", "register_on_shutdown", "registered_on_shutdown", function()
	return {}
end)

local function take_out(entry)
	local list = entry.list
	for index = #list, 1, -1 do
		if list[index] == entry.func then
			remove(list, index)
		end
	end
	return list
end

-- Once all mods are in. Form answers go to the newest handler first and stop at the first that claims them.
function events.arrange()
	for _, entry in pairs(handlers) do
		if entry.kind == "fields" then
			insert(take_out(entry), 1, entry.func)
		elseif entry.kind == "finished" then
			insert(take_out(entry), entry.func)
		end
	end
end

return events
