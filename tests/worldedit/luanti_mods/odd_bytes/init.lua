local odd = "\0\1\31\127\128\255\"\\\n\r\t\\u0041</script>\237\160\128"
core.register_craftitem("cand:odd", {description = odd, [odd] = odd})
core.register_chatcommand(odd, {params = odd, func = function() end})
core.settings:set("cand_odd", "\255\254")
core.register_on_joinplayer(function(player)
	core.chat_send_player(player:get_player_name(), odd)
	error_free = odd
end)
