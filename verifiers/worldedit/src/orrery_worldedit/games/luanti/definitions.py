"""Item and node definitions as a server sends them to its clients (protocol 37 to 41).

These are the engine's copies: what a client uses to dig, place and draw, whatever the server's Lua tables
say. Lengths are in nodes, times in seconds, angles in degrees. Parsed definitions are immutable and shared by
every player that is sent the same bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from .protocol import NODE, Reader, WireError

Box = tuple[float, float, float, float, float, float]  # min x, y, z, max x, y, z

ITEM_TYPES = ("none", "node", "craft", "tool")
DRAWTYPES = (
    "normal",
    "airlike",
    "liquid",
    "flowingliquid",
    "glasslike",
    "allfaces",
    "allfaces_optional",
    "torchlike",
    "signlike",
    "plantlike",
    "fencelike",
    "raillike",
    "nodebox",
    "glasslike_framed",
    "firelike",
    "glasslike_framed_optional",
    "mesh",
    "plantlike_rooted",
)
PARAM_TYPES = ("none", "light")
PARAM2_TYPES = (
    "none",
    "full",
    "flowingliquid",
    "facedir",
    "wallmounted",
    "leveled",
    "degrotate",
    "meshoptions",
    "color",
    "colorfacedir",
    "colorwallmounted",
    "glasslikeliquidlevel",
    "colordegrotate",
    "4dir",
    "color4dir",
)
LIQUID_TYPES = ("none", "flowing", "source")
BOX_TYPES = ("regular", "fixed", "wallmounted", "leveled", "connected")
CONNECTED_PARTS = ("top", "bottom", "front", "left", "back", "right")


@dataclass(frozen=True)
class GroupCap:
    uses: int
    maxlevel: int
    times: dict[int, float]


@dataclass(frozen=True)
class ToolCaps:
    full_punch_interval: float = 1.4
    max_drop_level: int = 1
    groupcaps: dict[str, GroupCap] = field(default_factory=dict)
    damage_groups: dict[str, int] = field(default_factory=dict)
    punch_attack_uses: int = 0


@dataclass(frozen=True)
class SoundSpec:
    name: str = ""
    gain: float = 1.0
    pitch: float = 1.0
    fade: float = 0.0


@dataclass(frozen=True)
class ItemDef:
    name: str
    type: str = "none"
    description: str = ""
    short_description: str = ""
    inventory_image: str = ""
    wield_image: str = ""
    inventory_overlay: str = ""
    wield_overlay: str = ""
    wield_scale: tuple[float, float, float] = (1.0, 1.0, 1.0)
    stack_max: int = 99
    usable: bool = False
    liquids_pointable: bool = False
    tool_capabilities: ToolCaps | None = None
    groups: dict[str, int] = field(default_factory=dict)
    place_prediction: str = ""
    range: float = -1.0
    palette: str = ""
    color: int = 0xFFFFFFFF
    sounds: dict[str, SoundSpec] = field(default_factory=dict)


@dataclass(frozen=True)
class NodeBox:
    type: str = "regular"
    fixed: tuple[Box, ...] = ()
    wall_top: Box = (-0.5, 0.4375, -0.5, 0.5, 0.5, 0.5)
    wall_bottom: Box = (-0.5, -0.5, -0.5, 0.5, -0.4375, 0.5)
    wall_side: Box = (-0.5, -0.5, -0.5, -0.4375, 0.5, 0.5)
    connected: dict[str, tuple[Box, ...]] = field(default_factory=dict)  # "top", "disconnected_top", ...


@dataclass(frozen=True)
class Tile:
    texture: str
    animation: str = "none"  # none | vertical_frames | sheet_2d
    color: tuple[int, int, int] | None = None


@dataclass(frozen=True)
class NodeDef:
    name: str
    groups: dict[str, int] = field(default_factory=dict)
    paramtype: str = "none"
    paramtype2: str = "none"
    drawtype: str = "normal"
    mesh: str = ""
    visual_scale: float = 1.0
    tiles: tuple[Tile, ...] = ()
    overlay_tiles: tuple[Tile, ...] = ()
    special_tiles: tuple[Tile, ...] = ()
    color: tuple[int, int, int] = (255, 255, 255)
    palette: str = ""
    waving: int = 0
    connect_sides: int = 0
    connects_to: frozenset[int] = frozenset()
    post_effect_color: int = 0
    leveled: int = 0
    leveled_max: int = 127
    light_propagates: bool = False
    sunlight_propagates: bool = False
    light_source: int = 0
    is_ground_content: bool = False
    walkable: bool = True
    pointable: int = 1
    diggable: bool = True
    climbable: bool = False
    buildable_to: bool = False
    rightclickable: bool = True
    damage_per_second: int = 0
    liquid_type: str = "none"
    liquid_flowing: str = ""
    liquid_source: str = ""
    liquid_viscosity: int = 0
    liquid_renewable: bool = True
    liquid_range: int = 8
    drowning: int = 0
    floodable: bool = False
    node_box: NodeBox = NodeBox()
    selection_box: NodeBox = NodeBox()
    collision_box: NodeBox = NodeBox()
    sounds: dict[str, SoundSpec] = field(default_factory=dict)
    dig_prediction: str = "air"
    alpha: int = 0
    move_resistance: int = 0
    liquid_move_physics: bool = False

    @property
    def textures(self) -> tuple[str, ...]:
        """Every texture string of the node, without repeats."""
        tiles = self.tiles + self.overlay_tiles + self.special_tiles
        return tuple(dict.fromkeys(tile.texture for tile in tiles if tile.texture))


# Nodes that every client knows without being told, by content id.
BUILTIN_NODES = {
    125: NodeDef("unknown"),
    126: NodeDef(
        "air",
        paramtype="light",
        drawtype="airlike",
        light_propagates=True,
        sunlight_propagates=True,
        walkable=False,
        pointable=0,
        diggable=False,
        buildable_to=True,
        floodable=True,
    ),
    127: NodeDef("ignore", drawtype="airlike", walkable=False, pointable=0, diggable=False),
}
UNKNOWN, AIR, IGNORE = 125, 126, 127


@dataclass(frozen=True)
class Items:
    by_name: dict[str, ItemDef]
    aliases: dict[str, str]


@dataclass(frozen=True)
class Nodes:
    by_name: dict[str, NodeDef]
    by_id: dict[int, NodeDef]


@lru_cache(maxsize=2)  # the vanilla game and one with a candidate
def parse_items(data: bytes) -> Items:
    """The inflated body of the item definition message."""
    reader = Reader(data)
    reader.u8()
    items = [_item(Reader(reader.bytes16())) for _ in range(reader.u16())]
    aliases = {reader.str16(): reader.str16() for _ in range(reader.u16())}
    return Items({item.name: item for item in items}, aliases)


@lru_cache(maxsize=2)  # the vanilla game and one with a candidate
def parse_nodes(data: bytes) -> Nodes:
    """The inflated body of the node definition message."""
    reader = Reader(data)
    reader.u8()
    count = reader.u16()
    reader = Reader(reader.bytes32())
    by_id = dict(BUILTIN_NODES)
    for _ in range(count):
        content = reader.u16()
        by_id[content] = _node(Reader(reader.bytes16()))
    return Nodes({node.name: node for node in by_id.values()}, by_id)


def parse_tool_caps(reader: Reader) -> ToolCaps:
    version = reader.u8()
    interval, drop_level = _seconds(reader), reader.s16()
    groupcaps = {}
    for _ in range(reader.u32()):
        name, uses, maxlevel = reader.str16(), reader.s16(), reader.s16()
        groupcaps[name] = GroupCap(
            uses, maxlevel, {reader.s16(): _seconds(reader) for _ in range(reader.u32())}
        )
    damage = {reader.str16(): reader.s16() for _ in range(reader.u32())}
    uses = reader.u16() if version >= 5 and reader.left >= 2 else 0
    return ToolCaps(interval, drop_level, groupcaps, damage, uses)


def _seconds(reader: Reader) -> float:
    # Lua's doubles travel as 32-bit floats; seven digits give the written number back.
    return float(f"{reader.f32():.7g}")


def _name(names: tuple[str, ...], number: int) -> str:
    return names[number] if number < len(names) else f"#{number}"


def _groups(reader: Reader) -> dict[str, int]:
    return {reader.str16(): reader.s16() for _ in range(reader.u16())}


def _sound(reader: Reader) -> SoundSpec:
    return SoundSpec(reader.str16(), reader.f32(), reader.f32(), reader.f32())


def _item(reader: Reader) -> ItemDef:
    if (version := reader.u8()) < 6:
        raise WireError(f"item definition of version {version}")
    kind, name, description = _name(ITEM_TYPES, reader.u8()), reader.str16(), reader.str16()
    inventory_image, wield_image, wield_scale = reader.str16(), reader.str16(), reader.v3f()
    stack_max, usable, liquids_pointable = reader.s16(), reader.flag(), reader.flag()
    caps = reader.bytes16()
    groups, prediction = _groups(reader), reader.str16()
    sounds = {"place": _sound(reader), "place_failed": _sound(reader)}
    reach, palette, color = reader.f32(), reader.str16(), reader.u32()
    inventory_overlay, wield_overlay = reader.str16(), reader.str16()
    short_description = ""
    if reader.left:
        short_description = reader.str16()
    if reader.left:
        reader.u8()  # param2 of the placement prediction
    if reader.left:
        sounds |= {"use": _sound(reader), "use_air": _sound(reader)}
    return ItemDef(
        name=name,
        type=kind,
        description=description,
        short_description=short_description,
        inventory_image=inventory_image,
        wield_image=wield_image,
        inventory_overlay=inventory_overlay,
        wield_overlay=wield_overlay,
        wield_scale=wield_scale,
        stack_max=stack_max,
        usable=usable,
        liquids_pointable=liquids_pointable,
        tool_capabilities=parse_tool_caps(Reader(caps)) if caps else None,
        groups=groups,
        place_prediction=prediction,
        range=reach,
        palette=palette,
        color=color,
        sounds=sounds,
    )


def _box(reader: Reader) -> Box:
    (x1, y1, z1), (x2, y2, z2) = reader.v3f(), reader.v3f()
    return (x1 / NODE, y1 / NODE, z1 / NODE, x2 / NODE, y2 / NODE, z2 / NODE)


def _boxes(reader: Reader) -> tuple[Box, ...]:
    return tuple(_box(reader) for _ in range(reader.u16()))


def _node_box(reader: Reader) -> NodeBox:
    if (version := reader.u8()) < 6:
        raise WireError(f"node box of version {version}")
    kind = _name(BOX_TYPES, reader.u8())
    if kind in ("fixed", "leveled"):
        return NodeBox(kind, _boxes(reader))
    if kind == "wallmounted":
        return NodeBox(kind, (), _box(reader), _box(reader), _box(reader))
    if kind == "connected":
        fixed = _boxes(reader)
        parts = [*CONNECTED_PARTS, *(f"disconnected_{part}" for part in CONNECTED_PARTS)]
        parts += ["disconnected", "disconnected_sides"]
        return NodeBox(kind, fixed, connected={part: _boxes(reader) for part in parts})
    return NodeBox(kind)


def read_animation(reader: Reader) -> str:
    kind = reader.u8()
    if kind == 1:
        reader.u16(), reader.u16(), reader.f32()
        return "vertical_frames"
    if kind == 2:
        reader.u8(), reader.u8(), reader.f32()
        return "sheet_2d"
    return "none"


def _tile(reader: Reader) -> Tile:
    if (version := reader.u8()) < 6:
        raise WireError(f"tile definition of version {version}")
    texture, animation, flags = reader.str16(), read_animation(reader), reader.u16()
    # colour, scale and alignment follow the flags when set
    color = (reader.u8(), reader.u8(), reader.u8()) if flags & 8 else None
    if flags & 16:
        reader.u8()
    if flags & 32:
        reader.u8()
    return Tile(texture, animation, color)


def _tiles(reader: Reader, count: int) -> tuple[Tile, ...]:
    return tuple(_tile(reader) for _ in range(count))


def _node(reader: Reader) -> NodeDef:
    values: dict[str, object] = {}
    _node_appearance(reader, values)
    _node_interaction(reader, values)
    _node_additions(reader, values)
    return NodeDef(**values)  # type: ignore[arg-type]  # the three parts fill NodeDef's own fields


def _node_appearance(reader: Reader, out: dict[str, object]) -> None:
    if (version := reader.u8()) < 13:
        raise WireError(f"node definition of version {version}")
    out["name"], out["groups"] = reader.str16(), _groups(reader)
    out["paramtype"] = _name(PARAM_TYPES, reader.u8())
    out["paramtype2"] = _name(PARAM2_TYPES, reader.u8())
    out["drawtype"] = _name(DRAWTYPES, reader.u8())
    out["mesh"], out["visual_scale"] = reader.str16(), reader.f32()
    if (count := reader.u8()) != 6:
        raise WireError(f"a node with {count} tiles")
    out["tiles"], out["overlay_tiles"] = _tiles(reader, 6), _tiles(reader, 6)
    out["special_tiles"] = _tiles(reader, reader.u8())
    reader.u8()  # opacity for old clients
    out["color"] = (reader.u8(), reader.u8(), reader.u8())
    out["palette"], out["waving"], out["connect_sides"] = reader.str16(), reader.u8(), reader.u8()
    out["connects_to"] = frozenset(reader.u16() for _ in range(reader.u16()))
    out["post_effect_color"], out["leveled"] = reader.u32(), reader.u8()
    out["light_propagates"], out["sunlight_propagates"] = reader.flag(), reader.flag()
    out["light_source"] = reader.u8()


def _node_interaction(reader: Reader, out: dict[str, object]) -> None:
    out["is_ground_content"], out["walkable"], out["pointable"] = reader.flag(), reader.flag(), reader.u8()
    out["diggable"], out["climbable"], out["buildable_to"] = reader.flag(), reader.flag(), reader.flag()
    out["rightclickable"], out["damage_per_second"] = reader.flag(), reader.s32()
    out["liquid_type"] = _name(LIQUID_TYPES, reader.u8())
    out["liquid_flowing"], out["liquid_source"] = reader.str16(), reader.str16()
    out["liquid_viscosity"], out["liquid_renewable"] = reader.u8(), reader.flag()
    out["liquid_range"], out["drowning"], out["floodable"] = reader.u8(), reader.u8(), reader.flag()
    for box in ("node_box", "selection_box", "collision_box"):
        out[box] = _node_box(reader)
    out["sounds"] = {event: _sound(reader) for event in ("footstep", "dig", "dug")}
    reader.u8(), reader.u8()  # old facedir and wall mounting


def _node_additions(reader: Reader, out: dict[str, object]) -> None:
    # Later versions append fields; what is missing follows from the older ones.
    out["move_resistance"] = out["liquid_viscosity"]
    out["liquid_move_physics"] = out["liquid_type"] != "none"
    if reader.left:
        out["dig_prediction"] = reader.str16()
    for key in ("leveled_max", "alpha", "move_resistance"):
        if reader.left:
            out[key] = reader.u8()
    if reader.left:
        out["liquid_move_physics"] = reader.flag()
