"""A network player: logs in, sees what the server shows and acts the way a client does.

No threads and no waiting: `pump` handles what has arrived and returns. The caller decides when time passes.
"""

from __future__ import annotations

import math
import socket
import struct
import time
from collections.abc import Iterable, Mapping
from random import Random

from . import messages
from . import protocol as wire
from .digging import DigTime, dig_time
from .physics import advance, fall_damage
from .protocol import Connection, NodePos, Reader, Vec
from .srp import Login, make_verifier
from .terrain import ViewTerrain
from .view import View

INIT_INTERVAL_S = 0.02
MAX_DATAGRAMS = 10_000  # handled by one pump, so that a flood cannot hold the caller
DEATH_FORM = "__builtin:death"
DEFAULT_RANGE = 4.0

KEYS = ("forward", "back", "left", "right", "jump", "aux1", "sneak", "dig", "place", "zoom")

_FIRST_SRP, _SRP = 4, 2
# The server sends the blocks in this field of view (radians times 80) and range (blocks). Wide and short, so
# that a player knows the ground all around and does not make the server generate map far away.
_FOV, _RANGE = 255, 2
_DENIALS = (
    "wrong password",
    "unexpected data",
    "single player only",
    "wrong version",
    "bad characters in the name",
    "name not allowed",
    "too many users",
    "empty password",
    "already connected",
    "server failed",
    "custom",
    "server is shutting down",
    "server crashed",
)


class Bot(View):
    """One player. `state` goes connecting, hello, auth, joined; it ends as denied, the reason in `denied`.

    `pump` may be called at any time; everything else needs the state "joined". Hotbar and list indices
    start at 0. Acts only send; what came of them is seen after the server has run and `pump` was called.
    """

    def __init__(self, host: str, port: int, name: str, password: str = "", *, seed: int = 0) -> None:
        super().__init__(name)
        self.password = password
        self.state = "connecting"
        self.denied: str | None = None
        self.protocol = 0
        self.map_seed = 0
        self.wield = 0
        self.controls: set[str] = set()
        self._random = Random(f"{seed}/{name}")  # noqa: S311  # logins on loopback hold no secret
        self._login: Login | None = None
        self._init_at = 0.0
        self._sent_pose = b""
        self._terrain = ViewTerrain(self)
        self._rest: object = None
        self._digging: tuple[NodePos, NodePos] | None = None
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        self._socket.setblocking(False)
        self._socket.connect((host, port))
        self._connection = Connection(self._transmit)

    # -- connection

    def begin(self) -> None:
        """Ask the server for a peer id; `pump` does the rest of the login."""
        self._connection.send(b"\0\0", 0, time.monotonic())

    def pump(self) -> int:
        """Handle every datagram that has arrived, answer, resend; returns the number of commands handled."""
        handled = 0
        for _ in range(MAX_DATAGRAMS):
            try:
                datagram = self._socket.recv(65535)
            except OSError:  # nothing there, or the server's port is closed
                break
            for body in self._connection.receive(datagram):
                handled += 1
                self.handle(body)
        for fault in self._connection.faults:
            self.record("parse_error", command=None, error=fault)
        self._connection.faults.clear()
        now = time.monotonic()
        if self._connection.closed:
            self._end("disconnected")
        elif (
            self.state == "connecting" and self._connection.peer_id and now - self._init_at > INIT_INTERVAL_S
        ):
            # The server drops this until it has taken up the new peer in a step.
            self._init_at = now
            versions = struct.pack(">BHHH", wire.SERIALIZATION, 0, wire.PROTOCOL_MIN, wire.PROTOCOL_MAX)
            self._send(0x02, versions + wire.str16(self.name), channel=1, reliable=False)
        if self.state != "denied":
            self._connection.upkeep(now)
        return handled

    @property
    def idle(self) -> bool:
        """Whether the server has acknowledged everything this player sent."""
        return self._connection.idle

    @property
    def ready(self) -> bool:
        """Whether the player is in the world: joined, and its object, inventory and health have arrived."""
        return self.state == "joined" and self.me is not None and bool(self.inventory) and self.hp is not None

    @property
    def traffic(self) -> tuple[int, int]:
        """Datagrams received and sent."""
        return self._connection.datagrams_in, self._connection.datagrams_out

    def close(self) -> None:
        """Leave the server."""
        if not self._connection.closed:
            self._connection.disconnect()
        self._socket.close()
        self._end("left")

    def _end(self, reason: str) -> None:
        self._connection.closed = True
        if self.state != "denied":
            self.state, self.denied = "denied", reason
            self.record("denied", reason=reason)

    def _transmit(self, datagram: bytes) -> None:
        try:
            self._socket.send(datagram)
        except OSError:
            return  # like a lost datagram: reliable ones are sent again

    def _send(self, command: int, body: bytes = b"", *, channel: int = 0, reliable: bool = True) -> None:
        if not self._connection.closed:
            self._connection.send(wire.u16(command) + body, channel, time.monotonic(), reliable)

    # -- login

    def handle(self, body: bytes) -> None:
        step = {0x02: self._hello, 0x60: self._challenge, 0x03: self._accepted, 0x0A: self._refused}
        command = int.from_bytes(body[:2], "big")
        if len(body) < 2 or command not in step:
            messages.handle(self, body)
            if command == 0x3C and self.state == "auth":
                self._enter()
            elif command == 0x34 and self.state == "joined":
                self.send_position()  # the server sends blocks by what it knows of the view
            return
        try:
            step[command](Reader(body, 2))
        except ValueError as error:
            self.record("parse_error", command=command, error=str(error))

    def _hello(self, reader: Reader) -> None:
        if self.state != "connecting":
            return
        reader.u8(), reader.u16()
        self.protocol, mechanisms = reader.u16(), reader.u32()
        self.state = "hello"
        if mechanisms & _FIRST_SRP:
            salt = self._random.randbytes(16)
            verifier = make_verifier(self.name, self.password, salt)
            empty = wire.u8(not self.password)
            self._send(0x50, wire.str16(salt) + wire.str16(verifier) + empty, channel=1)
        elif mechanisms & _SRP:
            self._login = Login(self.name, self.password, self._random)
            self._send(0x51, wire.str16(self._login.public) + b"\1", channel=1)
        else:
            self._end(f"no known way to log in (mechanisms {mechanisms:#x})")

    def _challenge(self, reader: Reader) -> None:
        if self._login is not None:
            self._send(0x52, wire.str16(self._login.prove(reader.bytes16(), reader.bytes16())), channel=1)

    def _accepted(self, reader: Reader) -> None:
        if self.state != "hello":
            return
        x, y, z = reader.point()
        self.body.pos = (x, y - 0.5, z)
        self.map_seed = reader.u64()
        self.state = "auth"
        self._send(0x11, wire.str16(""), channel=1)

    def _refused(self, reader: Reader) -> None:
        code = reader.u8()
        text = reader.str16() if reader.left >= 2 else ""
        self._end(text or (_DENIALS[code] if code < len(_DENIALS) else f"code {code}"))

    def _enter(self) -> None:
        self.state = "joined"
        self._send(0x43, bytes([5, 6, 1, 0]) + wire.str16("5.6.1") + wire.u16(6), channel=1)

    def received_block(self, pos: NodePos) -> None:
        self._send(0x24, b"\1" + wire.v3s16(pos), channel=2)

    def announced_media(self, name: str, token: int) -> None:
        self.media_tokens[name] = token
        self.request_media([name])

    def received_media(self, name: str) -> None:
        if (token := self.media_tokens.pop(name, None)) is not None:
            self._send(0x41, b"\1" + wire.u32(token), channel=1)

    # -- looking

    @property
    def eye(self) -> Vec:
        x, y, z = self.pos
        return (x, y + (self.me.eye_height if self.me else 1.625), z)

    def look(self, yaw: float, pitch: float = 0.0) -> None:
        """Turn: yaw 0 looks along z+, 90 along x-; positive pitch looks down. Degrees."""
        self.yaw, self.pitch = yaw % 360, pitch

    def look_at(self, target: Vec) -> None:
        dx, dy, dz = (t - e for t, e in zip(target, self.eye, strict=True))
        self.look(math.degrees(math.atan2(-dx, dz)), -math.degrees(math.atan2(dy, math.hypot(dx, dz))))

    @property
    def wielded(self) -> str:
        """The selected item of the hotbar as an item string, empty for the hand."""
        main = self.inventory.get("main", [])
        return main[self.wield] if self.wield < len(main) else ""

    def dig_time(self, node: str, item: str | None = None) -> DigTime | None:
        """How a client digs `node` with `item` (the wielded one by default); None if it cannot."""
        hand = (self.inventory.get("hand") or [""])[0]
        return dig_time(self.nodes.get(node), self.items, self.wielded if item is None else item, hand)

    # -- acts

    def _pose(self) -> bytes:
        numbers = [round(v * 1000) for v in (*self.body.pos, *self.body.velocity)]
        keys = sum(1 << bit for bit, key in enumerate(KEYS) if key in self.controls)
        angles = round(self.pitch * 100), round(self.yaw * 100)
        return struct.pack(">8iIBB", *(_s32(n) for n in (*numbers, *angles)), keys, _FOV, _RANGE)

    def send_position(self) -> None:
        """Tell the server where this player is, if that changed."""
        pose = self._pose()
        if pose != self._sent_pose:
            self._sent_pose = pose
            self._send(0x23, pose, reliable=False)

    def tick(self, dt: float) -> None:
        """Move for `dt` seconds as `controls` say; report fall damage and a changed position."""
        if self.state != "joined" or self.dead or self.me is None:
            return
        if parent := self.objects.get(self.me.attached_to):
            self.body.pos, self.body.velocity = parent.pos, (0.0, 0.0, 0.0)
        else:
            self._walk(dt)
        self.send_position()

    def _walk(self, dt: float) -> None:
        # A body at rest stays at rest until the map, the keys or something it was sent changes.
        state = (self.body.pos, self.body.velocity, self.map_version, self.physics, frozenset(self.controls))
        if state == self._rest:
            return
        before = self.body.pos
        armor = self.me.armor_groups if self.me else {}
        for landing in advance(
            self.body, self._terrain, dt, self.controls, self.yaw, self.movement, self.physics
        ):
            if harm := fall_damage(landing, armor):
                self.record("fall_damage", amount=harm, speed=landing.speed)
                self.damage(harm)
        still = self.body.on_ground and not any(self.body.velocity) and self.body.pos == before
        self._rest = state if still else None

    def _interact(self, action: int, pointed: bytes = b"\0\0") -> None:
        head = struct.pack(">BH", action, self.wield)
        self._send(0x39, head + wire.str32(pointed) + self._pose())

    def dig_start(self, pos: NodePos, above: NodePos | None = None) -> None:
        """Begin to dig; `above` is the free node on the side that is hit."""
        self._digging = (pos, above or pos)
        self._interact(0, _pointed_node(*self._digging))

    def dig_finish(self, pos: NodePos, above: NodePos | None = None) -> None:
        """Finish digging. The server believes the player about the time, within limits: see `dig_time`."""
        self._digging = None
        self._interact(2, _pointed_node(pos, above or pos))

    def dig_stop(self) -> None:
        """Give up digging."""
        target, self._digging = self._digging, None
        self._interact(1, _pointed_node(*target) if target else b"\0\0")

    def place(self, under: NodePos, above: NodePos) -> None:
        """Right-click the node `under` on the side of `above`: place the wielded item or open the node."""
        self._interact(3, _pointed_node(under, above))

    def use(
        self, under: NodePos | None = None, above: NodePos | None = None, object_id: int | None = None
    ) -> None:
        """Left-click with an item that has a use; at a node, an object or nothing."""
        if object_id is not None:
            self._interact(4, _pointed_object(object_id))
        else:
            self._interact(4, _pointed_node(under, above or under) if under else b"\0\0")

    def activate(self) -> None:
        """Right-click at nothing with the wielded item."""
        self._interact(5)

    def punch(self, object_id: int) -> None:
        self._interact(0, _pointed_object(object_id))

    def rightclick(self, object_id: int) -> None:
        self._interact(3, _pointed_object(object_id))

    def say(self, text: str) -> None:
        """Chat, or a command if it begins with a slash."""
        self._send(0x32, wire.wide(text))

    def move_stack(
        self,
        from_list: str,
        from_index: int,
        to_list: str,
        to_index: int,
        count: int = 0,
        *,
        from_inv: str = "current_player",
        to_inv: str = "current_player",
    ) -> None:
        """Move `count` items (0: all) between two slots. Inventories: `current_player`, `nodemeta:x,y,z`,
        `detached:name`, `player:name`."""
        self._inventory_action(
            f"Move {count} {from_inv} {from_list} {from_index} {to_inv} {to_list} {to_index}"
        )

    def craft(self, count: int = 1) -> None:
        """Craft what the grid holds; the result goes to the list `craftresult`. 0: as often as possible."""
        self._inventory_action(f"Craft {count} current_player")

    def drop(self, list_name: str, index: int, count: int = 0) -> None:
        self._inventory_action(f"Drop {count} current_player {list_name} {index}")

    def _inventory_action(self, text: str) -> None:
        self._send(0x31, text.encode())

    def select(self, index: int) -> None:
        """Select a slot of the hotbar."""
        self.wield = index
        self._send(0x37, wire.u16(index))

    def fields(self, form: str, values: Mapping[str, str]) -> None:
        """Answer a form. The server takes it only for the form it showed last (inventory: empty name)."""
        self._send(0x3C, wire.str16(form) + _field_list(values))

    def node_fields(self, pos: NodePos, values: Mapping[str, str], form: str = "") -> None:
        """Answer the form in a node's metadata."""
        self._send(0x3B, wire.v3s16(pos) + wire.str16(form) + _field_list(values))

    def damage(self, amount: int) -> None:
        """Report damage that a client finds out itself, as after a fall."""
        self._send(0x35, wire.u16(amount))

    def respawn(self) -> None:
        """Leave the death screen: an old server wants a message, a new one the answer to a form."""
        if self.formspecs and self.formspecs[-1][0] == DEATH_FORM:
            self.fields(DEATH_FORM, {"quit": "true"})
        else:
            self._send(0x38)

    def request_media(self, names: Iterable[str]) -> None:
        wanted = list(names)
        self._send(0x40, wire.u16(len(wanted)) + b"".join(map(wire.str16, wanted)), channel=1)


def _s32(number: int) -> int:
    return max(-(1 << 31), min((1 << 31) - 1, number))


def _pointed_node(under: NodePos, above: NodePos) -> bytes:
    return b"\0\1" + wire.v3s16(under) + wire.v3s16(above)


def _pointed_object(number: int) -> bytes:
    return b"\0\2" + wire.u16(number)


def _field_list(values: Mapping[str, str]) -> bytes:
    return wire.u16(len(values)) + b"".join(wire.str16(k) + wire.str32(v) for k, v in values.items())
