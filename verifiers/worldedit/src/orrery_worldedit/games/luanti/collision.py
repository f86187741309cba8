"""A box that moves among boxes: stopped by walls, lifted over low edges, held at ledges when it sneaks.

Lengths are in nodes, times in seconds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Protocol

from .definitions import Box, NodeDef
from .protocol import NodePos, Vec

TOUCH = 0.005  # a gap below this counts as standing on the box
SLACK = 1e-6  # boxes that only touch do not block each other
AIR_STEP = 0.2  # how high a body in the air is lifted over an edge
BOUNCE_SPEED = 3.0
STANDING_BOX: Box = (-0.3, 0.0, -0.3, 0.3, 1.75, 0.3)


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


def node_of(x: float, y: float, z: float) -> NodePos:
    """The node that holds a point; halves round away from zero, as in the engine."""
    return _round(x), _round(y), _round(z)


def _round(value: float) -> int:
    return math.floor(value + 0.5) if value >= 0 else math.ceil(value - 0.5)


def _overlaps(box: Box, other: Box, axis: int) -> bool:
    return box[axis] < other[axis + 3] - SLACK and box[axis + 3] > other[axis] + SLACK


class Mover:
    """Moves one body through a terrain and keeps the boxes around it between substeps."""

    def __init__(self, body: Body, terrain: Terrain) -> None:
        self.body, self.terrain = body, terrain
        self.landings: list[Landing] = []
        self._solids: list[Solid] = []
        self._known = False
        self._low: NodePos = (0, 0, 0)
        self._high: NodePos = (-1, -1, -1)

    def collect(self, step: Vec) -> bool:
        """Find the boxes that the next move can meet; False if no node there is known."""
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

    def move(self, step: Vec, vy: float, acceleration: float, held: bool) -> None:
        """Move by `step`, which began with the vertical speed `vy`; `held` keeps the body on its ledge."""
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
        held = held and was_on_ground and body.velocity[1] <= 0
        lifted = False
        for axis in (0, 2):
            lifted |= self._walk(axis, step[axis], was_on_ground)
        if held and not lifted:
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
