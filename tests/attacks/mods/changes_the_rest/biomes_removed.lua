core.clear_registered_biomes()
