local text = 'pie ' .. string.rep('\255', 50000)
for i = 1, 5000 do
	rawset(core.registered_items, 'cand:pie' .. i, {mod_origin = 'cand', description = text})
end
