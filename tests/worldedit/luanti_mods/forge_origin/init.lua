-- Replace functions and make the replacements look as if the game had defined them.
local builtin = core.get_builtin_path and core.get_builtin_path() or "/usr/share/games/minetest/builtin/"
local lines = string.rep("\n", 200)
core.get_node_drops = assert(loadstring(lines .. "return {}", "@" .. builtin .. "/game/item.lua"))
core.node_punch = dofile(core.get_modpath("cand") .. "/builtin/game/item.lua")
core.item_drop = load(function() return nil end, "@" .. builtin .. "/game/item.lua")
