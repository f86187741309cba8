"""A player's own movement, which Luanti leaves to the client: walking, falling, swimming, fall damage.

Lengths are in nodes, times in seconds. A body is a box that moves through a `Terrain` in fixed substeps;
walls stop it, low edges lift it, and every landing is reported. Drowning and node damage are the server's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from dataclasses import dataclass

from .collision import Body, Landing, Mover, Terrain, node_of
from .protocol import NODE

SUBSTEP_S = 0.01
SAFE_SPEED = 14.0  # a landing costs one point for each node per second above this
MAX_SPEED = 500.0
# Twice the nominal value is what clients have always used.
GRAVITY_FACTOR = 2.0
ACCELERATION_FACTOR = 10.0


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
    return walker.mover.landings


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
    """One call of `advance`: the forces on a body that walks, swims or climbs by keys."""

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
        self.mover = Mover(body, terrain)
        self._sneaks = "sneak" in controls
        self._jumps = "jump" in controls
        self._deep = False  # the node at the feet is a liquid
        self._resistance = 0
        self._swims = False  # moves up or down in a liquid by its own force

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
        if not self.mover.collect(step):
            body.velocity = (0.0, 0.0, 0.0)
            return False
        held = self._sneaks and self.overrides.sneak and not body.in_liquid and not body.climbing
        self.mover.move(step, vy, acceleration, held)
        return True

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
