core.register_craftitem("cand:thing", {description = "Thing"})
