std = "luajit"
max_line_length = 120
read_globals = {"core", "ItemStack", "PseudoRandom", "PcgRandom", "VoxelManip", "VoxelArea", "vector", "dump"}
globals = {"debug", "string"}
