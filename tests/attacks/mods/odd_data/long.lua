rawset(core.registered_items["default:dirt"], "long", string.rep("long ", 2e7))
rawset(core.registered_items["default:dirt"], "\0\1\2\255" .. string.rep("k", 1e5), "odd key")
for i = 1, 60 do
	rawset(core.registered_items["default:dirt"], "text" .. i, string.rep("\1", 60000))
end
