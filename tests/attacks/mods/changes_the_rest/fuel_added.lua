core.register_craft({type = "fuel", recipe = "default:dirt", burntime = 1})
