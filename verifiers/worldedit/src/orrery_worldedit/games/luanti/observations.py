"""What a server shows a player, one parse function per kind of message.

Positions and velocities are in nodes and nodes per second.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .definitions import Box, read_animation
from .protocol import NODE, NodePos, Reader, Vec, WireError, inflate

BLOCK = 16  # nodes along one edge of a map block
BLOCK_NODES = BLOCK**3
MAX_BLOCK_DATA = 4 << 20
MAX_META = 16 << 20

HUD_TYPES = (
    "image",
    "text",
    "statbar",
    "inventory",
    "waypoint",
    "image_waypoint",
    "compass",
    "minimap",
    "hotbar",
)
HUD_STATS = (
    "pos",
    "name",
    "scale",
    "text",
    "number",
    "item",
    "dir",
    "align",
    "offset",
    "world_pos",
    "size",
    "z_index",
    "text2",
    "style",
)
HUD_FLAGS = (
    "hotbar",
    "healthbar",
    "crosshair",
    "wielditem",
    "breathbar",
    "minimap",
    "minimap_radar",
    "basic_debug",
)


@dataclass(frozen=True, slots=True)
class Seen:
    """One entry of a player's log."""

    kind: str
    data: dict[str, object]


@dataclass
class Hud:
    id: int
    type: str
    pos: tuple[float, float] = (0.0, 0.0)
    name: str = ""
    scale: tuple[float, float] = (0.0, 0.0)
    text: str = ""
    number: int = 0
    item: int = 0
    dir: int = 0
    align: tuple[float, float] = (0.0, 0.0)
    offset: tuple[float, float] = (0.0, 0.0)
    world_pos: Vec = (0.0, 0.0, 0.0)
    size: tuple[int, int] = (0, 0)
    z_index: int = 0
    text2: str = ""
    style: int = 0


@dataclass
class Obj:
    """An active object: a player, a dropped item, a mob. Position and velocity are as last sent.

    `name` is a player's name; of other objects only newer servers tell it.
    """

    id: int
    name: str = ""
    is_player: bool = False
    pos: Vec = (0.0, 0.0, 0.0)
    rotation: Vec = (0.0, 0.0, 0.0)
    velocity: Vec = (0.0, 0.0, 0.0)
    acceleration: Vec = (0.0, 0.0, 0.0)
    hp: int = 0
    hp_max: int = 0
    breath_max: int = 0
    physical: bool = False
    collide_with_objects: bool = False
    collisionbox: Box = (-0.5, -0.5, -0.5, 0.5, 0.5, 0.5)
    selectionbox: Box = (-0.5, -0.5, -0.5, 0.5, 0.5, 0.5)
    pointable: int = 1
    visual: str = ""
    visual_size: Vec = (1.0, 1.0, 1.0)
    textures: list[str] = field(default_factory=list)
    mesh: str = ""
    colors: list[int] = field(default_factory=list)
    is_visible: bool = True
    makes_footstep_sound: bool = False
    automatic_rotate: float = 0.0
    stepheight: float = 0.0
    nametag: str = ""
    nametag_color: int = 0
    infotext: str = ""
    wield_item: str = ""
    glow: int = 0
    eye_height: float = 1.625
    zoom_fov: float = 0.0
    damage_texture_modifier: str = ""
    texture_modifier: str = ""
    armor_groups: dict[str, int] = field(default_factory=dict)
    animation: tuple[float, float, float] | None = None  # first frame, last frame, frames per second
    bones: dict[str, tuple[Vec, Vec]] = field(default_factory=dict)
    attached_to: int = 0
    attach_bone: str = ""
    attach_pos: Vec = (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Sound:
    id: int
    name: str
    gain: float
    location: str  # local | position | object
    pos: Vec
    object_id: int
    loop: bool
    fade: float = 0.0
    pitch: float = 1.0
    ephemeral: bool = False


@dataclass(frozen=True)
class Particle:
    pos: Vec
    velocity: Vec
    acceleration: Vec
    lifetime: float
    size: float
    texture: str
    glow: int = 0


@dataclass(frozen=True)
class Spawner:
    id: int
    amount: int
    time: float
    pos: tuple[Vec, Vec]
    velocity: tuple[Vec, Vec]
    acceleration: tuple[Vec, Vec]
    lifetime: tuple[float, float]
    size: tuple[float, float]
    texture: str
    attached_to: int
    glow: int = 0


@dataclass
class NodeMeta:
    fields: dict[str, str] = field(default_factory=dict)
    private: set[str] = field(default_factory=set)
    inventory: dict[str, list[str]] = field(default_factory=dict)

    @property
    def formspec(self) -> str:
        return self.fields.get("formspec", "")

    @property
    def infotext(self) -> str:
        return self.fields.get("infotext", "")


@dataclass(frozen=True)
class Block:
    pos: NodePos
    nodes: bytes  # 4096 content ids as u16, 4096 param1, 4096 param2; x fastest, then y, then z
    meta: dict[NodePos, NodeMeta]


def parse_inventory(text: str, previous: dict[str, list[str]]) -> dict[str, list[str]]:
    """The lists of an inventory message; `previous` fills in what the server left out as unchanged."""
    lists: dict[str, list[str]] = {}
    current: list[str] | None = None
    old: list[str] = []
    for line in text.split("\n"):
        word, _, rest = line.partition(" ")
        if word == "List":
            name = rest.rsplit(" ", 1)[0]
            current, old = [], previous.get(name, [])
            lists[name] = current
        elif word == "KeepList":
            lists[rest] = list(previous.get(rest, []))
        elif word == "EndInventoryList":
            current = None
        elif word == "EndInventory":
            break
        elif current is not None and word in ("Item", "Empty", "Keep"):
            kept = old[len(current)] if word == "Keep" and len(current) < len(old) else ""
            current.append(kept if word == "Keep" else rest)
    return lists


def _inventory_text(reader: Reader) -> str:
    end = reader.data.find(b"EndInventory\n", reader.pos)
    if end < 0:
        raise WireError("an inventory without an end")
    return reader.take(end + len(b"EndInventory\n") - reader.pos).decode("utf-8", "replace")


def parse_meta(data: bytes, origin: NodePos | None = None) -> dict[NodePos, NodeMeta]:
    """Node metadata by position: relative to the block at `origin`, or absolute without one."""
    reader = Reader(data)
    version = reader.u8()
    if version == 0:
        return {}
    if version > 2:
        raise WireError(f"node metadata of version {version}")
    out = {}
    for _ in range(reader.u16()):
        pos = reader.v3s16() if origin is None else _in_block(origin, reader.u16())
        meta = NodeMeta()
        for _ in range(reader.u32()):
            key, value = reader.str16(), reader.str32()
            meta.fields[key] = value
            if version >= 2 and reader.flag():
                meta.private.add(key)
        meta.inventory = parse_inventory(_inventory_text(reader), {})
        out[pos] = meta
    return out


def _in_block(origin: NodePos, index: int) -> NodePos:
    x, y, z = origin
    return (
        x * BLOCK + index % BLOCK,
        y * BLOCK + index // BLOCK % BLOCK,
        z * BLOCK + index // BLOCK**2 % BLOCK,
    )


def parse_block(reader: Reader) -> Block:
    pos = reader.v3s16()
    reader.u8(), reader.u16()  # flags, lighting state
    widths = reader.u8(), reader.u8()
    if widths != (2, 2):
        raise WireError(f"block with content and parameters {widths} bytes wide")
    nodes, rest = inflate(reader.rest(), MAX_BLOCK_DATA)
    if len(nodes) != 4 * BLOCK_NODES:
        raise WireError(f"block with {len(nodes)} bytes of nodes")
    meta, _ = inflate(rest, MAX_META)
    return Block(pos, nodes, parse_meta(meta, pos))


def parse_hud(reader: Reader) -> Hud:
    number, kind = reader.u32(), reader.u8()
    hud = Hud(number, HUD_TYPES[kind] if kind < len(HUD_TYPES) else f"#{kind}")
    hud.pos, hud.name, hud.scale, hud.text = reader.v2f(), reader.str16(), reader.v2f(), reader.str16()
    hud.number, hud.item, hud.dir = reader.u32(), reader.u32(), reader.u32()
    hud.align, hud.offset = reader.v2f(), reader.v2f()
    # A new element carries its z_index in 16 bits, a change of it in 32.
    for stat in ("world_pos", "size", "z_index", "text2", "style"):
        if reader.left:
            setattr(hud, stat, reader.s16() if stat == "z_index" else read_hud_stat(reader, stat))
    return hud


def read_hud_stat(reader: Reader, stat: str) -> object:
    if stat in ("pos", "scale", "align", "offset"):
        return reader.v2f()
    if stat in ("name", "text", "text2"):
        return reader.str16()
    if stat == "world_pos":
        return reader.v3f()
    if stat == "size":
        return reader.v2s32()
    number = reader.u32()
    if stat == "z_index":  # only the low 16 bits of a change count
        number = (number + 0x8000 & 0xFFFF) - 0x8000
    return number


def parse_object(reader: Reader, number: int) -> tuple[Obj, list[bytes]]:
    """A new object and the messages that follow its creation."""
    if (version := reader.u8()) != 1:
        raise WireError(f"object of version {version}")
    name, is_player = reader.str16(), reader.flag()
    reader.u16()  # its id again
    obj = Obj(number, name, is_player, reader.point(), reader.v3f())
    obj.hp = reader.u16()
    return obj, [reader.bytes32() for _ in range(reader.u8())]


def read_properties(reader: Reader, obj: Obj) -> None:
    if (version := reader.u8()) != 4:
        raise WireError(f"object properties of version {version}")
    obj.hp_max, obj.physical = reader.u16(), reader.flag()
    reader.f32()  # weight, no longer used
    obj.collisionbox = (*reader.v3f(), *reader.v3f())
    obj.selectionbox = (*reader.v3f(), *reader.v3f())
    obj.pointable, obj.visual, obj.visual_size = reader.u8(), reader.str16(), reader.v3f()
    obj.textures = [reader.str16() for _ in range(reader.u16())]
    reader.v2s16(), reader.v2s16()  # sprite sheet
    obj.is_visible, obj.makes_footstep_sound = reader.flag(), reader.flag()
    obj.automatic_rotate, obj.mesh = reader.f32(), reader.str16()
    obj.colors = [reader.u32() for _ in range(reader.u16())]
    obj.collide_with_objects, obj.stepheight = reader.flag(), reader.f32() / NODE
    reader.flag(), reader.f32(), reader.flag()  # facing by movement, backface culling
    obj.nametag, obj.nametag_color = reader.str16(), reader.u32()
    reader.f32()  # turning speed
    obj.infotext, obj.wield_item, obj.glow = reader.str16(), reader.str16(), reader.s8()
    obj.breath_max, obj.eye_height, obj.zoom_fov = reader.u16(), reader.f32(), reader.f32()
    reader.flag()  # texture alpha
    if reader.left:
        obj.damage_texture_modifier = reader.str16()


def read_position(reader: Reader, obj: Obj) -> None:
    obj.pos, obj.velocity, obj.acceleration = reader.point(), reader.point(), reader.point()
    obj.rotation = reader.v3f()


def parse_sound(reader: Reader) -> Sound:
    number, name, gain, kind = reader.s32(), reader.str16(), reader.f32(), reader.u8()
    pos, object_id, loop = reader.point(), reader.u16(), reader.flag()
    fade = reader.f32() if reader.left else 0.0
    pitch = reader.f32() if reader.left else 1.0
    ephemeral = reader.flag() if reader.left else False
    location = ("local", "position", "object")[kind] if kind < 3 else f"#{kind}"
    return Sound(number, name, gain, location, pos, object_id, loop, fade, pitch, ephemeral)


def parse_particle(reader: Reader) -> Particle:
    pos, velocity, acceleration = reader.v3f(), reader.v3f(), reader.v3f()
    lifetime, size = reader.f32(), reader.f32()
    reader.flag()  # collision
    texture = reader.str32()
    reader.flag(), reader.flag()  # vertical, removed on collision
    read_animation(reader)
    return Particle(pos, velocity, acceleration, lifetime, size, texture, reader.u8())


def parse_spawner(reader: Reader) -> Spawner:
    amount, time = reader.u16(), reader.f32()
    pos, velocity = (reader.v3f(), reader.v3f()), (reader.v3f(), reader.v3f())
    acceleration = (reader.v3f(), reader.v3f())
    lifetime, size = reader.v2f(), reader.v2f()
    reader.flag()  # collision
    texture, number = reader.str32(), reader.u32()
    reader.flag(), reader.flag()  # vertical, removed on collision
    attached = reader.u16()
    read_animation(reader)
    return Spawner(
        number, amount, time, pos, velocity, acceleration, lifetime, size, texture, attached, reader.u8()
    )
