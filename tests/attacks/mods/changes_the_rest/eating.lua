core.override_item("default:apple", {on_use = core.item_eat(20)})
