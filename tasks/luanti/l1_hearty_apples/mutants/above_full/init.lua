core.override_item("default:apple", {
	on_use = function(itemstack, user)
		local hp = user:get_hp() + 4
		if hp > 20 then
			user:set_properties({hp_max = hp})
		end
		user:set_hp(hp)
		itemstack:take_item()
		return itemstack
	end,
	stack_max = 20,
})
