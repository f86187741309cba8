core.register_craftitem("other:thing", {description = "Thing"})
