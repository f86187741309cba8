core.register_on_item_eat(function(hp_change, replace_with_item, itemstack, user)
	user:set_hp(user:get_hp() + hp_change)
end)
core.override_item("default:apple", {stack_max = 20})
