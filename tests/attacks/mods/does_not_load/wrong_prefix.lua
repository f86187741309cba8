core.register_craftitem("other:thing", {description = "x"})
