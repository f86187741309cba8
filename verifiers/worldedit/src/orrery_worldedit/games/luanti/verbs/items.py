"""Items.

Giving, holding, using, digging and placing with them, crafting, smelting, and what they are defined as.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from orrery_worldedit.engine import StepStopped
from orrery_worldedit.games.luanti.verbs.base import VerbsBase, stack_count, stack_name, stack_wear
from orrery_worldedit.verbs import Kind, Position, verb

FACES = {
    "floor": (0, -1, 0),
    "ceiling": (0, 1, 0),
    "wall": (0, 0, 1),
    "wall_left": (-1, 0, 0),
    "wall_right": (1, 0, 0),
}
"""Against which neighbour something is placed."""

_GIVE = """
local inv = I.ObjectRef.get_inventory(player(arg.name))
local one = ItemStack(arg.item .. " 1 " .. arg.wear)
if not I.ItemStack.is_known(one) then return false end
if arg.slot then
	I.InvRef.set_stack(inv, "main", arg.slot, ItemStack(arg.item .. " " .. arg.count .. " " .. arg.wear))
else
	-- One by one, as a player picks things up: the engine decides where a stack ends.
	for _ = 1, arg.count do I.InvRef.add_item(inv, "main", one) end
end
return true
"""


_CLEAR = """
local inv = I.ObjectRef.get_inventory(player(arg))
for _, list in ipairs({"main", "craft"}) do
	for i = 1, I.InvRef.get_size(inv, list) do I.InvRef.set_stack(inv, list, i, "") end
end
"""

_FURNACE = """
local inv = I.NodeMetaRef.get_inventory(C.get_meta(arg))
local function totals(list)
	local found = {}
	for i = 1, I.InvRef.get_size(inv, list) do
		local stack = I.InvRef.get_stack(inv, list, i)
		local name = I.ItemStack.get_name(stack)
		if name ~= "" then found[name] = (found[name] or 0) + I.ItemStack.get_count(stack) end
	end
	return found
end
return {made = totals("dst"), source = totals("src"), fuel = totals("fuel")}
"""

_RECIPES = """
local recipes = C.get_all_craft_recipes(arg) or {}
for _, recipe in ipairs(recipes) do
	local items = {}
	for i = 1, 9 do items[i] = recipe.items[i] or "" end
	recipe.items, recipe.output = items, tostring(recipe.output)
end
return recipes
"""


class Items(VerbsBase):
    """Verbs about items in hands and inventories."""

    @verb(Kind.FIXTURE)
    def give(self, player: str, item: str, count: int = 1, slot: int | None = None, wear: int = 0) -> None:
        """Put items into a player's main list; slot counts from 1, the first free one by default."""
        arg = {"name": self.player_name(player), "item": item, "count": count, "wear": wear, "slot": slot}
        if not self.ask(_GIVE, arg):
            raise StepStopped(f'there is no item "{item}"')
        self.world.act()

    @verb(Kind.FIXTURE)
    def clear_inventory(self, player: str) -> None:
        """Take everything a player carries, the craft grid included."""
        self.ask(
            _CLEAR,
            self.player_name(player),
        )
        self.world.act()

    @verb(Kind.ACT)
    def hold(self, player: str, item: str) -> None:
        """Select the hotbar slot that holds an item."""
        main = self.bot(player).inventory.get("main", [])
        slots = [index for index, stack in enumerate(main[:8]) if stack_name(stack) == item]
        if not slots:
            raise StepStopped(f"{player} has no {item} in the hotbar")
        self.bot(player).select(slots[0])
        self.world.act()

    @verb(Kind.ACT)
    def dig(self, player: str, at: Position, timeout: float = 60.0) -> dict[str, Any]:
        """Dig a node as a client does, for as long as the definitions it was sent say.

        Answers `possible`, `seconds`, `gone`, `wear` (added to the tool), `cheats` (the server's complaints)
        and `got`
        (name -> count gained).
        """
        bot, where = self.bot(player), self.node_position(at)
        self.world.act()
        before = bot.node(where)
        hand = self._hand(player)
        time = bot.dig_time(before, stack_name(hand)) if before else None
        if before is None or time is None or time.seconds > timeout:
            return {"possible": False, "seconds": None, "gone": False, "wear": 0, "cheats": [], "got": {}}
        had, mark = self._totals(player), len(self.world.events)
        above = (where[0], where[1], where[2] - 1)
        bot.dig_start(where, above)
        self.world.act(time.seconds + self.world.step_s)
        bot.dig_finish(where, above)
        self.world.act(0.3)
        now = self._totals(player)
        cheats = [event.data.get("type") for event in self.world.events[mark:] if event.kind == "cheat"]
        gone = self.ask("return C.get_node(arg).name", self.position(at)) != before
        return {
            "possible": True,
            "seconds": round(time.seconds, 4),
            "gone": gone,
            "wear": stack_wear(self._hand(player)) - stack_wear(hand),
            "cheats": cheats,
            "got": {
                name: now[name] - had.get(name, 0) for name in sorted(now) if now[name] > had.get(name, 0)
            },
        }

    @verb(Kind.ACT)
    def place(self, player: str, at: Position, against: str = "floor") -> dict[str, Any]:
        """Place what is in hand so that it stands at a place, against its floor, ceiling or wall.

        Answers `node` (what stands there now) and `left` (how many are still in hand).
        """
        if against not in FACES:
            raise StepStopped(f"against must be one of {', '.join(FACES)}")
        bot, where = self.bot(player), self.node_position(at)
        face = FACES[against]
        under = (where[0] + face[0], where[1] + face[1], where[2] + face[2])
        self.world.act()
        bot.place(under, where)
        self.world.act(0.3)
        return {
            "node": self.ask("return C.get_node(arg).name", self.position(at)),
            "left": stack_count(self._hand(player)),
        }

    @verb(Kind.ACT)
    def use(self, player: str, at: Position | None = None, times: int = 1, interval: float = 0.3) -> None:
        """Use (left-click) what is in hand, in the air or on a node."""
        bot = self.bot(player)
        where = self.node_position(at) if at else None
        for _ in range(times):
            if where:
                bot.use(where, (where[0], where[1] + 1, where[2]))
            else:
                bot.use()
            self.world.act(interval)

    @verb(Kind.ACT)
    def use_on(self, player: str, at: Position, times: int = 1, interval: float = 0.3) -> None:
        """Right-click a node from above with what is in hand."""
        bot, where = self.bot(player), self.node_position(at)
        for _ in range(times):
            bot.place(where, (where[0], where[1] + 1, where[2]))
            self.world.act(interval)

    @verb(Kind.ACT)
    def craft(self, player: str, grid: list[list[str]]) -> dict[str, Any]:
        """Lay a recipe into the craft grid with the player's own items, take the result.

        Answers `result` (item name, empty when the grid makes nothing), `count` and `left` (items still in
        the grid).
        """
        bot = self.bot(player)
        self.world.act()
        for row, names in enumerate(grid):
            for column, name in enumerate(names):
                if name:
                    self._lay(player, name, 3 * row + column)
        preview = (bot.inventory.get("craftpreview") or [""])[0]
        if stack_name(preview):
            bot.craft(1)
            self.world.act(0.2)
            bot.move_stack("craftresult", 0, "main", self._free_slot(player), stack_count(preview))
            self.world.act(0.2)
        left = sum(stack_count(stack) for stack in bot.inventory.get("craft", []))
        return {"result": stack_name(preview), "count": stack_count(preview), "left": left}

    @verb(Kind.ACT)
    def smelt(self, player: str, at: Position, fuel: str, source: str, seconds: float) -> dict[str, Any]:
        """Load a furnace with everything the player has of a fuel and a source, wait, take the result.

        Answers `made`, `source` and `fuel`: name -> count of what lies in the furnace then.
        """
        bot = self.bot(player)
        self.world.act()
        place = "nodemeta:{},{},{}".format(*self.node_position(at))
        for item, target in ((source, "src"), (fuel, "fuel")):
            for slot, stack in enumerate(bot.inventory.get("main", [])):
                if stack_name(stack) == item:
                    bot.move_stack("main", slot, target, 0, stack_count(stack), to_inv=place)
                    self.world.act()
        self.world.run(seconds)
        self.world.act()
        return dict(self.ask(_FURNACE, self.position(at)))

    @verb(Kind.MEASURE)
    def inventory(self, player: str, list: str = "main") -> dict[str, int]:
        """Item name -> count in one of the player's lists, as the client sees it."""
        self.world.act()
        return self._totals(player, list)

    @verb(Kind.MEASURE)
    def stacks(self, player: str, list: str = "main") -> list[int]:
        """Sizes of the stacks in one of the player's lists, empty slots left out."""
        self.world.act()
        return [stack_count(stack) for stack in self.bot(player).inventory.get(list, []) if stack_name(stack)]

    @verb(Kind.MEASURE)
    def wear(self, player: str) -> int:
        """Wear of the tool in hand, 0 to 65535."""
        self.world.act()
        return stack_wear(self._hand(player))

    @verb(Kind.MEASURE)
    def definition(self, player: str, item: str) -> dict[str, Any]:
        """An item as its definition reached this player's client.

        Stack_max, groups, tool capabilities, images, description.
        """
        found = self.bot(player).items.get(item)
        if found is None:
            raise StepStopped(f'the client knows no item "{item}"')
        return _fields(found)

    @verb(Kind.MEASURE)
    def node_definition(self, player: str, node: str) -> dict[str, Any]:
        """A node as its definition reached this player's client.

        Groups, light_source, walkable, drawtype and so on.
        """
        found = self.bot(player).nodes.get(node)
        if found is None:
            raise StepStopped(f'the client knows no node "{node}"')
        return _fields(found)

    @verb(Kind.MEASURE)
    def texture(self, player: str, item: str) -> dict[str, Any]:
        """The picture an item is shown with.

        `name`, whether it is `served`, and whether it is the mod's `own` (not the game's).
        """
        bot = self.bot(player)
        found = bot.items.get(item)
        node = bot.nodes.get(item)
        image = str(found.inventory_image if found else "") or (
            node.tiles[0].texture if node and node.tiles else ""
        )
        base = image.split("^")[0]
        digest = bot.media_index.get(base)
        own = digest is not None and digest not in self.vanilla_pictures()
        return {"name": base, "served": digest is not None, "own": own}

    @verb(Kind.MEASURE)
    def recipes(self, item: str) -> list[dict[str, Any]]:
        """Every recipe the engine knows for an item: method, width, items (by slot), output."""
        found = self.ask(
            _RECIPES,
            item,
        )
        return list(found or [])

    @verb(Kind.MEASURE)
    def burn_time(self, item: str) -> float:
        """Seconds an item burns as fuel, 0 for what does not burn."""
        return float(
            self.ask("return C.get_craft_result({method = 'fuel', width = 1, items = {arg}}).time", item)
        )

    def _hand(self, player: str) -> str:
        bot = self.bot(player)
        main = bot.inventory.get("main", [])
        return main[bot.wield] if bot.wield < len(main) else ""

    def _totals(self, player: str, list_name: str = "main") -> dict[str, int]:
        totals: dict[str, int] = {}
        for stack in self.bot(player).inventory.get(list_name, []):
            if name := stack_name(stack):
                totals[name] = totals.get(name, 0) + stack_count(stack)
        return dict(sorted(totals.items()))

    def _lay(self, player: str, name: str, slot: int) -> None:
        bot = self.bot(player)
        sources = [
            index for index, stack in enumerate(bot.inventory.get("main", [])) if stack_name(stack) == name
        ]
        if not sources:
            raise StepStopped(f"{player} has no {name} to lay into the grid")
        bot.move_stack("main", sources[0], "craft", slot, 1)
        self.world.act()

    def _free_slot(self, player: str) -> int:
        main = self.bot(player).inventory.get("main", [])
        free = [index for index, stack in enumerate(main) if not stack_name(stack)]
        if not free:
            raise StepStopped(f"{player}'s inventory is full")
        return free[-1]


def _fields(definition: Any) -> dict[str, Any]:
    return {key: _json(value) for key, value in asdict(definition).items()}


def _json(value: Any) -> Any:
    """Plain JSON data of a definition: integer keys of tables as text, tuples as lists."""
    if isinstance(value, dict):
        return {str(key): _json(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_json(part) for part in value]
    if isinstance(value, set | frozenset):
        return sorted(value)
    return round(value, 4) if isinstance(value, float) else value
