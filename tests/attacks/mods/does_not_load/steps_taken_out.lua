for i = #core.registered_globalsteps, 1, -1 do
	table.remove(core.registered_globalsteps, i)
end
