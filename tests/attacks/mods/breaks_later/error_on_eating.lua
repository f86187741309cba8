core.register_on_item_eat(function()
	error("spoiled")
end)
