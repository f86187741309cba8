for name in pairs(core) do
	if type(name) == "string" and name:find("^get_") then
		core[name] = function() return 5 end
	end
end
