-- Take the evaluator's functions off the stack with a call hook.
local done
if debug.sethook then
	debug.sethook(function()
		local info = debug.getinfo(2, "Snf")
		if not done and info and info.func and info.name == "emit" then
			done = true
			info.func("forged", {by = "hook"})
		end
	end, "c")
end
local info = debug.getinfo(1, "nSlufL")
assert(info.func == nil, "debug.getinfo hands out functions")
assert(string.dump == nil and debug.gethook == nil and debug.upvalueid == nil)
