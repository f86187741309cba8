local wide = {}
for i = 1, 200000 do wide[i] = i end
rawset(core.registered_items["default:dirt"], "wide", wide)
for i = 1, 3000 do core.registered_aliases["cand:alias" .. i] = string.rep("x", 5000) end
