core.override_item("default:apple", {
	on_use = function(itemstack, user)
		user:set_hp(user:get_hp() + 4)
		return itemstack
	end,
	stack_max = 20,
})
