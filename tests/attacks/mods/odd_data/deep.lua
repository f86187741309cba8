-- Later than load time, when the engine itself copies every definition for its worker threads.
core.after(0, function()
	local top = {}
	local here = top
	for _ = 1, 20000 do
		here.x = {}
		here = here.x
	end
	rawset(core.registered_items["default:dirt"], "deep", top)
	rawset(core.registered_items["default:dirt"], "cycle", core.registered_items)
end)
