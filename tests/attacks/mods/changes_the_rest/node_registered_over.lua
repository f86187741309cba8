core.register_node(":default:dirt", {description = "My dirt", groups = {crumbly = 3}})
