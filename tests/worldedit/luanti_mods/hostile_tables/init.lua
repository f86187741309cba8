-- Definitions made to choke whoever reads them.
local function trap()
	error("the evaluator touched a metamethod")
end
local traps = {
	__index = trap, __newindex = trap, __len = trap, __tostring = trap, __eq = trap, __lt = trap, __concat = trap,
	__call = trap, __pairs = trap, __ipairs = trap, __gc = trap, __metatable = "locked",
}

local cycle = {}
cycle.self = {back = cycle}

local wide = {}
for i = 1, 1e6 do
	wide[i] = i
end

local deep = {}
for _ = 1, 1000 do
	deep = {deep}
end

local double = {"x"}
for _ = 1, 40 do
	double = {double, double}
end

core.register_craftitem("cand:hostile", {description = "Hostile"})
core.register_craftitem("cand:double", {description = "Double"})
core.after(0, function() -- the engine itself refuses some of this while it loads
	local def = core.registered_items["cand:hostile"]
	rawset(def, "_cycle", cycle)
	rawset(def, "_wide", wide)
	rawset(def, "_deep", deep)
	rawset(def, "_long", string.rep("x", 5e6))
	rawset(def, "_traps", setmetatable({inner = 1}, traps))
	rawset(def, "_proxy", newproxy and newproxy(true))
	rawset(def, "_thread", coroutine.create(trap))
	rawset(def, "_nan", 0 / 0)
	rawset(def, "_inf", math.huge)
	rawset(def, trap, "a function as key")
	rawset(def, {}, "a table as key")
	rawset(def, {1}, "another table as key")
	rawset(def, 7, "a number as key")
	rawset(def, true, "a boolean as key")
	rawset(core.registered_items["cand:double"], "_double", double)
end)
