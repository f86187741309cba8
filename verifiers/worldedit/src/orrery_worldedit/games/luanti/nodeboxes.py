"""Collision boxes of nodes: the defined box turned, levelled and connected as the node stands."""

from __future__ import annotations

from .definitions import CONNECTED_PARTS, Box, NodeBox, NodeDef
from .protocol import NodePos, Vec

SIDE_OFFSETS: tuple[NodePos, ...] = ((0, 1, 0), (0, -1, 0), (0, 0, -1), (-1, 0, 0), (0, 0, 1), (1, 0, 0))


def collision_boxes(node: NodeDef, param2: int, neighbours: int = 0) -> tuple[Box, ...]:
    """Boxes that a body collides with, relative to the node's centre.

    `neighbours` has one bit per side of CONNECTED_PARTS on which a connected node box has a partner.
    """
    if not node.walkable:
        return ()
    shape = node.collision_box if node.collision_box.fixed else node.node_box
    if shape.type in ("fixed", "leveled"):
        facing = _facing(node, param2)
        top = _level_top(node, param2) if shape.type == "leveled" else None
        return tuple(_turned(box if top is None else (*box[:4], top, box[5]), facing) for box in shape.fixed)
    if shape.type == "wallmounted":
        return (_on_wall(shape, param2 & 7 if "wallmounted" in node.paramtype2 else 0),)
    if shape.type == "connected":
        return _connected(shape, neighbours)
    return ((-0.5, -0.5, -0.5, 0.5, 0.5, 0.5),)


def connects(node: NodeDef, content: int, other: NodeDef, other_content: int, side: int) -> bool:
    """Whether the connected node box `node` joins `other` on its side number `side` of CONNECTED_PARTS."""
    if other_content not in node.connects_to:
        return False
    if other.drawtype == "nodebox" and other.node_box.type == "connected":
        return content in other.connects_to
    return not other.connect_sides or bool(other.connect_sides & (1 << side))


def _level_top(node: NodeDef, param2: int) -> float:
    level = (param2 & 0x7F) if node.paramtype2 == "leveled" else 0
    return -0.5 + (level or min(node.leveled, node.leveled_max)) / 64


def _facing(node: NodeDef, param2: int) -> int:
    if node.paramtype2 in ("facedir", "colorfacedir"):
        return (param2 & 0x1F) % 24
    if node.paramtype2 in ("4dir", "color4dir"):
        return param2 & 3
    return 0


def _turned(box: Box, facing: int) -> Box:
    return _ordered(_turn(box[:3], facing), _turn(box[3:], facing))


def _turn(point: Vec, facing: int) -> Vec:
    x, y, z = point
    for _ in range(facing & 3):  # quarter turns about y
        x, z = z, -x
    match facing >> 2:  # then tilt the axis
        case 1:
            y, z = -z, y
        case 2:
            y, z = z, -y
        case 3:
            x, y = y, -x
        case 4:
            x, y = -y, x
        case 5:
            x, y = -x, -y
    return x, y, z


def _ordered(a: Vec, b: Vec) -> Box:
    return (
        min(a[0], b[0]),
        min(a[1], b[1]),
        min(a[2], b[2]),
        max(a[0], b[0]),
        max(a[1], b[1]),
        max(a[2], b[2]),
    )


def _on_wall(shape: NodeBox, wall: int) -> Box:
    if wall in (0, 6):
        return shape.wall_top if wall == 0 else _turned(shape.wall_top, 3)
    if wall in (1, 7):
        return shape.wall_bottom if wall == 1 else _turned(shape.wall_bottom, 1)
    # The side box is drawn on the x- wall; quarter turns bring it to the wall that param2 names.
    return _turned(shape.wall_side, {3: 0, 2: 2, 5: 3, 4: 1}[wall])


def _connected(shape: NodeBox, neighbours: int) -> tuple[Box, ...]:
    boxes = list(shape.fixed)
    for side, part in enumerate(CONNECTED_PARTS):
        boxes += shape.connected[part if neighbours & (1 << side) else f"disconnected_{part}"]
    if not neighbours:
        boxes += shape.connected["disconnected"]
    if neighbours < 4:
        boxes += shape.connected["disconnected_sides"]
    return tuple(boxes)
