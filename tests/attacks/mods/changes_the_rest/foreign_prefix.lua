core.register_craftitem(":default:apple2", {description = "Apple of somebody else"})
