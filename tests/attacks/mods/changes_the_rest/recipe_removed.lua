core.clear_craft({output = "default:chest"})
