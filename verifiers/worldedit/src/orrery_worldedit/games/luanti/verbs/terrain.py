"""Nodes, light and time."""

from __future__ import annotations

from typing import Any

from orrery_worldedit.engine import StepStopped
from orrery_worldedit.games.luanti.verbs.base import VerbsBase
from orrery_worldedit.verbs import Kind, Position, verb

ARENA = 10
"""Half width of the part of the arena that is made anew for every check, in nodes."""
ARENA_HEIGHT = 14
NOON = 0.5

_FILL = """
local places = {}
for x = arg.a.x, arg.b.x do for y = arg.a.y, arg.b.y do for z = arg.a.z, arg.b.z do
	places[#places + 1] = {x = x, y = y, z = z}
end end end
C.bulk_set_node(places, {name = arg.node})
"""

_DRAIN = """
for _, p in ipairs(C.find_nodes_in_area(arg.a, arg.b, {"group:water", "group:lava", "group:liquid"})) do
	C.set_node(p, {name = arg.node})
end
"""

_COUNT = """
local found = {}
for x = arg.a.x, arg.b.x do for y = arg.a.y, arg.b.y do for z = arg.a.z, arg.b.z do
	local name = C.get_node({x = x, y = y, z = z}).name
	if name ~= "air" then found[name] = (found[name] or 0) + 1 end
end end end
return found
"""

_DROPPED = """
local found = {}
for _, object in ipairs(C.get_objects_inside_radius(arg.at, arg.radius)) do
	local entity = I.ObjectRef.get_luaentity(object)
	if entity and entity.name == "__builtin:item" then
		local stack = ItemStack(entity.itemstring)
		local name = I.ItemStack.get_name(stack)
		found[name] = (found[name] or 0) + I.ItemStack.get_count(stack)
	end
end
return found
"""

_TIMER = """
local timer = C.get_node_timer(arg)
return {
	running = I.NodeTimerRef.is_started(timer),
	timeout = I.NodeTimerRef.get_timeout(timer),
	elapsed = I.NodeTimerRef.get_elapsed(timer),
}
"""

_RESET = """
local o, r, top = arg.origin, arg.radius, arg.height
local stone, air = {}, {}
for x = o.x - r, o.x + r do for z = o.z - r, o.z + r do
	for y = o.y - 3, o.y + top do
		local p = {x = x, y = y, z = z}
		local name = C.get_node(p).name
		if y < o.y then
			if name ~= arg.ground then stone[#stone + 1] = p end
		elseif name ~= "air" then air[#air + 1] = p end
	end
end end
if #stone > 0 then C.bulk_set_node(stone, {name = arg.ground}) end
if #air > 0 then C.bulk_set_node(air, {name = "air"}) end
for _, object in ipairs(C.get_objects_inside_radius(o, 3 * r)) do
	if not I.ObjectRef.is_player(object) then I.ObjectRef.remove(object) end
end
C.set_timeofday(arg.time)
return #stone + #air
"""


class Terrain(VerbsBase):
    """Verbs about the ground, single nodes, light and the clock."""

    def reset_arena(self) -> None:
        """Bare stone ground, air above, no objects, noon."""
        self.ask(
            _RESET,
            {
                "origin": self.position([0, 0, 0]),
                "radius": ARENA,
                "height": ARENA_HEIGHT,
                "ground": "default:stone",
                "time": NOON,
            },
        )
        self.world.run(0.2)

    @verb(Kind.FIXTURE)
    def set_node(self, at: Position, node: str, param2: int = 0) -> None:
        """Put a node, with its callbacks, as the game itself would."""
        self.ask(
            "C.set_node(arg.at, {name = arg.node, param2 = arg.param2})",
            {"at": self.position(at), "node": node, "param2": param2},
        )

    @verb(Kind.FIXTURE)
    def fill(self, low: Position, high: Position, node: str) -> None:
        """Fill a box of nodes, both corners included."""
        self.ask(
            _FILL,
            {"a": self.position(low), "b": self.position(high), "node": node},
        )

    @verb(Kind.FIXTURE)
    def drain(self, low: Position, high: Position, node: str = "air") -> None:
        """Replace every liquid in a box, flowing or not."""
        self.ask(
            _DRAIN,
            {"a": self.position(low), "b": self.position(high), "node": node},
        )

    @verb(Kind.FIXTURE)
    def set_time(self, time: float) -> None:
        """Time of day from 0 (midnight) over 0.5 (noon) to 1."""
        self.ask("C.set_timeofday(arg)", time)
        self.world.run(0.2)

    @verb(Kind.FIXTURE)
    def set_timer(self, at: Position, seconds: float) -> None:
        """Let a node's own timer end after so many seconds, as if it had run until then."""
        self.ask(
            "I.NodeTimerRef.start(C.get_node_timer(arg.at), arg.seconds)",
            {"at": self.position(at), "seconds": seconds},
        )

    @verb(Kind.ACT)
    def wait(self, seconds: float) -> None:
        """Let game time pass; players stand still."""
        self.world.run(seconds)
        self.world.act()

    @verb(Kind.MEASURE)
    def node(self, at: Position) -> str:
        """Name of the node at a place; the server's answer, checked against what a player there was sent."""
        self.world.act()
        name = str(self.ask("return C.get_node(arg).name", self.position(at)))
        where = self.node_position(at)
        for bot in self.world.players.values():
            seen = bot.node(where)
            if seen not in (None, "ignore", name):
                raise StepStopped(f"the server says {name} at {at}, players see {seen}")
        return name

    @verb(Kind.MEASURE)
    def nodes(self, low: Position, high: Position) -> dict[str, int]:
        """How many of each node stand in a box, by name, air left out."""
        found: dict[str, Any] = self.ask(
            _COUNT,
            {"a": self.position(low), "b": self.position(high)},
        )
        return dict(found or {})

    @verb(Kind.MEASURE)
    def light(self, at: Position, time: float = 0.0) -> int:
        """Light level 0 to 15 at a place, as it is at the given time of day (midnight by default)."""
        return int(
            self.ask(
                "return C.get_node_light(arg.at, arg.time) or -1", {"at": self.position(at), "time": time}
            )
        )

    @verb(Kind.MEASURE)
    def meta(self, at: Position, key: str) -> str:
        """A text field of a node's metadata."""
        return str(
            self.ask(
                "return I.NodeMetaRef.get_string(C.get_meta(arg.at), arg.key)",
                {"at": self.position(at), "key": key},
            )
        )

    @verb(Kind.MEASURE)
    def timer(self, at: Position) -> dict[str, Any]:
        """A node's timer: `running`, `timeout` and `elapsed` in seconds."""
        found: dict[str, Any] = self.ask(
            _TIMER,
            self.position(at),
        )
        return {
            "running": found["running"],
            "timeout": round(found["timeout"], 2),
            "elapsed": round(found["elapsed"], 2),
        }

    @verb(Kind.MEASURE)
    def dropped(self, at: Position, radius: float = 3.0) -> dict[str, int]:
        """Items lying about near a place: name to count."""
        found: dict[str, Any] = self.ask(
            _DROPPED,
            {"at": self.position(at), "radius": radius},
        )
        return dict(found or {})
