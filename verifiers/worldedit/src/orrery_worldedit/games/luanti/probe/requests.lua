-- Runs the judge's requests, one step each, in an environment that no mod can reach.

local insecure, captured, encode, channel, events, tamper, dump = ...
local pcall, rawget, setfenv, type = pcall, rawget, setfenv, type
local json, quote = encode.json, encode.quote
local loadstring, parse_json = insecure.loadstring, core.parse_json
local C, I = captured.C, captured.I

local env = {
	C = C, I = I, vanilla = captured.vanilla,
	emit = channel.emit, tag = encode.tag, ItemStack = ItemStack, PseudoRandom = PseudoRandom,
	PcgRandom = PcgRandom, VoxelManip = VoxelManip, VoxelArea = VoxelArea, loadstring = loadstring,
	vector = captured.copy(vector), clock = {steps = 0, shortest = 1 / 0, longest = 0},
}
for _, name in pairs({
	"assert", "error", "getmetatable", "ipairs", "next", "pairs", "pcall", "rawequal", "rawget", "rawset", "select",
	"setmetatable", "tonumber", "tostring", "type", "unpack", "xpcall",
}) do
	env[name] = rawget(_G, name)
end
for _, name in pairs({"string", "table", "math", "bit", "coroutine"}) do
	env[name] = captured.copy(rawget(_G, name))
end

function env.player(name)
	return C.get_player_by_name(name)
end

-- An error value may be a table of the candidate with its own __tostring.
local function error_text(value)
	return type(value) == "string" and value or "<" .. type(value) .. ">"
end

local function evaluate(request)
	local chunk, problem = loadstring(request.code, "=evaluator")
	if not chunk then
		return false, quote(problem)
	end
	env.arg = request.arg
	setfenv(chunk, env)
	local ok, result = pcall(chunk)
	if ok then
		return true, json(result)
	end
	return false, quote(error_text(result))
end

local routines = {eval = evaluate}

function routines.dump()
	return true, dump()
end

function routines.tamper()
	return true, json(tamper.list())
end

local function answer(line)
	local request = parse_json(line)
	local ok, done, result = pcall(routines[request.op], request)
	if ok then
		channel.reply(request.id, done, result)
	else
		channel.reply(request.id, false, quote(error_text(done)))
	end
end

local function on_step(dtime)
	channel.step = channel.step + 1
	local clock = env.clock
	clock.steps = channel.step
	if channel.step == 1 then
		events.arrange() -- and its length does not count: the engine's first step is none
	else
		clock.shortest = dtime < clock.shortest and dtime or clock.shortest
		clock.longest = dtime > clock.longest and dtime or clock.longest
	end
	local line = channel.next_line()
	while line do
		answer(line)
		line = channel.next_line()
	end
end

events.caller = encode.called_by_candidate
C.register_globalstep(on_step)
events.handlers[#events.handlers + 1] = {
	kind = "step", list = C.registered_globalsteps, name = "registered_globalsteps", func = on_step,
}
