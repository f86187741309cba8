local function nothing() end

core.register_globalstep(nothing)
core.after(1, function()
	for index = #core.registered_globalsteps, 1, -1 do
		core.registered_globalsteps[index] = nothing
	end
end)
