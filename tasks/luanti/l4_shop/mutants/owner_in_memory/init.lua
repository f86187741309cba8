local SHOP = "goldshop:shop"
local FORM = "goldshop:form"
local COIN = "default:gold_ingot"
local SLOTS = 16
local MAX_PRICE = 99

-- player name -> position of the shop whose form is open
local open_shops = {}
local owners, prices = {}, {}

local function is_owner(pos, name)
	return name ~= "" and owners[core.hash_node_position(pos)] == name
end

local function get_price(pos)
	return prices[core.hash_node_position(pos)] or 0
end

local function first_goods(inv)
	for slot = 1, inv:get_size("stock") do
		local stack = inv:get_stack("stock", slot)
		if not stack:is_empty() then
			return stack, slot
		end
	end
end

local function owner_form(pos)
	local place = ("nodemeta:%d,%d,%d"):format(pos.x, pos.y, pos.z)
	local price = get_price(pos)
	return "size[8,10.5]" ..
		"label[0,0;Stock]list[" .. place .. ";stock;0,0.4;8,2;]" ..
		"label[0,2.6;Till]list[" .. place .. ";till;0,3;8,2;]" ..
		"field[0.3,5.8;2,1;price;Price;" .. (price > 0 and price or "") .. "]" ..
		"button[2.2,5.5;2,1;save;Save]" ..
		"list[current_player;main;0,6.6;8,4;]"
end

local function buyer_form(pos)
	local goods = first_goods(core.get_meta(pos):get_inventory())
	local price = get_price(pos)
	local offer = "Nothing for sale"
	if goods and price > 0 then
		offer = ("%s for %d gold"):format(goods:get_short_description(), price)
	end
	return "size[8,6]" ..
		"label[0.2,0.2;" .. core.formspec_escape(offer) .. "]" ..
		"button[0.2,0.9;2,1;buy;Buy]" ..
		"list[current_player;main;0,2;8,4;]"
end

local function show(pos, name)
	open_shops[name] = pos
	core.show_formspec(name, FORM, is_owner(pos, name) and owner_form(pos) or buyer_form(pos))
end

local function save_price(pos, text)
	local price = tonumber(text)
	if price and price == math.floor(price) and price >= 1 and price <= MAX_PRICE then
		prices[core.hash_node_position(pos)] = price
	end
end

-- Everything is tried on copies first; only a sale that fits on both sides is written back.
local function sell(pos, buyer)
	local price = get_price(pos)
	local shop = core.get_meta(pos):get_inventory()
	local goods, slot = first_goods(shop)
	if price < 1 or not goods then
		return
	end
	local purse = buyer:get_inventory()
	local coins = ItemStack({name = COIN, count = price})
	if not purse:contains_item("main", coins) or not shop:room_for_item("till", coins) then
		return
	end
	local before = purse:get_list("main")
	local item = goods:take_item(1)
	purse:remove_item("main", coins)
	if not purse:room_for_item("main", item) then
		purse:set_list("main", before)
		return
	end
	purse:add_item("main", item)
	shop:set_stack("stock", slot, goods)
	shop:add_item("till", coins)
end

core.register_on_player_receive_fields(function(player, form, fields)
	if form ~= FORM then
		return
	end
	local name = player:get_player_name()
	local pos = open_shops[name]
	if not pos or core.get_node(pos).name ~= SHOP or vector.distance(pos, player:get_pos()) > 10 then
		return true
	end
	if fields.quit then
		open_shops[name] = nil
	elseif is_owner(pos, name) then
		if fields.save then
			save_price(pos, fields.price)
			show(pos, name)
		end
	elseif fields.buy then
		sell(pos, player)
		show(pos, name)
	end
	return true
end)

core.register_on_leaveplayer(function(player)
	open_shops[player:get_player_name()] = nil
end)

local function allow(pos, player, count)
	return is_owner(pos, player:get_player_name()) and count or 0
end

core.register_node(SHOP, {
	description = "Shop",
	tiles = {
		"goldshop_top.png", "goldshop_top.png",
		"goldshop_side.png", "goldshop_side.png", "goldshop_side.png", "goldshop_front.png",
	},
	paramtype2 = "facedir",
	groups = {choppy = 2, oddly_breakable_by_hand = 2},
	sounds = default.node_sound_wood_defaults(),
	on_construct = function(pos)
		local inv = core.get_meta(pos):get_inventory()
		inv:set_size("stock", SLOTS)
		inv:set_size("till", SLOTS)
	end,
	after_place_node = function(pos, placer)
		local meta = core.get_meta(pos)
		owners[core.hash_node_position(pos)] = placer:get_player_name()
		meta:set_string("infotext", "Shop of " .. placer:get_player_name())
	end,
	on_rightclick = function(pos, node, clicker)
		show(pos, clicker:get_player_name())
	end,
	can_dig = function(pos, player)
		local inv = core.get_meta(pos):get_inventory()
		return is_owner(pos, player and player:get_player_name() or "") and
			inv:is_empty("stock") and inv:is_empty("till")
	end,
	on_blast = function() end,
	allow_metadata_inventory_put = function(pos, list, index, stack, player)
		return allow(pos, player, stack:get_count())
	end,
	allow_metadata_inventory_take = function(pos, list, index, stack, player)
		return allow(pos, player, stack:get_count())
	end,
	allow_metadata_inventory_move = function(pos, from_list, from_index, to_list, to_index, count, player)
		return allow(pos, player, count)
	end,
})

local PLANK = "default:wood"

core.register_craft({
	output = SHOP,
	recipe = {
		{PLANK, COIN, PLANK},
		{PLANK, "default:chest", PLANK},
		{PLANK, PLANK, PLANK},
	},
})
