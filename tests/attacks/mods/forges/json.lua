core.write_json = function() return "{}" end
core.parse_json = function() return {op = "none"} end
