"""A player's own movement, which Luanti leaves to the client: walking, falling, swimming, fall damage.

Lengths are in nodes, times in seconds. A body is a box that moves through a `Terrain` in fixed substeps;
walls stop it, low edges lift it, and every landing is reported. Drowning and node damage are the server's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import Protocol

from .definitions import Box, NodeDef
from .protocol import NODE, NodePos, Vec

SUBSTEP_S = 0.01
TOUCH = 0.005  # a gap below this counts as standing on the box
SLACK = 1e-6  # boxes that only touch do not block each other
AIR_STEP = 0.2  # how high a body in the air is lifted over an edge
SAFE_SPEED = 14.0  # a landing costs one point for each node per second above this
BOUNCE_SPEED = 3.0
MAX_SPEED = 500.0
# Twice the nominal value is what clients have always used.
GRAVITY_FACTOR = 2.0
ACCELERATION_FACTOR = 10.0
STANDING_BOX: Box = (-0.3, 0.0, -0.3, 0.3, 1.75, 0.3)


@dataclass(frozen=True)
class Movement:
    """The server's movement constants, as sent; the values are Minetest Game's."""

    acceleration_default: float = 3.0
    acceleration_air: float = 2.0
    acceleration_fast: float = 10.0
    speed_walk: float = 4.0
    speed_crouch: float = 1.35
    speed_fast: float = 20.0
    speed_climb: float = 3.0
    speed_jump: float = 6.5
    liquid_fluidity: float = 1.0
    liquid_fluidity_smooth: float = 0.5
    liquid_sink: float = 10.0
    gravity: float = 9.81


@dataclass(frozen=True)
class Overrides:
    """Factors that mods set on one player."""

    speed: float = 1.0
    jump: float = 1.0
    gravity: float = 1.0
    sneak: bool = True
    sneak_glitch: bool = False
    new_move: bool = True
    speed_climb: float = 1.0
    speed_crouch: float = 1.0
    liquid_fluidity: float = 1.0
    liquid_fluidity_smooth: float = 1.0
    liquid_sink: float = 1.0
    acceleration_default: float = 1.0
    acceleration_air: float = 1.0
    speed_fast: float = 1.0
    acceleration_fast: float = 1.0
    speed_walk: float = 1.0


@dataclass(frozen=True, slots=True)
class Solid:
    """A box in the way; `node` is None for an object and for ground that is not loaded."""

    box: Box
    node: NodeDef | None = None


@dataclass(frozen=True)
class Landing:
    """The body hit something below it."""

    speed: float
    node: NodeDef | None


class Terrain(Protocol):
    """The map around a body."""

    def node_def(self, pos: NodePos) -> NodeDef | None:
        """The definition of the node there, None where the map is not known."""

    def solids(self, low: NodePos, high: NodePos) -> tuple[list[Solid], bool]:
        """Boxes in the nodes from `low` to `high` and of objects there, and whether any node is known."""


@dataclass
class Body:
    pos: Vec = (0.0, 0.0, 0.0)
    velocity: Vec = (0.0, 0.0, 0.0)
    box: Box = STANDING_BOX
    step_height: float = 0.6
    on_ground: bool = False
    in_liquid: bool = False
    climbing: bool = False
    standing_on: NodeDef | None = field(default=None, repr=False)


def fall_damage(landing: Landing, armor: Mapping[str, int]) -> int:
    """Health points that a landing costs, as a client reports it."""
    if armor.get("immortal", 0):
        return 0
    factor = 1.0
    if landing.node is not None:
        factor = (1 + landing.node.groups.get("fall_damage_add_percent", 0) / 100) * (
            1 + armor.get("fall_damage_add_percent", 0) / 100
        )
    return max(0, min(int(factor * landing.speed - SAFE_SPEED + 0.5), 0xFFFF))


def advance(
    body: Body,
    terrain: Terrain,
    dt: float,
    controls: Set[str],
    yaw: float,
    movement: Movement,
    overrides: Overrides,
) -> list[Landing]:
    """Move `body` for `dt` seconds; returns its landings in order. `yaw` is in degrees, 0 looks along z+."""
    walker = _Walker(body, terrain, controls, yaw, movement, overrides)
    count = max(1, math.ceil(dt / SUBSTEP_S - 1e-9))
    for _ in range(count):
        if not walker.substep(dt / count):
            break
    return walker.landings


def node_of(x: float, y: float, z: float) -> NodePos:
    """The node that holds a point; halves round away from zero, as in the engine."""
    return _round(x), _round(y), _round(z)


def _round(value: float) -> int:
    return math.floor(value + 0.5) if value >= 0 else math.ceil(value - 0.5)


def _overlaps(box: Box, other: Box, axis: int) -> bool:
    return box[axis] < other[axis + 3] - SLACK and box[axis + 3] > other[axis] + SLACK


def _direction(controls: Set[str], yaw: float) -> tuple[float, float]:
    """The horizontal unit vector of the walking keys, (0, 0) without any."""
    ahead = ("forward" in controls) - ("back" in controls)
    right = ("right" in controls) - ("left" in controls)
    length = math.hypot(ahead, right)
    if not length:
        return 0.0, 0.0
    sin, cos = math.sin(math.radians(yaw)), math.cos(math.radians(yaw))
    return (right * cos - ahead * sin) / length, (right * sin + ahead * cos) / length


class _Walker:
    """One call of `advance`: its parameters and the boxes around the body."""

    def __init__(
        self,
        body: Body,
        terrain: Terrain,
        controls: Set[str],
        yaw: float,
        movement: Movement,
        overrides: Overrides,
    ) -> None:
        self.body, self.terrain, self.controls = body, terrain, controls
        self.movement, self.overrides = movement, overrides
        self.direction = _direction(controls, yaw)
        self.landings: list[Landing] = []
        self._sneaks = "sneak" in controls
        self._jumps = "jump" in controls
        self._deep = False  # the node at the feet is a liquid
        self._resistance = 0
        self._swims = False  # moves up or down in a liquid by its own force
        self._solids: list[Solid] = []
        self._known = False
        self._low: NodePos = (0, 0, 0)
        self._high: NodePos = (-1, -1, -1)

    def substep(self, dt: float) -> bool:
        """False if the body has to wait because nothing around it is loaded."""
        body = self.body
        self._sense()
        self._steer(dt)
        acceleration = self._weight()
        self._resist(dt)
        vx, vy, vz = body.velocity
        fall = max(-MAX_SPEED, min(MAX_SPEED, vy + acceleration * dt))
        step = (vx * dt, (vy + fall) / 2 * dt, vz * dt)
        body.velocity = (vx, fall, vz)
        if not self._collect(step):
            body.velocity = (0.0, 0.0, 0.0)
            return False
        self._move(step, vy, acceleration)
        return True

    # -- forces

    def _sense(self) -> None:
        body = self.body
        x, y, z = body.pos
        at_feet = self.terrain.node_def(node_of(x, y, z))
        # The two thresholds keep a swimmer from flickering at the surface.
        inside = self.terrain.node_def(node_of(x, y + (0.1 if body.in_liquid else 0.5), z))
        body.in_liquid = inside is not None and inside.liquid_move_physics
        self._resistance = inside.move_resistance if inside is not None else 0
        self._deep = at_feet is not None and at_feet.liquid_move_physics
        middle = self.terrain.node_def(node_of(x, y + 0.5, z))
        below = self.terrain.node_def(node_of(x, y - 0.2, z))
        known = middle is not None and below is not None
        body.climbing = known and any(node is not None and node.climbable for node in (middle, below))

    def _steer(self, dt: float) -> None:
        body, movement, factors = self.body, self.movement, self.overrides
        climb = self._vertical()
        self._jump()
        if self._sneaks and not body.in_liquid and not self._deep:
            speed = movement.speed_crouch * factors.speed_crouch
        else:
            speed = movement.speed_walk * factors.speed_walk
        airborne = not body.on_ground and not body.climbing and not body.in_liquid
        if airborne or (self._jumps and body.velocity[1] > 0 and not body.in_liquid and not body.climbing):
            gain, rise = movement.acceleration_air * factors.acceleration_air, 0.0
        else:
            gain = rise = movement.acceleration_default * factors.acceleration_default
        gain *= ACCELERATION_FACTOR * factors.speed * dt
        rise *= ACCELERATION_FACTOR * factors.speed * dt
        if not body.in_liquid and not self._deep:
            gain *= self._grip()
        vx, vy, vz = body.velocity
        dx = self.direction[0] * speed * factors.speed - vx
        dz = self.direction[1] * speed * factors.speed - vz
        distance = math.hypot(dx, dz)
        share = 1.0 if distance <= gain else gain / distance
        dy = max(-rise, min(rise, climb * factors.speed - vy))
        body.velocity = (vx + dx * share, vy + dy, vz + dz * share)

    def _vertical(self) -> float:
        """The vertical speed that the keys ask for in a liquid or on a ladder."""
        body, movement = self.body, self.movement
        self._swims = False
        climb = movement.speed_climb * self.overrides.speed_climb
        if self._sneaks and not self._jumps and not self._blocks("disable_descend"):
            if body.in_liquid or self._deep:
                self._swims = True
                return -movement.speed_walk * self.overrides.speed_walk
            return -climb if body.climbing else 0.0
        if self._jumps and not self._sneaks and not self._blocks("disable_jump"):
            if body.in_liquid:
                self._swims = True
                return movement.speed_walk * self.overrides.speed_walk
            return climb if body.climbing else 0.0
        return 0.0

    def _jump(self) -> None:
        body = self.body
        speed = self.movement.speed_jump * self.overrides.jump
        if (
            not self._jumps
            or not body.on_ground
            or body.climbing
            or not speed
            or self._blocks("disable_jump")
        ):
            return
        vx, vy, vz = body.velocity
        if vy >= -0.5:
            body.velocity = (vx, speed, vz)
            body.on_ground = False

    def _blocks(self, group: str) -> bool:
        node = self.body.standing_on
        return node is not None and bool(node.groups.get(group, 0))

    def _grip(self) -> float:
        """How much of the acceleration slippery ground leaves."""
        node = self.body.standing_on
        slippery = node.groups.get("slippery", 0) if node is not None and node.walkable else 0
        if slippery < 1:
            return 1.0
        return max(0.001, 1 / ((slippery if any(self.direction) else 2 * slippery) + 1))

    def _weight(self) -> float:
        if self.body.climbing:
            return 0.0
        if not self.body.in_liquid:
            return -GRAVITY_FACTOR * self.movement.gravity * self.overrides.gravity
        if self._swims:
            return 0.0
        return -GRAVITY_FACTOR * self.movement.liquid_sink * self.overrides.liquid_sink

    def _resist(self, dt: float) -> None:
        """Slow down in a liquid or another node that resists movement."""
        speed = math.hypot(*self.body.velocity)
        if not self._resistance or not speed:
            return
        loss = speed
        if self.body.in_liquid or self._deep:
            fluidity = self.movement.liquid_fluidity * max(1.0, self.overrides.liquid_fluidity)
            smooth = self.movement.liquid_fluidity_smooth * max(0.0, self.overrides.liquid_fluidity_smooth)
            loss = min(speed / max(0.001 / NODE, fluidity), smooth * NODE)
        loss *= (0.3 * self._resistance + 0.7) * dt * ACCELERATION_FACTOR
        keep = 1 - loss / speed
        vx, vy, vz = self.body.velocity
        self.body.velocity = (vx * keep, vy * keep, vz * keep)

    # -- collisions

    def _collect(self, step: Vec) -> bool:
        """Find the boxes that one substep can meet; False if no node there is known."""
        x, y, z = self.body.pos
        box = self.body.box
        lift = self.body.step_height + SLACK
        low = node_of(
            x + box[0] + min(0.0, step[0]) - 0.1,
            y + min(0.0, step[1]) - 0.1,
            z + box[2] + min(0.0, step[2]) - 0.1,
        )
        high = node_of(
            x + box[3] + max(0.0, step[0]) + 0.1,
            y + box[4] + max(0.0, step[1]) + lift,
            z + box[5] + max(0.0, step[2]) + 0.1,
        )
        low = (low[0], low[1] - 1, low[2])  # a fence reaches into the node above it
        inside = all(a >= b for a, b in zip(low, self._low, strict=True)) and all(
            a <= b for a, b in zip(high, self._high, strict=True)
        )
        if not inside:
            self._low = (low[0] - 1, low[1], low[2] - 1)
            self._high = (high[0] + 1, high[1], high[2] + 1)
            self._solids, self._known = self.terrain.solids(self._low, self._high)
        return self._known

    def _placed(self, pos: Vec) -> Box:
        x, y, z = pos
        box = self.body.box
        return (x + box[0], y + box[1], z + box[2], x + box[3], y + box[4], z + box[5])

    def _move(self, step: Vec, vy: float, acceleration: float) -> None:
        body = self.body
        was_on_ground = body.on_ground
        start = body.pos[1]
        hit = self._shift(1, step[1])
        landed = hit is not None and step[1] <= 0
        if hit is not None:
            # the speed at the moment of impact, not at the end of the substep
            impact = math.sqrt(max(0.0, vy * vy + 2 * acceleration * (body.pos[1] - start)))
            self._land(hit, math.copysign(impact, step[1]))
        edge = body.pos
        sneaking = self._sneaks and was_on_ground and self.overrides.sneak
        sneaking = sneaking and not body.in_liquid and not body.climbing and body.velocity[1] <= 0
        lifted = False
        for axis in (0, 2):
            lifted |= self._walk(axis, step[axis], was_on_ground)
        if sneaking and not lifted:
            self._stay_on(edge)
        ground = self._ground()
        body.on_ground = (landed and body.velocity[1] <= 0) or ground is not None
        if ground is not None:
            body.standing_on = ground.node
        elif not body.on_ground:
            body.standing_on = None

    def _shift(self, axis: int, distance: float) -> Solid | None:
        """Move along one axis up to the first box in the way; returns it."""
        if not distance:
            return None
        here = self._placed(self.body.pos)
        others = [a for a in (0, 1, 2) if a != axis]
        nearest: Solid | None = None
        for solid in self._solids:
            box = solid.box
            if not _overlaps(here, box, others[0]) or not _overlaps(here, box, others[1]):
                continue
            gap = box[axis] - here[axis + 3] if distance > 0 else box[axis + 3] - here[axis]
            if abs(gap) > abs(distance) or (gap * distance < 0 and abs(gap) > SLACK):
                continue  # too far, or already behind the face: a body inside a box may leave it
            distance, nearest = gap, solid
        pos = list(self.body.pos)
        pos[axis] += distance
        self.body.pos = (pos[0], pos[1], pos[2])
        return nearest

    def _land(self, solid: Solid, vy: float) -> None:
        """Stop at a floor or ceiling, or bounce off it."""
        vx, _, vz = self.body.velocity
        bouncy = abs(solid.node.groups.get("bouncy", 0)) if solid.node is not None else 0
        after = -vy * bouncy / 100 if bouncy and abs(vy) > BOUNCE_SPEED else 0.0
        if vy < 0:
            self.landings.append(Landing(after - vy, solid.node))
        self.body.velocity = (vx, after, vz)

    def _walk(self, axis: int, distance: float, was_on_ground: bool) -> bool:
        """Move sideways; a low edge lifts the body instead of stopping it. Returns whether one did."""
        lifted = False
        for _ in range(4):  # edges behind each other
            start = self.body.pos[axis]
            hit = self._shift(axis, distance)
            if hit is None:
                return lifted
            distance -= self.body.pos[axis] - start
            if not self._step_up(hit, axis, distance, was_on_ground):
                break
            lifted = True
        velocity = list(self.body.velocity)
        velocity[axis] = 0.0
        self.body.velocity = (velocity[0], velocity[1], velocity[2])
        return lifted

    def _step_up(self, hit: Solid, axis: int, distance: float, was_on_ground: bool) -> bool:
        rise = hit.box[4] - self._placed(self.body.pos)[1]
        if not 0 < rise < (self.body.step_height if was_on_ground else AIR_STEP):
            return False
        pos = list(self.body.pos)
        pos[1] += rise
        ahead = list(pos)
        ahead[axis] += math.copysign(max(abs(distance), 2 * SLACK), distance)
        raised = self._placed((ahead[0], ahead[1], ahead[2]))
        if any(all(_overlaps(raised, solid.box, a) for a in (0, 1, 2)) for solid in self._solids):
            return False
        self.body.pos = (pos[0], pos[1], pos[2])
        return True

    def _ground(self) -> Solid | None:
        """What the body stands on: the box under its middle if there is one, else any under its edge."""
        if self.body.velocity[1] > 0:
            return None
        here = self._placed(self.body.pos)
        x, _, z = self.body.pos
        found: Solid | None = None
        for solid in self._solids:
            box = solid.box
            if abs(box[4] - here[1]) > TOUCH or not _overlaps(here, box, 0) or not _overlaps(here, box, 2):
                continue
            if box[0] <= x <= box[3] and box[2] <= z <= box[5]:
                return solid
            found = found or solid
        return found

    def _stay_on(self, edge: Vec) -> None:
        """Take back the part of a sneaking body's step that would carry it over an edge."""
        if self._ground() is not None:
            return
        x, y, z = self.body.pos
        vx, vy, vz = self.body.velocity
        for pos, velocity in (
            ((edge[0], y, z), (0.0, vy, vz)),
            ((x, y, edge[2]), (vx, vy, 0.0)),
            ((edge[0], y, edge[2]), (0.0, vy, 0.0)),
        ):
            self.body.pos, self.body.velocity = pos, velocity
            if self._ground() is not None:
                return
