-- Canonical JSON: the same value gives the same bytes in every run, whatever a candidate put into it.
--
--   functions  "fn:<mod>/<file>:<line>", with the plain values it closes over where that is asked for
--   tables     {} when empty, a list when the keys are 1..n, else an object with sorted keys; number keys as text
--   cycles, too deep, too long: a text in angle brackets instead

local insecure, captured, place = ...
local next, type, rawget, tostring = next, type, rawget, tostring
local byte, find, format, gsub, sub = string.byte, string.find, string.format, string.gsub, string.sub
local concat, sort, floor = table.concat, table.sort, math.floor
local getinfo, getupvalue, getmetatable = insecure.debug.getinfo, insecure.debug.getupvalue, insecure.debug.getmetatable
local sha1 = core.sha1
local C, I, metas = captured.C, captured.I, captured.metas

local MAX_DEPTH = 32

-- Limits of one encoded value: {entries of one table, values in all, bytes of one text}.
local WIDE = {entries = 262144, values = 2097152, text = 16777216}

local escapes = {['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t"}

local function escape(char)
	return escapes[char] or format("\\u%04x", byte(char))
end

local function quote(text)
	return '"' .. gsub(text, '[%z\1-\31"\\\127]', escape) .. '"'
end

local function number(n)
	if n ~= n then
		return '"nan"'
	elseif n == 1 / 0 then
		return '"inf"'
	elseif n == -1 / 0 then
		return '"-inf"'
	elseif n == floor(n) and n < 1e15 and n > -1e15 then
		return format("%d", n)
	end
	return format("%.9g", n)
end

-- Where a function comes from --------------------------------------------------------------------------------

local own = core.get_current_modname()
local builtin = "@" .. core.get_builtin_path()
-- Source -> readable name. A path is known by its whole prefix, so no file can pose as another; the judge's own
-- requests have a chunk name that nobody else can choose.
local sources = {["=evaluator"] = "evaluator"}

local function starts(text, prefix)
	return sub(text, 1, #prefix) == prefix
end

local function readable(source)
	if starts(source, builtin) then
		return "builtin/" .. gsub(sub(source, #builtin + 1), "^/", "")
	end
	for _, mod in next, C.get_modnames() do
		local prefix = "@" .. C.get_modpath(mod) .. "/"
		if starts(source, prefix) then
			return (mod == own and "evaluator" or mod) .. "/" .. sub(source, #prefix + 1)
		end
	end
	return starts(source, "@") and "file" or "text" -- a chunk from loadstring
end

local function origin(source)
	local name = sources[source]
	if not name then
		name = readable(source)
		sources[source] = name
	end
	return name
end

local function tag(func)
	local info = getinfo(func, "S")
	if info.what == "C" then
		return "fn:C"
	end
	return "fn:" .. origin(info.source) .. ":" .. info.linedefined
end

-- item_eat(2) and item_eat(4) are the same line of the same file: what they close over tells them apart.
local function tag_with_values(func)
	local text = tag(func)
	local parts = {}
	for index = 1, 16 do
		local name, value = getupvalue(func, index)
		if not name then
			break
		end
		local kind = type(value)
		if kind == "number" then
			parts[#parts + 1] = name .. "=" .. number(value)
		elseif kind == "boolean" then
			parts[#parts + 1] = name .. "=" .. tostring(value)
		elseif kind == "string" and #value <= 80 then
			parts[#parts + 1] = name .. "=" .. value
		end
	end
	if #parts > 0 then
		text = text .. "(" .. concat(parts, ",") .. ")"
	end
	return text
end

-- Values -----------------------------------------------------------------------------------------------------

local out, limits, left, tagger

local function put(text)
	out[#out + 1] = text
end

local function put_text(text)
	if #text > limits.text then
		put(quote("<text of " .. #text .. " bytes, sha1 " .. sha1(text) .. ">"))
	else
		put(quote(text))
	end
end

local function put_userdata(value)
	local class = metas[getmetatable(value)]
	if class == "ItemStack" then
		put_text(I.ItemStack.to_string(value))
	else
		put(quote("<" .. (class or "userdata") .. ">"))
	end
end

local function key_text(key, holder)
	local kind = type(key)
	if kind == "string" then
		return key
	elseif kind == "number" then
		local text = gsub(number(key), '"', "")
		return rawget(holder, text) == nil and text or "#" .. text
	elseif kind == "function" then
		return tag(key)
	end
	return "<" .. kind .. (kind == "boolean" and " " .. tostring(key) or "") .. ">"
end

local put_value

local function put_list(list, count, seen, depth)
	put("[")
	for index = 1, count do
		if index > 1 then
			put(",")
		end
		put_value(rawget(list, index), seen, depth)
	end
	put("]")
end

local function put_object(object, seen, depth)
	local keys, by_text = {}, {}
	for key in next, object do
		local text = key_text(key, object)
		while by_text[text] ~= nil do -- several keys without an order of their own, such as tables
			text = text .. "'"
		end
		keys[#keys + 1] = text
		by_text[text] = key
	end
	sort(keys)
	put("{")
	for index = 1, #keys do
		if index > 1 then
			put(",")
		end
		put_text(keys[index])
		put(":")
		put_value(rawget(object, by_text[keys[index]]), seen, depth)
	end
	put("}")
end

local function put_table(value, seen, depth)
	if seen[value] then
		return put('"<cycle>"')
	elseif depth >= MAX_DEPTH then
		return put('"<deep>"')
	end
	local count, list = 0, true
	for key in next, value do
		count = count + 1
		list = list and type(key) == "number"
	end
	if count > limits.entries then
		return put('"<table of ' .. count .. ' entries>"')
	end
	seen[value] = true
	for index = 1, list and count or 0 do
		list = list and rawget(value, index) ~= nil
	end
	if list and count > 0 then
		put_list(value, count, seen, depth + 1)
	else
		put_object(value, seen, depth + 1)
	end
	seen[value] = nil
end

function put_value(value, seen, depth)
	left = left - 1
	local kind = type(value)
	if left < 0 then
		put('"<too much>"')
	elseif kind == "string" then
		put_text(value)
	elseif kind == "number" then
		put(number(value))
	elseif kind == "boolean" then
		put(value and "true" or "false")
	elseif kind == "nil" then
		put("null")
	elseif kind == "function" then
		put_text(tagger(value))
	elseif kind == "table" then
		put_table(value, seen, depth)
	elseif kind == "userdata" then
		put_userdata(value)
	else
		put('"<' .. kind .. '>"')
	end
end

-- Not re-entrant, and nothing in it can call back into a mod: no metamethod is ever reached.
local function json(value, bounds, with_values)
	out, limits = {}, bounds or WIDE
	left, tagger = limits.values, with_values and tag_with_values or tag
	put_value(value, {}, 0)
	local text = concat(out)
	out = nil
	return text
end

-- The first frame of the candidate's own files on the stack above the caller; nil when the engine called.
local candidate = place.candidate and place.candidate .. "/"

local function called_by_candidate()
	for level = 3, 24 do
		local info = getinfo(level, "Sl")
		if not info then
			return nil
		end
		local name = info.what ~= "C" and origin(info.source)
		if name and (name == "text" or name == "file" or candidate and find(name, candidate, 1, true) == 1) then
			return name .. ":" .. info.currentline
		end
	end
end

return {json = json, quote = quote, tag = tag, called_by_candidate = called_by_candidate}
