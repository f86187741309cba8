"""A player's view: everything the server has shown it.

The view is evidence that does not pass through the server's Lua, but the server runs submitted code, so every
part of it is bounded.
"""

from __future__ import annotations

from collections.abc import MutableMapping

from . import observations as seen
from .collision import Body
from .definitions import BUILTIN_NODES, IGNORE, ItemDef, NodeDef
from .observations import BLOCK_NODES, Hud, NodeMeta, Obj, Particle, Seen, Sound, Spawner
from .physics import Movement, Overrides
from .protocol import NodePos, Vec

MAX_LOG_ENTRIES = 200_000
MAX_LOG_BYTES = 256 << 20
MAX_BLOCKS = 8192
MAX_MEDIA_BYTES = 256 << 20
MAX_ENTRIES = 20_000  # of each table that the server can fill: HUD elements, objects, metadata, ...


class View:
    """State of one player's client. Positions are in nodes, angles in degrees, list indices start at 0."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.body = Body()
        self.yaw = 0.0
        self.pitch = 0.0
        self.hp: int | None = None
        self.breath: int | None = None
        self.inventory: dict[str, list[str]] = {}
        self.detached: dict[str, dict[str, list[str]]] = {}
        self.hud: dict[int, Hud] = {}
        self.hud_flags = dict.fromkeys(seen.HUD_FLAGS, True)
        self.hud_params: dict[str, int | str] = {}
        self.objects: dict[int, Obj] = {}
        self.object_id: int | None = None
        self.items: dict[str, ItemDef] = {}
        self.aliases: dict[str, str] = {}
        self.nodes: dict[str, NodeDef] = {node.name: node for node in BUILTIN_NODES.values()}
        self.node_ids: dict[int, NodeDef] = dict(BUILTIN_NODES)
        self.blocks: dict[NodePos, bytearray | bytes] = {}
        self.map_version = 0
        self.meta: dict[NodePos, NodeMeta] = {}
        self.physics = Overrides()
        self.movement = Movement()
        self.chat: list[str] = []
        self.formspecs: list[tuple[str, str]] = []
        self.inventory_formspec = ""
        self.formspec_prepend = ""
        self.sounds: list[Sound] = []
        self.particles: list[Particle] = []
        self.spawners: dict[int, Spawner] = {}
        self.privs: set[str] = set()
        self.players: set[str] = set()
        self.media_index: dict[str, str] = {}  # file name -> SHA-1 in hexadecimal
        self.media: dict[str, bytes] = {}
        self.media_tokens: dict[str, int] = {}  # files announced after joining -> token
        self.time_of_day: float | None = None  # 0 midnight, 0.5 noon
        self.time_speed = 0.0
        self.day_night_ratio: float | None = None
        self.sky: dict[str, object] = {}
        self.lighting: list[float] = []
        self.fov: tuple[float, bool] | None = None
        self.log: list[Seen] = []
        self.counts: dict[int, int] = {}  # messages by command
        self._log_bytes = 0
        self.media_bytes = 0
        self.message_bytes = 0  # of the message being handled: what an entry of the log may hold on to

    # -- looking

    @property
    def pos(self) -> Vec:
        """The feet."""
        return self.body.pos

    @pos.setter
    def pos(self, value: Vec) -> None:
        self.body.pos = value

    @property
    def dead(self) -> bool:
        return self.hp == 0

    @property
    def me(self) -> Obj | None:
        """This player's own object."""
        return self.objects.get(self.object_id) if self.object_id is not None else None

    def node_at(self, pos: NodePos) -> tuple[NodeDef, int, int] | None:
        """Definition, param1 and param2 of the node at `pos`; None where no block was received.

        Single changed nodes arrive without light, so param1 is only as fresh as the block.
        """
        x, y, z = pos
        block = self.blocks.get((x >> 4, y >> 4, z >> 4))
        if block is None:
            return None
        index = (z & 15) << 8 | (y & 15) << 4 | (x & 15)
        content = block[2 * index] << 8 | block[2 * index + 1]
        node = self.node_ids.get(content) or NodeDef(f"#{content}")
        return node, block[2 * BLOCK_NODES + index], block[3 * BLOCK_NODES + index]

    def node(self, pos: NodePos) -> str | None:
        found = self.node_at(pos)
        return found[0].name if found else None

    def content_at(self, pos: NodePos) -> int:
        x, y, z = pos
        block = self.blocks.get((x >> 4, y >> 4, z >> 4))
        if block is None:
            return IGNORE
        index = 2 * ((z & 15) << 8 | (y & 15) << 4 | (x & 15))
        return block[index] << 8 | block[index + 1]

    def find_objects(self, name: str | None = None, **properties: object) -> list[Obj]:
        """Other objects with these properties, e.g. `textures=["mob.png"]`; `name` is a player's name."""
        return [
            obj
            for obj in self.objects.values()
            if obj.id != self.object_id
            and (name is None or obj.name == name)
            and all(getattr(obj, key) == value for key, value in properties.items())
        ]

    # -- receiving

    def record(self, kind: str, **data: object) -> bool:
        """Append to the log; False once the log is full, after which only the current state is kept."""
        self._log_bytes += self.message_bytes + 256
        if len(self.log) >= MAX_LOG_ENTRIES or self._log_bytes > MAX_LOG_BYTES:
            if self.log and self.log[-1].kind != "log_full":
                self.log.append(Seen("log_full", {}))
            return False
        self.log.append(Seen(kind, data))
        return True

    def bounded[K, V](self, table: MutableMapping[K, V], key: K, value: V, limit: int = MAX_ENTRIES) -> bool:
        if key not in table and len(table) >= limit:
            self.record("table_full", limit=limit)
            return False
        table[key] = value
        return True

    def set_node(self, pos: NodePos, content: int, param1: int, param2: int) -> None:
        x, y, z = pos
        key = (x >> 4, y >> 4, z >> 4)
        block = self.blocks.get(key)
        if block is None:
            return
        if isinstance(block, bytes):
            block = self.blocks[key] = bytearray(block)
        index = (z & 15) << 8 | (y & 15) << 4 | (x & 15)
        block[2 * index : 2 * index + 2] = content.to_bytes(2, "big")
        block[2 * BLOCK_NODES + index] = param1
        block[3 * BLOCK_NODES + index] = param2
        self.map_version += 1

    def name_of(self, content: int) -> str:
        node = self.node_ids.get(content)
        return node.name if node else f"#{content}"

    # -- answers the bot adds

    def received_block(self, pos: NodePos) -> None:
        """A block arrived; the server sends no more until it is told so."""

    def received_media(self, name: str) -> None:
        """A media file arrived."""

    def announced_media(self, name: str, token: int) -> None:
        """The server offers a file after joining."""
