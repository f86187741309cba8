"""A player's own movement on hand-made maps."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from orrery_worldedit.games.luanti.collision import Body, Landing, Solid, node_of
from orrery_worldedit.games.luanti.definitions import NodeBox, NodeDef
from orrery_worldedit.games.luanti.nodeboxes import collision_boxes, connects
from orrery_worldedit.games.luanti.physics import Movement, Overrides, advance, fall_damage

Pos = tuple[int, int, int]

AIR = NodeDef("air", walkable=False)
STONE = NodeDef("stone")
SLAB = NodeDef("slab", drawtype="nodebox", node_box=NodeBox("fixed", ((-0.5, -0.5, -0.5, 0.5, 0.0, 0.5),)))
FENCE = NodeDef("fence", collision_box=NodeBox("fixed", ((-0.5, -0.5, -0.5, 0.5, 1.0, 0.5),)))
LADDER = NodeDef("ladder", walkable=False, climbable=True)
WATER = NodeDef("water", walkable=False, liquid_type="source", liquid_move_physics=True, move_resistance=1)
COBWEB = NodeDef("cobweb", walkable=False, move_resistance=7)
STEP = 0.09


class Map:
    """A floor of stone with its top at y = 0.5, air above it, and what is put in."""

    def __init__(self, nodes: dict[Pos, NodeDef] | None = None, known: bool = True) -> None:
        self.nodes = nodes or {}
        self.known = known

    def node_def(self, pos: Pos) -> NodeDef | None:
        if not self.known:
            return None
        return self.nodes.get(pos, STONE if pos[1] <= 0 else AIR)

    def solids(self, low: Pos, high: Pos) -> tuple[list[Solid], bool]:
        solids = []
        for x in range(low[0], high[0] + 1):
            for y in range(low[1], high[1] + 1):
                for z in range(low[2], high[2] + 1):
                    node = self.node_def((x, y, z))
                    for box in collision_boxes(node, 0) if node else ():
                        moved = tuple(edge + (x, y, z)[i % 3] for i, edge in enumerate(box))
                        solids.append(Solid(moved, node))
        return solids, self.known


class Run:
    """A body on a map, moved in server steps."""

    def __init__(self, terrain: Map, pos: tuple[float, float, float] = (0.0, 0.5, 0.0)) -> None:
        self.terrain, self.body = terrain, Body(pos)
        self.overrides, self.landings = Overrides(), list[Landing]()
        self.heights: list[float] = []
        self.advance(0.01)

    def advance(self, seconds: float, *controls: str, yaw: float = 0.0) -> None:
        left = seconds
        while left > 1e-9:
            dt = min(STEP, left)
            self.landings += advance(
                self.body, self.terrain, dt, set(controls), yaw, Movement(), self.overrides
            )
            self.heights.append(self.body.pos[1])
            left -= dt

    @property
    def x(self) -> float:
        return self.body.pos[0]

    @property
    def y(self) -> float:
        return self.body.pos[1]

    @property
    def z(self) -> float:
        return self.body.pos[2]


# -- falling


def test_a_fall_of_16_and_a_half_nodes_costs_11_points() -> None:
    run = Run(Map(), (0.0, 17.0, 0.0))
    run.advance(3)
    assert run.y == pytest.approx(0.5)
    assert [fall_damage(landing, {}) for landing in run.landings if landing.speed > 1] == [11]


def test_low_gravity_makes_the_same_fall_harmless() -> None:
    run = Run(Map(), (0.0, 17.0, 0.0))
    run.overrides = Overrides(gravity=0.2)
    run.advance(6)
    assert run.y == pytest.approx(0.5)
    assert not any(fall_damage(landing, {}) for landing in run.landings)


@pytest.mark.parametrize(
    ("speed", "groups", "armor", "damage"),
    [
        (14.4, {}, {}, 0),
        (14.5, {}, {}, 1),
        (20, {}, {}, 6),
        (20, {"fall_damage_add_percent": -100}, {}, 0),
        (20, {"fall_damage_add_percent": 50}, {}, 16),
        (20, {}, {"fall_damage_add_percent": 50}, 16),
        (20, {}, {"immortal": 1}, 0),
        (1e9, {}, {}, 0xFFFF),
    ],
)
def test_fall_damage(speed: float, groups: dict[str, int], armor: dict[str, int], damage: int) -> None:
    assert fall_damage(Landing(speed, NodeDef("n", groups=groups)), armor) == damage


def test_a_landing_reports_the_node_under_the_body() -> None:
    run = Run(Map({(0, 1, 0): NodeDef("hay", groups={"fall_damage_add_percent": -30})}), (0.0, 20.0, 0.0))
    run.advance(3)
    assert [landing.node.name for landing in run.landings if landing.node and landing.speed > 1] == ["hay"]


def test_a_fast_body_does_not_fall_through_a_thin_plate() -> None:
    plate = NodeDef("plate", node_box=NodeBox("fixed", ((-0.5, -0.5, -0.5, 0.5, -0.4375, 0.5),)))
    run = Run(Map({(0, 5, 0): plate}), (0.0, 400.0, 0.0))
    run.advance(10)
    assert run.y == pytest.approx(4.5625)


def test_bouncy_ground_throws_back() -> None:
    run = Run(Map({(0, 1, 0): NodeDef("mushroom", groups={"bouncy": 80})}), (0.0, 11.5, 0.0))
    run.advance(4)
    first = next(i for i, y in enumerate(run.heights) if y < 3)
    assert max(run.heights[first:]) == pytest.approx(1.5 + 0.8**2 * 10, abs=0.3)


def test_nothing_moves_where_the_map_is_not_known() -> None:
    run = Run(Map(known=False), (0.0, 50.0, 0.0))
    run.advance(1, "forward")
    assert run.body.pos == (0.0, 50.0, 0.0)


# -- walking and jumping


def test_walking_for_a_second_covers_four_nodes_with_the_run_out() -> None:
    run = Run(Map())
    run.advance(1, "forward")
    moving = run.z
    run.advance(0.5)
    assert (moving, run.z) == (pytest.approx(3.75, abs=0.05), pytest.approx(4.0, abs=0.05))
    assert run.body.velocity == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("controls", "yaw", "direction"),
    [
        ({"forward"}, 90, (-1, 0)),
        ({"back"}, 0, (0, -1)),
        ({"left"}, 0, (-1, 0)),
        ({"right"}, 0, (1, 0)),
        ({"right"}, 90, (0, 1)),
        ({"forward", "right"}, 0, (math.sqrt(0.5), math.sqrt(0.5))),
        ({"forward", "back"}, 0, (0, 0)),
    ],
)
def test_directions(controls: set[str], yaw: float, direction: tuple[float, float]) -> None:
    run = Run(Map())
    run.advance(1, *controls, yaw=yaw)
    assert (run.x / 3.733, run.z / 3.733) == (
        pytest.approx(direction[0], abs=0.02),
        pytest.approx(direction[1], abs=0.02),
    )


@pytest.mark.parametrize("factor", [0.0, 0.6, 1.5, 3.0])
def test_speed_overrides(factor: float) -> None:
    run = Run(Map())
    run.overrides = Overrides(speed=factor)
    run.advance(2, "forward")
    start = run.z
    run.advance(1, "forward")
    assert run.z - start == pytest.approx(4 * factor, abs=0.01)


def test_speed_walk_multiplies_with_speed() -> None:
    run = Run(Map())
    run.overrides = Overrides(speed=2.0, speed_walk=1.5)
    run.advance(2, "forward")
    assert run.body.velocity[2] == pytest.approx(12)


def test_a_jump_rises_by_the_textbook_height() -> None:
    run = Run(Map())
    run.advance(STEP, "jump")
    run.advance(1)
    assert max(run.heights) - 0.5 == pytest.approx(6.5**2 / (4 * 9.81), abs=0.02)
    assert run.y == pytest.approx(0.5)


def test_jump_overrides_and_ground_that_forbids_it() -> None:
    high = Run(Map())
    high.overrides = Overrides(jump=2.0)
    high.advance(1, "jump")
    assert max(high.heights) - 0.5 == pytest.approx(13**2 / (4 * 9.81), abs=0.1)
    for blocked, overrides in (
        (NodeDef("glue", groups={"disable_jump": 1}), Overrides()),
        (STONE, Overrides(jump=0.0)),
    ):
        run = Run(Map({(0, 0, 0): blocked}))
        run.overrides = overrides
        run.advance(1, "jump")
        assert max(run.heights) == pytest.approx(0.5)


def test_one_jump_per_touch_of_the_ground() -> None:
    run = Run(Map())
    run.advance(0.3, "jump")
    rising = run.heights[:3]
    assert rising == sorted(rising)
    assert run.body.velocity[1] < 6.5


def test_walls_stop_and_let_slide_along() -> None:
    run = Run(Map({(x, y, 2): STONE for x in range(-9, 10) for y in (1, 2)}))
    run.advance(2, "forward")
    assert run.z == pytest.approx(1.5 - 0.3)
    run.advance(1, "forward", "right")
    assert run.z == pytest.approx(1.2)
    assert run.x > 2


def test_a_ceiling_ends_a_jump() -> None:
    run = Run(Map({(0, 3, 0): STONE}))
    run.advance(1, "jump")
    assert max(run.heights) == pytest.approx(2.5 - 1.75, abs=0.01)


def test_a_slab_is_climbed_a_cube_is_not_and_a_jump_gets_onto_it() -> None:
    slab = Run(Map({(x, 1, z): SLAB for x in (-1, 0, 1) for z in range(2, 30)}))
    slab.advance(2, "forward")
    assert (slab.y, slab.z) == (pytest.approx(1.0), pytest.approx(7.73, abs=0.05))
    cubes = {(x, 1, z): STONE for x in (-1, 0, 1) for z in range(2, 30)}
    cube = Run(Map(cubes))
    cube.advance(2, "forward")
    assert (cube.y, cube.z) == (pytest.approx(0.5), pytest.approx(1.2))
    cube.advance(1, "forward", "jump")
    cube.advance(1)
    assert cube.y == pytest.approx(1.5)


def test_a_fence_cannot_be_jumped() -> None:
    run = Run(Map({(x, 1, 2): FENCE for x in range(-5, 6)}))
    for _ in range(10):
        run.advance(0.5, "forward", "jump")
    assert run.z == pytest.approx(1.2)


def test_no_step_up_under_a_low_ceiling() -> None:
    run = Run(Map({(0, 1, 2): SLAB, (0, 3, 2): STONE, (1, 1, 2): STONE, (-1, 1, 2): STONE}))
    run.advance(2, "forward")
    assert (run.y, run.z) == (pytest.approx(0.5), pytest.approx(1.2))


def test_a_staircase_is_walked_up() -> None:
    stairs = {(x, 1 + i // 2, 2 + i): SLAB if i % 2 == 0 else STONE for i in range(8) for x in (-1, 0, 1)}
    stairs |= {(x, y, 2 + i): STONE for i in range(8) for x in (-1, 0, 1) for y in range(1, 1 + i // 2)}
    run = Run(Map(stairs))
    run.advance(2.5, "forward")
    assert max(run.heights) == pytest.approx(4.5)


def test_slippery_ground_carries_on() -> None:
    ice = {(x, 0, z): NodeDef("ice", groups={"slippery": 3}) for x in (-1, 0, 1) for z in range(-1, 40)}
    run = Run(Map(ice))
    run.advance(3, "forward")
    start = run.z
    run.advance(2)
    # half of v^2 / a, with a = 30 / (2 * 3 + 1)
    assert run.z - start == pytest.approx(4**2 / 2 / (30 / 7), abs=0.05)


# -- sneaking


def test_a_sneaking_body_stays_on_its_edge() -> None:
    pillar = Map({(0, y, 0): STONE for y in (1, 2, 3)})
    walker = Run(pillar, (0.0, 3.5, 0.0))
    walker.advance(2, "forward")
    assert walker.y == pytest.approx(0.5)
    sneaker = Run(pillar, (0.0, 3.5, 0.0))
    sneaker.advance(3, "forward", "sneak")
    assert (sneaker.y, sneaker.z) == (pytest.approx(3.5), pytest.approx(0.8, abs=0.03))
    sneaker.overrides = Overrides(sneak=False)
    sneaker.advance(3, "forward", "sneak")
    assert sneaker.y == pytest.approx(0.5)


def test_sneaking_is_slower() -> None:
    run = Run(Map())
    run.advance(2, "forward", "sneak")
    assert run.body.velocity[2] == pytest.approx(1.35)


# -- liquids, ladders, resistance


def _pool() -> Map:
    return Map({(x, y, z): WATER for x in range(-3, 4) for y in range(1, 11) for z in range(-3, 4)})


def test_a_body_sinks_slowly_and_falls_into_water_unharmed() -> None:
    run = Run(_pool(), (0.0, 8.0, 0.0))
    run.advance(1)
    start = run.y
    run.advance(1)
    # a client's own steering takes back most of the sinking in every substep
    assert start - run.y == pytest.approx(0.1, abs=0.05)
    diver = Run(_pool(), (0.0, 38.0, 0.0))
    diver.advance(5)
    assert diver.y < 10
    assert not any(fall_damage(landing, {}) for landing in diver.landings)


def test_swimming_up_and_down() -> None:
    run = Run(_pool(), (0.0, 5.0, 0.0))
    run.advance(1, "jump")
    assert run.y > 6.5
    high = run.y
    run.advance(1, "sneak")
    assert run.y < high - 2


def test_a_ladder_is_climbed_held_and_left_downwards() -> None:
    ladder = Map({(0, y, 0): LADDER for y in range(1, 30)})
    run = Run(ladder)
    run.advance(1, "jump")
    start = run.y
    run.advance(2, "jump")
    assert run.y - start == pytest.approx(6.0, abs=0.01)
    run.advance(0.3)
    held = run.y
    run.advance(1)
    assert run.y == pytest.approx(held)
    run.advance(1, "sneak")
    assert held - run.y == pytest.approx(3.0, abs=0.2)


def test_speed_climb_override() -> None:
    run = Run(Map({(0, y, 0): LADDER for y in range(1, 30)}))
    run.overrides = Overrides(speed_climb=2.0)
    run.advance(1, "jump")
    start = run.y
    run.advance(1, "jump")
    assert run.y - start == pytest.approx(6.0, abs=0.01)


def test_a_resisting_node_slows() -> None:
    run = Run(Map({(x, y, z): COBWEB for x in (-1, 0, 1) for y in (1, 2) for z in range(30)}))
    run.advance(2, "forward")
    assert 0 < run.body.velocity[2] < 1.5


# -- the whole


def _solid_overlap(body: Body, terrain: Map) -> bool:
    x, y, z = body.pos
    low = (x + body.box[0], y + body.box[1], z + body.box[2])
    high = (x + body.box[3], y + body.box[4], z + body.box[5])
    solids, _ = terrain.solids(node_of(*(c - 1 for c in low)), node_of(*(c + 1 for c in high)))
    return any(
        all(low[i] < solid.box[i + 3] - 1e-4 and high[i] > solid.box[i] + 1e-4 for i in range(3))
        for solid in solids
    )


_NODES = st.sampled_from([STONE, SLAB, FENCE, LADDER, WATER, COBWEB])
_KEYS = st.sets(st.sampled_from(["forward", "back", "left", "right", "jump", "sneak"]))


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(
        st.tuples(st.integers(-3, 3), st.integers(1, 3), st.integers(-3, 3)), _NODES, max_size=60
    ),
    st.lists(st.tuples(_KEYS, st.floats(0, 360)), min_size=1, max_size=25),
    st.floats(0.2, 4),
)
def test_a_body_never_enters_a_solid_and_moves_the_same_again(
    nodes: dict[Pos, NodeDef], keys: list[tuple[set[str], float]], speed: float
) -> None:
    for x in (-1, 0, 1):
        for z in (-1, 0, 1):
            for y in (1, 2, 3):
                nodes.pop((x, y, z), None)
    ends = []
    for _ in range(2):
        run = Run(Map(nodes))
        run.overrides = Overrides(speed=speed)
        for controls, yaw in keys:
            run.advance(STEP, *controls, yaw=yaw)
            assert not _solid_overlap(run.body, run.terrain)
            assert run.y >= 0.5 - 1e-6
        ends.append((run.body.pos, run.body.velocity))
    assert ends[0] == ends[1]


# -- node boxes


def _facing(name: str, param2: int, box: tuple[float, ...]) -> tuple[float, ...]:
    node = NodeDef("n", paramtype2=name, node_box=NodeBox("fixed", (box,)))  # type: ignore[arg-type]
    return collision_boxes(node, param2)[0]


def test_boxes_turn_with_the_node() -> None:
    back = (-0.5, -0.5, 0.25, 0.5, 0.5, 0.5)  # on the z+ side
    assert _facing("facedir", 0, back) == back
    assert _facing("facedir", 1, back) == (0.25, -0.5, -0.5, 0.5, 0.5, 0.5)
    assert _facing("facedir", 2, back) == (-0.5, -0.5, -0.5, 0.5, 0.5, -0.25)
    assert _facing("facedir", 3, back) == (-0.5, -0.5, -0.5, -0.25, 0.5, 0.5)
    floor = (-0.5, -0.5, -0.5, 0.5, -0.25, 0.5)
    assert _facing("facedir", 20, floor) == (-0.5, 0.25, -0.5, 0.5, 0.5, 0.5)  # upside down
    assert _facing("facedir", 4, floor) == (-0.5, -0.5, -0.5, 0.5, 0.5, -0.25)
    assert _facing("4dir", 4 + 1, back) == _facing("facedir", 1, back)
    assert _facing("none", 1, back) == back


def test_every_facing_is_different_and_keeps_its_volume() -> None:
    box = (-0.5, -0.4, -0.3, 0.1, 0.2, 0.45)
    turned = {_facing("facedir", facing, box) for facing in range(24)}
    assert len(turned) == 24
    for t in turned:
        assert math.prod(t[i + 3] - t[i] for i in range(3)) == pytest.approx(0.6 * 0.6 * 0.75)


@pytest.mark.parametrize(
    ("param2", "face"),
    [(0, (1, 0.5)), (1, (1, -0.5)), (2, (0, 0.5)), (3, (0, -0.5)), (4, (2, 0.5)), (5, (2, -0.5))],
)
def test_wall_mounted_boxes_lie_on_their_wall(param2: int, face: tuple[int, float]) -> None:
    node = NodeDef("sign", paramtype2="wallmounted", node_box=NodeBox("wallmounted"))
    (box,) = collision_boxes(node, param2)
    axis, edge = face
    assert edge in (box[axis], box[axis + 3])
    assert box[axis + 3] - box[axis] == pytest.approx(1 / 16)


def test_leveled_boxes_follow_param2() -> None:
    box = (-0.5, -0.5, -0.5, 0.5, 0.5, 0.5)
    snow = NodeDef("snow", paramtype2="leveled", leveled=8, node_box=NodeBox("leveled", (box,)))
    assert [collision_boxes(snow, param2)[0][4] for param2 in (0, 16, 63)] == [-0.375, -0.25, -0.5 + 63 / 64]


def test_connected_boxes_join_their_neighbours() -> None:
    sides = ("top", "bottom", "front", "left", "back", "right")
    post, arm = (-0.1, -0.5, -0.1, 0.1, 0.5, 0.1), (-0.5, 0.0, -0.1, -0.1, 0.2, 0.1)
    empty = {f"{prefix}{side}": () for prefix in ("", "disconnected_") for side in sides}
    shape = NodeBox(
        "connected", (post,), connected=empty | {"left": (arm,), "disconnected": (), "disconnected_sides": ()}
    )
    wall = NodeDef("wall", drawtype="nodebox", node_box=shape, connects_to=frozenset({1, 2}))
    assert collision_boxes(wall, 0, 0) == (post,)
    assert collision_boxes(wall, 0, 8) == (post, arm)
    assert connects(wall, 1, wall, 1, 3)
    assert connects(wall, 1, STONE, 2, 3)
    assert not connects(wall, 1, STONE, 3, 3)


def test_a_collision_box_overrides_the_node_box_and_air_has_none() -> None:
    assert collision_boxes(FENCE, 0)[0][4] == 1.0
    assert collision_boxes(WATER, 0) == ()
    assert collision_boxes(STONE, 0) == ((-0.5, -0.5, -0.5, 0.5, 0.5, 0.5),)


@pytest.mark.parametrize(
    ("value", "node"), [(0.49, 0), (0.5, 1), (-0.49, 0), (-0.5, -1), (-1.4, -1), (1.5, 2)]
)
def test_points_belong_to_the_nearest_node(value: float, node: int) -> None:
    assert node_of(value, 0, value) == (node, 0, node)
