core.override_item("default:apple", {
	on_use = core.item_eat(2 + 4),
	stack_max = 20,
})
