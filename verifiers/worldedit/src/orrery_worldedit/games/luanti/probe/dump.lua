-- Everything that is registered, as one JSON object of sections. The judge sorts it into paths and compares.
--
-- Each entry is encoded on its own and has its own limits, so an oversized one cannot hide the others. Tables of
-- the API are read live: a list that a candidate has replaced is what the engine uses from then on.

local captured, encode = ...
local next, type, rawget, rawequal, tostring = next, type, rawget, rawequal, tostring
local find, gmatch, match = string.find, string.gmatch, string.match
local concat, sort = table.concat, table.sort
local json, quote, tag = encode.json, encode.quote, encode.tag
local api, globals = core, _G
local C, I = captured.C, captured.I
local own = core.get_current_modname()
local stack_of = ItemStack
local to_string = I.ItemStack.to_string

local NARROW = {entries = 4096, values = 65536, text = 65536}

local MAX_ENTRIES = 65536 -- of one registry

local function live(name)
	local value = rawget(api, name)
	return type(value) == "table" and value or {}
end

local function sorted_keys(map)
	local keys = {}
	for key in next, map do
		if type(key) == "string" then
			keys[#keys + 1] = key
			if #keys > MAX_ENTRIES then
				return {}
			end
		end
	end
	sort(keys)
	return keys
end

-- {"key": entry, …} of a map from names to anything; `convert` may make another value of an entry.
local function section(map, convert, with_values)
	local parts = {}
	for _, key in next, sorted_keys(map) do
		local value = rawget(map, key)
		if convert then
			value = convert(key, value)
		end
		if value ~= nil then
			parts[#parts + 1] = quote(key) .. ":" .. json(value, NARROW, with_values)
		end
	end
	return "{" .. concat(parts, ",") .. "}"
end

-- [entry, …] of everything in a table, whatever its keys: order and keys are not part of what is compared.
local function values(map)
	local parts = {}
	for _, value in next, map do
		parts[#parts + 1] = json(value, NARROW, true)
		if #parts > MAX_ENTRIES then
			return '["<too many>"]'
		end
	end
	sort(parts)
	return "[" .. concat(parts, ",") .. "]"
end

local function functions(map)
	return section(map, function(_, value)
		return type(value) == "function" and tag(value) or nil
	end)
end

-- The engine keeps its own copy of every item, made when it was registered; later edits of the Lua table change
-- what Lua code reads, but not that copy.
local function engine_copy(name, def)
	local stack = stack_of(name)
	local kinds = {}
	for kind, list in next, {node = "registered_nodes", tool = "registered_tools", craft = "registered_craftitems"} do
		local entry = rawget(live(list), name)
		if entry ~= nil then
			kinds[kind] = rawequal(entry, def) and "same" or "other table"
		end
	end
	return {
		known = I.ItemStack.is_known(stack),
		stack_max = I.ItemStack.get_stack_max(stack),
		tool_capabilities = I.ItemStack.get_tool_capabilities(stack),
		description = I.ItemStack.get_description(stack),
		lists = kinds,
	}
end

-- Recipes, as the engine answers ----------------------------------------------------------------------------

local function in_all(groups, spec)
	for group in gmatch(spec, "[^,]+") do
		local level = rawget(groups, group)
		if type(level) ~= "number" or level <= 0 then
			return false
		end
	end
	return true
end

-- The first item, by name, that a group in a recipe accepts.
local function group_member(items, spec)
	for index = 1, #items do
		local def = rawget(live("registered_items"), items[index])
		local groups = type(def) == "table" and rawget(def, "groups")
		if type(groups) == "table" and in_all(groups, spec) then
			return items[index]
		end
	end
end

local function craft(method, width, items)
	local output, rest = C.get_craft_result({method = method, width = width, items = items})
	local left = {}
	for index, stack in next, rest.items do
		local text = to_string(stack)
		if text ~= "" then
			left[index] = text
		end
	end
	return to_string(output.item), output.time, left
end

local function recipes_of(name, items, samples)
	local list = C.get_all_craft_recipes(name)
	local result = {}
	for index, recipe in next, list or {} do
		local method = recipe.method or recipe.type
		local grid, input = {}, {}
		for slot, item in next, recipe.items or {} do
			local group = match(item, "^group:(.+)$")
			grid[slot] = item
			if group and samples[group] == nil then
				samples[group] = group_member(items, group) or false
			end
			input[slot] = group and (samples[group] or "") or item
		end
		local gives, _, left = craft(method, recipe.width, input)
		result[index] = {
			method = method, width = recipe.width, items = grid, output = tostring(recipe.output),
			gives = gives, leaves = left,
		}
	end
	return #result > 0 and result or nil
end

local function add_recipes(parts)
	local names = sorted_keys(live("registered_items"))
	local recipes, cooking, fuel, samples = {}, {}, {}, {}
	for index = 1, #names do
		local name = names[index]
		if name ~= "" and name ~= "unknown" then -- the hand's "recipes" are all the fuels
			recipes[name] = recipes_of(name, names, samples)
			local item, time, left = craft("cooking", 1, {name})
			if time ~= 0 then
				cooking[name] = {item = item, time = time, leaves = left}
			end
			local _, burn, rest = craft("fuel", 1, {name})
			if burn ~= 0 then
				fuel[name] = {time = burn, leaves = rest}
			end
		end
	end
	parts.recipes, parts.cooking, parts.fuel = section(recipes), section(cooking), section(fuel)
end

-- The rest ---------------------------------------------------------------------------------------------------

local function is_callback_list(name)
	return find(name, "^registered_on_") or find(name, "^registered_can_") or find(name, "^registered_allow_")
		or name == "registered_globalsteps" or name == "registered_playerevents" or name == "registered_craft_predicts"
end

local function callbacks()
	return section(api, function(name, value)
		if is_callback_list(name) and type(value) == "table" then
			return value
		end
	end)
end

-- Public functions of the game's mods, such as default.grow_tree.
local function mod_functions(mods)
	local parts = {}
	for index = 1, #mods do
		local shared = mods[index] ~= own and rawget(globals, mods[index])
		if type(shared) == "table" then
			parts[#parts + 1] = quote(mods[index]) .. ":" .. functions(shared)
		end
	end
	return "{" .. concat(parts, ",") .. "}"
end

local function mod_names(mods)
	local result = {}
	for index = 1, #mods do
		if mods[index] ~= own then
			result[mods[index]] = true
		end
	end
	return json(result)
end

local function mapgen()
	local result = {}
	for _, name in next, {"mg_name", "mg_flags", "seed", "water_level", "chunksize", "mapgen_limit"} do
		result[name] = C.get_mapgen_setting(name)
	end
	return json(result)
end

local function dump()
	local mods = C.get_modnames()
	sort(mods)
	local items = live("registered_items")
	local parts = {
		items = section(items, nil, true),
		engine = section(items, engine_copy),
		entities = section(live("registered_entities"), nil, true),
		aliases = section(live("registered_aliases")),
		commands = section(live("registered_chatcommands"), nil, true),
		privileges = section(live("registered_privileges"), nil, true),
		detached = section(live("detached_inventories"), nil, true),
		abms = values(live("registered_abms")),
		lbms = values(live("registered_lbms")),
		biomes = values(live("registered_biomes")),
		ores = values(live("registered_ores")),
		decorations = values(live("registered_decorations")),
		callbacks = callbacks(),
		core_functions = functions(api),
		mod_functions = mod_functions(mods),
		settings = json(I.Settings.to_table(C.settings)),
		mods = mod_names(mods),
		mapgen = mapgen(),
		features = json(rawget(api, "features")),
		version = json(C.get_version()),
	}
	for _, name in next, {"nodedef_default", "craftitemdef_default", "tooldef_default", "noneitemdef_default"} do
		parts[name] = json(rawget(api, name), NARROW, true)
	end
	add_recipes(parts)
	local out = {}
	for _, name in next, sorted_keys(parts) do
		out[#out + 1] = quote(name) .. ":" .. parts[name]
	end
	return "{" .. concat(out, ",") .. "}"
end

return dump
