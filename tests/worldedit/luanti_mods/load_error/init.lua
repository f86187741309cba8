local nothing
nothing.field = 1
