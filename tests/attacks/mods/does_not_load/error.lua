error("no")
