core.override_item("default:apple", {
	on_use = core.item_eat(4),
	on_place = function(itemstack)
		return itemstack
	end,
	stack_max = 20,
})
