-- The evaluator inside the game: it dumps, runs primitive requests and reports events. It holds no checks.
--
-- It loads after the game's own mods and before any candidate. Conventions of every file here:
--   * nothing is called through core, a library table or a method of a value once a candidate may have run;
--     functions are kept in locals, C (the API) and I (the methods of the engine's classes);
--   * tables a candidate can reach are read with next and rawget only.

local insecure = assert(core.request_insecure_environment(), "the evaluator must be a trusted mod")
local path = core.get_modpath(core.get_current_modname()) .. "/"

local function part(name, ...)
	return assert(insecure.loadfile(path .. name .. ".lua"))(...)
end

local place = part("place") -- written by the judge: where the channel is, the candidate's name, the seed

local captured = part("capture", insecure)
local encode = part("encode", insecure, captured, place)
local channel = part("channel", insecure, encode, place)
local events = part("events", captured, channel)
local tamper = part("tamper", insecure, captured, encode, events)
local dump = part("dump", captured, encode)
part("requests", insecure, captured, encode, channel, events, tamper, dump)
part("seal", insecure)
tamper.watch() -- after the seal, which itself changes library tables

math.randomseed(place.seed)
channel.emit("probe", {mods = captured.C.get_modnames()})
