-- What the engine's own mod security has to refuse; the evaluator relies on it.
local allowed = {}
local function try(name, func)
	if pcall(func) then
		allowed[#allowed + 1] = name
	end
end

try("os.execute", function() return os.execute("true") end)
try("io.popen", function() return io.popen("id") end)
try("read requests", function() return assert(io.open("/game/channel/cmd")) end)
try("append events", function() return assert(io.open("/game/channel/evt", "a")) end)
try("write config", function() return assert(io.open("/game/config/server.conf", "a")) end)
try("read environ", function() return assert(io.open("/proc/self/environ")) end)
try("read passwd", function() return assert(io.open("/etc/passwd")) end)
try("write mod", function() return assert(io.open(core.get_modpath("cand") .. "/x.txt", "w")) end)
try("write game", function() return assert(io.open(core.get_modpath("default") .. "/x.txt", "w")) end)
try("insecure environment", function() return assert(core.request_insecure_environment()) end)
try("http", function() return assert(core.request_http_api()) end)
try("require", function() return require("ffi") end)
try("loadlib", function() return package.loadlib("x", "y") end)
try("bytecode", function() return assert(loadstring("\27LJ\2")) end)
try("registry", function() return debug.getregistry() end)
try("upvalues", function() return debug.getupvalue(try, 1) end)
try("locals", function() return debug.getlocal(1, 1) end)
try("trusted", function()
	core.settings:set("secure.trusted_mods", "cand")
	assert(core.settings:get("secure.trusted_mods") == "cand")
end)
for _, name in ipairs({"LD_PRELOAD", "GATE_PAGE", "GATE_MODE", "GATE_SEED", "GATE_EPOCH"}) do
	try(name, function() return assert(os.getenv(name)) end)
end
core.safe_file_write(core.get_worldpath() .. "/allowed.txt", table.concat(allowed, "\n"))
