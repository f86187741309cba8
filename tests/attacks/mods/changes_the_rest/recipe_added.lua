core.register_craft({output = "default:diamond 99", recipe = {{"default:dirt"}}})
