-- Copies of what the evaluator uses later: the API, and the methods of the engine's classes.

local insecure = ...
local next, type, rawget = next, type, rawget

local function copy(source)
	local result = {}
	for key, value in next, source do
		result[key] = value
	end
	return result
end

local C = copy(core)

-- The debug registry holds every class table before an object of that class exists. A method taken from an object
-- later may have been patched through getmetatable(object).
local I = {}       -- class name -> copy of its methods
local classes = {} -- class name -> the live method table
local metas = {}   -- metatable -> class name
for name, meta in next, insecure.debug.getregistry() do
	if type(name) == "string" and type(meta) == "table" and type(rawget(meta, "__gc")) == "function" then
		local methods = rawget(meta, "__metatable") or rawget(meta, "__index")
		if type(methods) == "table" then
			I[name] = copy(methods)
			classes[name] = methods
			metas[meta] = name
		end
	end
end

-- What exists before any candidate: everything else is an addition.
local function names(list)
	local result = {}
	for name in next, list do
		result[name] = true
	end
	return result
end

local vanilla = {
	items = names(core.registered_items),
	entities = names(core.registered_entities),
	commands = names(core.registered_chatcommands),
}

return {C = C, I = I, classes = classes, metas = metas, vanilla = vanilla, copy = copy}
