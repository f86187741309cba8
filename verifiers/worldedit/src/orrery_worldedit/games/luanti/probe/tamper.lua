-- What is no longer itself: every captured library function, class method, API function and registry table.
-- The game's own mods have loaded before, so their replacements are part of what is watched.

local insecure, captured, encode, events = ...
local next, type, rawget, rawequal, tostring, pairs = next, type, rawget, rawequal, tostring, pairs
local sort, find = table.sort, string.find
local tag = encode.tag
local getmetatable = insecure.debug.getmetatable
local copy, globals = captured.copy, _G

local tamper = {}
local expected = {["core.get_globals_to_transfer"] = true} -- the engine itself clears it once mods have loaded
local watched = {} -- {label, live table, captured copy}
local file_methods = getmetatable(io.stdout or insecure.io.stdout).__index

local function describe(value)
	local kind = type(value)
	return kind == "function" and tag(value) or kind
end

local function watch(label, live)
	if type(live) == "table" then
		watched[#watched + 1] = {label = label, live = live, was = copy(live), meta = getmetatable(live)}
	end
end

-- A registry grows, but what it answers for a name it lacks (an alias, nothing) stays the game's.
local function watch_metatable(label, live)
	watched[#watched + 1] = {label = label, live = live, was = {}, meta = getmetatable(live)}
end

-- Plain values of core and _G are settings and handles; only functions and tables have an identity to keep.
local function compare(entry, found)
	if not rawequal(getmetatable(entry.live), entry.meta) then
		found[#found + 1] = entry.label .. "(metatable) -> replaced"
	end
	for key, was in next, entry.was do
		local kind = type(was)
		if (kind == "function" or kind == "table") and not expected[entry.label .. tostring(key)] then
			local now = rawget(entry.live, key)
			if not rawequal(now, was) then
				found[#found + 1] = entry.label .. tostring(key) .. " -> " .. describe(now)
			end
		end
	end
end

function tamper.watch()
	for _, name in pairs({"string", "table", "math", "os", "io", "coroutine", "bit", "debug", "package", "jit"}) do
		watch(name .. ".", rawget(globals, name))
	end
	watch("core.", core)
	watch("", globals)
	watch("FILE*:", file_methods)
	watch("text metatable ", getmetatable(""))
	watch("vector.", rawget(globals, "vector"))
	for name, methods in next, captured.classes do
		watch(name .. ":", methods)
	end
	for name, value in next, core do
		if type(value) == "table" and find(name, "^registered_") then
			watch_metatable("core." .. name .. " ", value)
		end
	end
	-- Where callbacks live that every registered thing falls back to.
	for _, name in pairs({"nodedef_default", "craftitemdef_default", "tooldef_default", "noneitemdef_default"}) do
		watch("core." .. name .. ".", rawget(core, name))
	end
end

local function still_registered(handler)
	for _, func in next, handler.list do
		if rawequal(func, handler.func) then
			return true
		end
	end
	return false
end

function tamper.list()
	local found = {}
	for _, entry in pairs(watched) do
		compare(entry, found)
	end
	for _, handler in pairs(events.handlers) do
		if not still_registered(handler) then
			found[#found + 1] = "evaluator's handler in core." .. handler.name .. " -> removed"
		end
	end
	sort(found)
	return found
end

return tamper
