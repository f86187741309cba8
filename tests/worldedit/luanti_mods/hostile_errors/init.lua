-- An error value that does something when it is turned into text.
local bomb = setmetatable({}, {
	__tostring = function()
		while true do end
	end,
})
core.register_chatcommand("bomb", {
	func = function()
		error(bomb)
	end,
})
