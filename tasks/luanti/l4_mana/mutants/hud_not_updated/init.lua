local MAX = 20
local COST = 5
local REGENERATION = 2 -- seconds for one point
local GLOW_TIME = 30

local huds = {}
local timers = {}

local function get(player)
	return player:get_meta():get_int("manalight:mana")
end

local function text(player)
	return ("Mana: %d/%d"):format(get(player), MAX)
end

local function set(player, amount)
	player:get_meta():set_int("manalight:mana", math.max(0, math.min(MAX, amount)))
end

core.register_on_newplayer(function(player)
	set(player, MAX)
end)

core.register_on_joinplayer(function(player)
	local name = player:get_player_name()
	timers[name] = 0
	huds[name] = player:hud_add({
		hud_elem_type = "text", -- 5.10 also takes `type`; both know this one
		position = {x = 0.5, y = 1},
		offset = {x = 0, y = -110},
		alignment = {x = 0, y = 0},
		number = 0x66AAFF,
		text = text(player),
	})
end)

core.register_on_leaveplayer(function(player)
	huds[player:get_player_name()] = nil
	timers[player:get_player_name()] = nil
end)

core.register_on_dieplayer(function(player)
	set(player, 0)
	timers[player:get_player_name()] = 0
end)

core.register_globalstep(function(dtime)
	for _, player in ipairs(core.get_connected_players()) do
		local name = player:get_player_name()
		if player:get_hp() > 0 and timers[name] then
			timers[name] = timers[name] + dtime
			while timers[name] >= REGENERATION do
				timers[name] = timers[name] - REGENERATION
				if get(player) < MAX then
					set(player, get(player) + 1)
				end
			end
		end
	end
end)

core.register_node("manalight:glow", {
	description = "Magic Glow",
	drawtype = "airlike",
	paramtype = "light",
	sunlight_propagates = true,
	walkable = false,
	pointable = false,
	diggable = false,
	buildable_to = true,
	drop = "",
	light_source = 13,
	groups = {not_in_creative_inventory = 1},
	on_construct = function(pos)
		core.get_node_timer(pos):start(GLOW_TIME)
	end,
	on_timer = function(pos)
		core.remove_node(pos)
	end,
})

core.register_tool("manalight:staff", {
	description = "Light Staff",
	inventory_image = "manalight_staff.png",
	on_use = function(itemstack, user, pointed_thing)
		if pointed_thing.type ~= "node" or get(user) < COST then
			return
		end
		local pos = pointed_thing.above
		if core.get_node(pos).name ~= "air" or core.is_protected(pos, user:get_player_name()) then
			return
		end
		core.set_node(pos, {name = "manalight:glow"})
		set(user, get(user) - COST)
	end,
})

core.register_craft({
	output = "manalight:staff",
	recipe = {
		{"default:mese_crystal_fragment"},
		{"default:stick"},
		{"default:stick"},
	},
})

core.register_chatcommand("mana", {
	description = "Tells how much mana you have",
	func = function(name)
		local player = core.get_player_by_name(name)
		if not player then
			return false, "You have to be in the game."
		end
		return true, text(player)
	end,
})
