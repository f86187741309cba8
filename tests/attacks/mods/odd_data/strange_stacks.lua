core.register_globalstep(function()
	for _, p in ipairs(core.get_connected_players()) do
		local stack = ItemStack("default:apple 65535 65535")
		stack:get_meta():set_string("\1\2\3", string.rep("\255\0\n ", 5000))
		stack:get_meta():set_string("description", "\27(T@x)" .. string.rep("a", 30000))
		for i = 1, 32 do p:get_inventory():set_stack("main", i, stack) end
	end
end)
