"""Worlds in lockstep: the same every time, players in step, restarts that keep what they must."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from luanti_worlds import world, write_mod
from orrery_core.errors import InfrastructureError
from orrery_worldedit.games.luanti.world import JoinDenied

pytestmark = pytest.mark.e2e

SCENE = """
for x = -3, 3 do for z = 3, 9 do C.set_node({x = x, y = 20, z = z}, {name = "default:dirt"}) end end
C.set_node({x = 0, y = 20, z = 6}, {name = "default:dirt_with_grass"})
for x = -3, 3 do for z = 3, 9 do C.set_node({x = x, y = 26, z = z}, {name = "default:leaves"}) end end
for _, p in ipairs({{-3, 21, 3}, {-2, 21, 3}, {-2, 22, 3}, {-3, 22, 4}}) do
	C.set_node({x = p[1], y = p[2], z = p[3]}, {name = "default:wood"})
end
C.set_node({x = -3, y = 21, z = 3}, {name = "fire:basic_flame"})
for i = 1, 10 do
	C.add_item({x = math.random(-3, 3), y = 24, z = math.random(3, 9)}, "default:stone " .. math.random(9))
end
local sapling = {x = 3, y = 21, z = 9}
C.set_node(sapling, {name = "default:sapling"})
C.registered_nodes["default:sapling"].on_construct(sapling)
"""

LOOK = """
local nodes = {}
for x = -24, 23 do for y = 0, 40 do for z = -24, 23 do
	local node = C.get_node({x = x, y = y, z = z})
	nodes[#nodes + 1] = node.name .. "." .. node.param1 .. "." .. node.param2
end end end
local entities = {}
for _, entity in pairs(C.luaentities) do
	local at = I.ObjectRef.get_pos(entity.object)
	entities[#entities + 1] = entity.name .. C.pos_to_string(at, 3) .. tostring(entity.itemstring)
end
table.sort(entities)
local map = C.sha1(table.concat(nodes, ","))
return {map = map, entities = entities, time = C.get_gametime(), random = math.random(1e9)}
"""


def scene(tmp_path: Path, name: str) -> dict[str, Any]:
    """Fire, leaves, grass, a sapling, dropped items, and a player who walks, digs and comes back."""
    with world(tmp_path, mapgen="flat", name=name) as running:
        alice = running.join("alice")
        running.ask(SCENE)
        running.ask(
            'I.InvRef.set_stack(I.ObjectRef.get_inventory(player("alice")), "main", 1, "default:pick_steel")'
        )
        running.act()
        alice.controls = {"forward"}
        running.move(3)
        alice.controls = set()
        x, z = round(alice.pos[0]), round(alice.pos[2])
        alice.dig_start((x, 8, z))
        running.act(1)
        alice.dig_finish((x, 8, z))
        running.act()
        running.run(120)
        place = list(alice.pos)
        running.restart()
        running.run(10)
        return {
            "look": running.ask(LOOK),
            "place": place,
            "events": [event.model_dump() for event in running.events],
            "registry": running.dump(),
            "steps": running.step,
        }


def test_the_same_scene_three_times(tmp_path: Path) -> None:
    first = scene(tmp_path, "first")
    assert {"dig", "join", "leave", "shutdown"} <= {event["kind"] for event in first["events"]}
    assert first["place"][2] > 2  # she did walk
    for name in ("second", "third"):
        again = scene(tmp_path, name)
        for part in first:
            assert json.dumps(again[part]) == json.dumps(first[part]), part


def test_time_passes_only_when_it_is_let(tmp_path: Path) -> None:
    with world(tmp_path) as running:
        before = running.step
        running.settle()
        running.flush()
        assert running.step == before
        running.run(9)
        assert running.step == before + 100
        running.act()
        assert running.step == before + 101
        running.act(0.9)
        assert running.step == before + 111


def test_what_a_player_sends_costs_no_time(tmp_path: Path) -> None:
    with world(tmp_path) as running:
        alice = running.join("alice")
        before = running.step
        for number in range(5):  # the server takes few more at once
            alice.say(f"message {number}")
        running.flush()
        assert running.step == before
        said = [event.data["message"] for event in running.events if event.kind == "chat"]
        assert said == [f"message {number}" for number in range(5)]


def test_a_player_sees_what_happened(tmp_path: Path) -> None:
    with world(tmp_path, mapgen="flat", arena_radius=16) as running:
        alice = running.join("alice")
        running.ask('C.set_node({x = 0, y = 9, z = 3}, {name = "default:mese"})')
        running.ask('I.ObjectRef.set_hp(player("alice"), 7)')
        running.act()
        assert alice.node((0, 9, 3)) == "default:mese"
        assert alice.hp == 7


def test_players_walk_by_their_own_physics(tmp_path: Path) -> None:
    with world(tmp_path, mapgen="flat", arena_radius=16) as running:
        alice = running.join("alice")
        alice.controls = {"forward"}
        running.move(1.8)
        at = running.ask('return I.ObjectRef.get_pos(player("alice"))')
        assert at["z"] > 3
        assert at["z"] == pytest.approx(alice.pos[2], abs=0.02)


def test_joining_and_leaving_take_the_same_steps(tmp_path: Path) -> None:
    with world(tmp_path) as running:
        costs = []
        for _ in range(3):
            before = running.step
            running.join("alice")
            joined = running.step
            running.leave("alice")
            costs.append((joined - before, running.step - joined))
        assert len(set(costs)) == 1
        assert not running.players


def test_a_refused_player_is_told_why(tmp_path: Path) -> None:
    mod = write_mod(
        tmp_path / "mod", 'core.register_on_prejoinplayer(function() return "closed today" end)\n'
    )
    with world(tmp_path, mod) as running:
        with pytest.raises(JoinDenied, match="closed today"):
            running.join("alice")
        assert running.players == {}
        assert running.ask("return 7") == 7


def test_a_restart_keeps_the_world(tmp_path: Path) -> None:
    with world(tmp_path, mapgen="flat", arena_radius=16) as running:
        running.join("alice")
        running.ask(
            """
            C.set_node({x = 1, y = 9, z = 2}, {name = "default:brick"})
            I.NodeMetaRef.set_string(C.get_meta({x = 1, y = 9, z = 1}), "k", "v")
            I.InvRef.set_stack(I.ObjectRef.get_inventory(player("alice")), "main", 3, "default:mese 7")
            """
        )
        time = running.ask("return C.get_gametime()")
        running.act()
        running.restart()
        assert running.players["alice"].inventory["main"][2] == "default:mese 7"
        assert running.ask("return C.get_node({x = 1, y = 9, z = 2}).name") == "default:brick"
        assert running.ask('return I.NodeMetaRef.get_string(C.get_meta({x = 1, y = 9, z = 1}), "k")') == "v"
        assert time <= running.ask("return C.get_gametime()") <= time + 5
        assert [event.kind for event in running.events].count("new") == 1
        steps = [event.step for event in running.events]
        assert steps == sorted(steps)
        assert [event.seq for event in running.events] == list(range(1, len(steps) + 1))


def test_helper_mods_load_before_the_candidate(tmp_path: Path) -> None:
    helper = write_mod(tmp_path / "helper", "helper = {}\n", "name = helper\n")
    mod = write_mod(tmp_path / "mod", "assert(rawget(_G, 'helper'))\n", "name = cand\ndepends = helper\n")
    with world(tmp_path, mod, extra_mods=[helper]) as running:
        assert {"helper", "cand"} <= set(running.ask("return C.get_modnames()"))


def test_the_arena_is_there_from_the_start(tmp_path: Path) -> None:
    with world(tmp_path, mapgen="flat") as running:
        names = running.ask(
            "local r = {} for _, p in ipairs({{-40, 8, -40}, {40, 8, 40}, {0, 9, 0}}) do "
            "r[#r + 1] = C.get_node({x = p[1], y = p[2], z = p[3]}).name end return r"
        )
        assert names == ["default:stone", "default:stone", "air"]


def test_settings_reach_the_server(tmp_path: Path) -> None:
    with world(tmp_path, settings={"time_speed": "0"}) as running:
        assert running.ask('return I.Settings.get(C.settings, "time_speed")') == "0"


def test_a_finished_world_says_so(tmp_path: Path) -> None:
    running = world(tmp_path)
    running.start()
    running.stop()
    with pytest.raises(RuntimeError, match="not running"):
        running.ask("return 1")


def test_a_missing_gate_library_is_an_infrastructure_error(tmp_path: Path, monkeypatch) -> None:
    from orrery_worldedit.games.luanti import gate

    gate.library.cache_clear()
    monkeypatch.setenv("ORRERY_GATE_LIBRARY", "/nowhere/gate.so")
    try:
        with pytest.raises(InfrastructureError, match="nowhere"), world(tmp_path):
            pass
    finally:
        gate.library.cache_clear()
