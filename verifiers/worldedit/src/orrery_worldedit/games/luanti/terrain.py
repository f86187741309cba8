"""The map a player was sent, as bodies collide with it."""

from __future__ import annotations

from .collision import Solid
from .definitions import Box, NodeDef
from .nodeboxes import SIDE_OFFSETS, collision_boxes, connects
from .protocol import NodePos
from .view import View

_CUBE: Box = (-0.5, -0.5, -0.5, 0.5, 0.5, 0.5)
_REACH = 2.0  # objects this far from the nodes asked for can still stick into them


class ViewTerrain:
    """Adapts a `View` to `collision.Terrain`; ground that was not sent is solid, as for a real client."""

    def __init__(self, view: View) -> None:
        self._view = view

    def node_def(self, pos: NodePos) -> NodeDef | None:
        found = self._view.node_at(pos)
        return None if found is None or found[0].name == "ignore" else found[0]

    def solids(self, low: NodePos, high: NodePos) -> tuple[list[Solid], bool]:
        solids: list[Solid] = []
        known = False
        for z in range(low[2], high[2] + 1):
            for y in range(low[1], high[1] + 1):
                for x in range(low[0], high[0] + 1):
                    known |= self._add(solids, (x, y, z))
        self._add_objects(solids, low, high)
        return solids, known

    def _add(self, solids: list[Solid], pos: NodePos) -> bool:
        found = self._view.node_at(pos)
        if found is None or found[0].name == "ignore":
            solids.append(Solid(_moved(_CUBE, pos)))
            return False
        node, _, param2 = found
        if node.walkable:
            connected = node.drawtype == "nodebox" and node.node_box.type == "connected"
            neighbours = self._neighbours(node, pos) if connected else 0
            solids += (Solid(_moved(box, pos), node) for box in collision_boxes(node, param2, neighbours))
        return True

    def _neighbours(self, node: NodeDef, pos: NodePos) -> int:
        content, bits = self._view.content_at(pos), 0
        for side, (dx, dy, dz) in enumerate(SIDE_OFFSETS):
            beside = (pos[0] + dx, pos[1] + dy, pos[2] + dz)
            found = self._view.node_at(beside)
            if found and connects(node, content, found[0], self._view.content_at(beside), side):
                bits |= 1 << side
        return bits

    def _add_objects(self, solids: list[Solid], low: NodePos, high: NodePos) -> None:
        view = self._view
        for obj in view.objects.values():
            if not (obj.physical and obj.collide_with_objects) or obj.id == view.object_id or obj.attached_to:
                continue
            if all(a - _REACH <= c <= b + _REACH for a, c, b in zip(low, obj.pos, high, strict=True)):
                solids.append(Solid(_moved(obj.collisionbox, obj.pos)))


def _moved(box: Box, pos: tuple[float, float, float]) -> Box:
    x, y, z = pos
    return (box[0] + x, box[1] + y, box[2] + z, box[3] + x, box[4] + y, box[5] + z)
