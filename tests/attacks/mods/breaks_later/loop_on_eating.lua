core.register_on_item_eat(function()
	while true do end
end)
