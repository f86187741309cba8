"""The evaluator mod: its protocol, its environment and the events it reports."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from luanti_worlds import world
from orrery_worldedit.games.luanti import channel
from orrery_worldedit.games.luanti.channel import Channel, ChannelError, Event, Transcript, printable
from orrery_worldedit.games.luanti.folder import PROBE
from orrery_worldedit.games.luanti.world import LuaError

# -- the protocol


@given(st.binary())
def test_any_bytes_become_printable_json_text(data: bytes) -> None:
    body = json.dumps("x")[1:-1].encode() + bytes(byte for byte in data if byte >= 128)
    text = json.loads(printable(b'"' + body + b'"'))
    text.encode("utf-8")


def test_utf8_stays_as_it_is() -> None:
    assert json.loads(printable('"größe \\\\u0041"'.encode())) == "größe \\u0041"
    assert json.loads(printable(b'"\xff\\\\\xfe"')) == "\\xff\\\\xfe"


@pytest.fixture
def files(tmp_path: Path):
    ours = Channel(tmp_path)
    yield ours, tmp_path / "evt"
    ours.close()


def event(seq: int, kind: str = "x", **data: object) -> bytes:
    return json.dumps({"seq": seq, "step": 1, "kind": kind, "data": data}).encode() + b"\n"


def test_an_unfinished_line_waits_for_its_end(files) -> None:
    ours, path = files
    whole = event(1)
    path.write_bytes(whole[:9])
    assert ours.read() == []
    path.write_bytes(whole)
    assert [message.seq for message in ours.read()] == [1]
    assert ours.read() == []


@pytest.mark.parametrize(
    "line",
    [
        b"nonsense",
        b"{}",
        b"[]",
        b'{"seq":1}',
        b'{"re":1,"step":1}',
        b"[" * 100000,
        b'{"seq":1,"step":1,"kind":3,"data":{}}',
    ],
)
def test_anything_else_is_not_the_probe(files, line: bytes) -> None:
    ours, path = files
    path.write_bytes(line + b"\n")
    with pytest.raises(ChannelError):
        ours.read()


def test_output_is_bounded(files, monkeypatch) -> None:
    ours, path = files
    monkeypatch.setattr(channel, "MAX_LINE", 100)
    path.write_bytes(b"x" * 101)
    with pytest.raises(ChannelError, match="too long"):
        ours.read()
    os.truncate(path, channel.MAX_TOTAL + 1)
    with pytest.raises(ChannelError, match="grew"):
        ours.read()


def test_a_request_is_one_line(files) -> None:
    ours, path = files
    assert ours.send("eval", "return\n1", {"text": "ü\n"}) == 1
    assert ours.send("dump") == 2
    lines = (path.parent / "cmd").read_text().splitlines()
    assert len(lines) == 2
    assert json.loads(lines[0]) == {"id": 1, "op": "eval", "code": "return\n1", "arg": {"text": "ü\n"}}


def test_events_are_numbered_through_restarts() -> None:
    def seen(seq: int) -> Event:
        return Event(seq=seq, step=3, kind="x", data={})

    transcript = Transcript()
    transcript.take([seen(1), seen(2)])
    transcript.new_run(steps_before=10, events_before=2)
    transcript.take([seen(1)])
    assert [(event.seq, event.step) for event in transcript.events] == [(1, 3), (2, 3), (3, 13)]
    for wrong in (1, 3):
        with pytest.raises(ChannelError):
            transcript.take([seen(wrong)])


@pytest.mark.skipif(not shutil.which("luacheck"), reason="no luacheck")
def test_luacheck_is_silent() -> None:
    done = subprocess.run(["luacheck", "-q", "."], cwd=PROBE, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


# -- requests


@pytest.mark.e2e
def test_values_come_back(tmp_path: Path) -> None:
    with world(tmp_path) as running:
        for value in (None, True, False, 0, -7, 1.5, "größe", "a\\b\n", [1, 2, 3], {"a": {"b": [1]}}):
            assert running.ask("return arg", value) == value
        assert running.ask("return {}") == {}
        assert running.ask("return {0/0, 1/0, -1/0}") == ["nan", "inf", "-inf"]
        assert running.ask('return ItemStack("default:dirt 3")') == "default:dirt 3"
        assert running.ask("return {[2] = 1}") == {"2": 1}
        assert running.ask("return C.get_us_time") == "fn:C"
        long = "-- " + "x" * 200_000 + "\nreturn #arg"
        assert running.ask(long, "y" * 300_000) == 300_000


@pytest.mark.e2e
def test_errors_come_back_as_errors(tmp_path: Path) -> None:
    with world(tmp_path) as running:
        with pytest.raises(LuaError, match="on purpose"):
            running.ask('error("on purpose")')
        with pytest.raises(LuaError, match="unexpected symbol"):
            running.ask("return =")
        assert running.ask("return 7") == 7


@pytest.mark.e2e
def test_a_request_costs_one_step(tmp_path: Path) -> None:
    with world(tmp_path) as running:
        before = running.step
        first = running.ask("return clock.steps")
        assert running.step == before + 1
        assert running.ask("return clock.steps") == first + 1


# -- events


@pytest.mark.e2e
def test_what_players_do_is_reported(tmp_path: Path) -> None:
    with world(tmp_path, mapgen="flat", arena_radius=20) as running:
        alice, bob = running.join("alice"), running.join("bob")
        running.ask(
            """
            local p = player("alice")
            I.ObjectRef.set_pos(p, {x = 0, y = 8.5, z = 0})
            local inventory = I.ObjectRef.get_inventory(p)
            I.InvRef.set_stack(inventory, "main", 1, "default:dirt 5")
            I.InvRef.set_stack(inventory, "main", 2, "default:apple 2")
            I.InvRef.set_stack(inventory, "main", 3, "default:tree 1")
            I.ObjectRef.set_hp(p, 10)
            C.set_node({x = 0, y = 9, z = 2}, {name = "default:torch", param2 = 1})
            """
        )
        running.act()
        alice.select(0)
        alice.place((0, 8, 1), (0, 9, 1))
        running.act()
        alice.dig_start((0, 9, 2))
        running.act(0.5)
        alice.dig_finish((0, 9, 2))
        running.act()
        alice.select(1)
        alice.use()
        running.act()
        alice.say("hello")
        running.act()
        alice.drop("main", 0, 1)
        running.act()
        alice.fields("cand:form", {"a": "b"})
        running.act()
        running.ask('I.ObjectRef.set_hp(player("bob"), 0)')
        running.act()
        bob.respawn()
        running.act()
        running.leave("bob")
        found: dict[str, list[dict]] = {}
        for seen in running.events:
            found.setdefault(seen.kind, []).append(seen.data)
        assert [data["name"] for data in found["join"]] == ["alice", "bob"]
        assert found["place"] == [{"pos": {"x": 0, "y": 9, "z": 1}, "node": "default:dirt", "by": "alice"}]
        assert found["dig"] == [{"pos": {"x": 0, "y": 9, "z": 2}, "node": "default:torch", "by": "alice"}]
        assert {"name": "alice", "message": "hello"} in found["chat"]
        assert found["eat"][0]["hp"] == 2 and found["eat"][0]["name"] == "alice"
        assert [data["change"] for data in found["hp"] if data["name"] == "alice"] == [-10, 2]
        assert any(data["action"] == "take" and data["name"] == "alice" for data in found["inventory"])
        assert [data["name"] for data in found["die"]] == ["bob"]
        assert [data["name"] for data in found["respawn"]] == ["bob"]
        assert [data["name"] for data in found["leave"]] == ["bob"]
        assert all("via" not in data for data in found["dig"] + found["hp"] + found["chat"])


@pytest.mark.e2e
def test_fake_players_do_not_break_us(tmp_path: Path) -> None:
    with world(tmp_path, arena_radius=16) as running:
        running.ask(
            """
            local at = {x = 0, y = 9, z = 0}
            C.set_node(at, {name = "default:dirt"})
            local fake = setmetatable({get_player_name = function() error("on purpose") end}, {
                __index = function() return function() end end})
            for _, func in ipairs(C.registered_on_dignodes) do func(at, {name = "default:dirt"}, fake) end
            """
        )
        digs = [event.data for event in running.events if event.kind == "dig"]
        assert len(digs) == 1 and "by" not in digs[0]
