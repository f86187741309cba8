local WINDOW = 3.05 -- three seconds, and half a server step for the clock's grain
local HITS = 3

-- attacker name -> {target, hits, last}
local combos = {}

local function forget(name)
	combos[name] = nil
	for attacker, combo in pairs(combos) do
		if combo.target == name then
			combos[attacker] = nil
		end
	end
end

local clock = 0
core.register_globalstep(function(dtime)
	clock = clock + dtime
end)

-- Counts one hit; true when it completes a combo.
local function counts_as_last(attacker, target)
	local combo = combos[attacker]
	if not combo or combo.target ~= target or clock - combo.last > WINDOW then
		combo = {target = target, hits = 0}
		combos[attacker] = combo
	end
	combo.hits = combo.hits + 1
	combo.last = clock
	if combo.hits == HITS then
		combos[attacker] = nil
		return true
	end
	return false
end

core.register_on_player_hpchange(function(player, hp_change, reason)
	local hitter = reason.type == "punch" and reason.object
	if not hitter or not hitter:is_player() or hp_change >= 0 then
		return hp_change
	end
	if counts_as_last(hitter:get_player_name(), player:get_player_name()) then
		return hp_change * 2
	end
	return hp_change
end, true)

core.register_on_leaveplayer(function(player)
	forget(player:get_player_name())
end)
