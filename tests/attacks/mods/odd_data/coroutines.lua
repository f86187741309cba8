core.register_on_joinplayer(function()
	local function f() return coroutine.wrap(function() return f() end)() end
	f()
end)
