-- Closes what would let a later mod take the evaluator's functions off the stack, read a private environment, or
-- give a function a false origin.

local insecure = ...
local type, error, rawset = type, error, rawset
local getinfo, getfenv_, setfenv_ = insecure.debug.getinfo, getfenv, setfenv
local loadstring_, load_ = loadstring, load
local globals = _G

debug.sethook = nil
debug.gethook = nil
debug.debug = nil
debug.upvalueid = nil
string.dump = nil

-- No function values. Not a tail call: the level counts this frame.
function debug.getinfo(a)
	local info
	if type(a) == "number" then
		info = getinfo(a + 1, "nSl")
	elseif type(a) == "function" then
		info = getinfo(a, "nSlu")
	end
	return info
end

rawset(globals, "getfenv", function(func)
	if type(func) == "function" then
		return getfenv_(func)
	end
	return globals
end)

rawset(globals, "setfenv", function(func, env)
	if type(func) == "function" then
		return setfenv_(func, env)
	end
	error("setfenv by stack level is not available", 2)
end)

-- A chunk name is what debug.getinfo reports as the source, so the caller does not choose it.
rawset(globals, "loadstring", function(text)
	return loadstring_(text, "=loadstring")
end)

rawset(globals, "load", function(reader)
	return load_(reader, "=load")
end)
