"""Mods that break, hang, lie or pry: each ends as its author's failure and changes nothing of what we see."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path

import pytest
from luanti_worlds import hasty, vanilla, world, write_mod
from orrery_worldedit.games.luanti import registry
from orrery_worldedit.games.luanti.folder import probe_name
from orrery_worldedit.games.luanti.world import (
    LuaError,
    ProbeSilent,
    ServerDied,
    ServerLimits,
    StepTimeout,
    WorldFailure,
)

pytestmark = pytest.mark.e2e


def small(**changes: int) -> ServerLimits:
    return ServerLimits(whole=dataclasses.replace(ServerLimits().whole, **changes))


# -- mods that break


@pytest.mark.parametrize(
    ("mod", "kind", "causes"),
    [
        ("os_exit", ServerDied, {"load"}),
        ("load_error", ServerDied, {"load"}),
        ("wrong_prefix", ServerDied, {"load"}),
        ("syntax_error", ServerDied, {"syntax"}),
        ("mods_loaded_error", ServerDied, {"mods_loaded"}),
        ("missing_dependency", ServerDied, {"dependency"}),
        ("shutdown_at_load", ServerDied, {"exit"}),
        ("shutdown_in_mods_loaded", ServerDied, {"exit"}),
    ],
)
def test_a_mod_that_does_not_load(tmp_path: Path, mod: str, kind: type, causes: set[str]) -> None:
    with pytest.raises(kind) as caught, world(tmp_path, mod):
        pass
    assert caught.value.cause in causes
    assert caught.value.reason and isinstance(caught.value.log_tail, list)


def test_a_reason_names_file_line_and_message(tmp_path: Path) -> None:
    with pytest.raises(ServerDied) as caught, world(tmp_path, "syntax_error"):
        pass
    assert "cand/init.lua:1" in caught.value.reason
    assert "unexpected symbol" in caught.value.reason
    assert "worldmods" not in caught.value.reason


@pytest.mark.parametrize(
    ("mod", "cause"),
    [("step_error", "callback"), ("after_error", "callback"), ("shutdown_later", "exit")],
)
def test_a_mod_that_breaks_later(tmp_path: Path, mod: str, cause: str) -> None:
    with world(tmp_path, mod) as running:
        with pytest.raises(ServerDied) as caught:
            running.run(5)
        assert caught.value.cause == cause
        with pytest.raises(ServerDied):  # and stays broken
            running.ask("return 1")


def test_an_error_when_a_player_joins(tmp_path: Path) -> None:
    with world(tmp_path, "join_error") as running:
        with pytest.raises(ServerDied) as caught:
            running.join("alice")
        assert caught.value.cause == "callback"
        assert not running.players


def test_an_error_on_shutdown(tmp_path: Path) -> None:
    running = world(tmp_path, "shutdown_error")
    running.start()
    with pytest.raises(ServerDied) as caught:
        running.restart()
    assert caught.value.cause == "shutdown"
    running.stop()
    again = world(tmp_path, "shutdown_error", name="again")
    again.start()
    failure = again.stop()
    assert failure is not None and failure.cause == "shutdown"


def test_without_a_candidate_a_failure_is_ours(tmp_path: Path) -> None:
    from orrery_core.errors import InfrastructureError

    with world(tmp_path) as running, pytest.raises(InfrastructureError, match="vanilla server failed"):
        running.ask('C.request_shutdown("", false, 0)')
        running.run(5)


# -- mods that hang or take everything


def test_an_endless_loop_while_loading(tmp_path: Path) -> None:
    with pytest.raises(StepTimeout) as caught, world(tmp_path, "loop_at_load", limits=hasty(load_s=8.0)):
        pass
    assert caught.value.cause == "time"


def test_an_endless_loop_in_a_step(tmp_path: Path) -> None:
    with world(tmp_path, "loop_in_step", limits=hasty()) as running, pytest.raises(StepTimeout):
        running.run(10)


def test_an_endless_loop_in_a_callback(tmp_path: Path) -> None:
    with world(tmp_path, "loop_in_callback", limits=hasty()) as running, pytest.raises(StepTimeout):
        running.join("alice")


def test_a_pattern_that_never_ends(tmp_path: Path) -> None:
    with world(tmp_path, "loop_in_pattern", limits=hasty()) as running:
        alice = running.join("alice")
        alice.say("hello")
        with pytest.raises(StepTimeout):
            running.act()


@pytest.mark.parametrize("mod", ["memory_at_load", "memory_later"])
def test_a_memory_bomb(tmp_path: Path, mod: str) -> None:
    running = world(tmp_path, mod, limits=small(memory_mb=512))
    with pytest.raises(ServerDied) as caught, running:
        running.run(5)
    assert caught.value.cause == "memory"


def test_a_flood_of_output(tmp_path: Path) -> None:
    with pytest.raises(ServerDied) as caught, world(tmp_path, "output_flood", limits=small(output_mb=4)):
        pass
    assert caught.value.cause == "output"
    assert (tmp_path / "world" / "server.log").stat().st_size <= 5 << 20


def test_a_flood_of_files(tmp_path: Path) -> None:
    with world(tmp_path, "disk_flood", limits=small(file_mb=64)) as running:
        with pytest.raises(ServerDied) as caught:
            running.run(180)
        assert caught.value.cause == "output"


# -- mods that lie


def test_forged_log_lines_decide_nothing(tmp_path: Path) -> None:
    with world(tmp_path, "log_forgery") as running:
        running.run(2)
        assert running.ask("return 7") == 7
        assert running.stop() is None


def forged(running: object) -> list[str]:
    return [event.kind for event in running.events if event.kind == "forged"]  # type: ignore[attr-defined]


@pytest.mark.parametrize("mod", ["forge_hook", "forge_getfenv", "forge_files"])
def test_nobody_else_can_emit_events(tmp_path: Path, mod: str) -> None:
    with world(tmp_path, mod, arena_radius=16) as running:
        running.join("alice")
        if mod == "forge_getfenv":
            running.ask('C.set_node({x = 0, y = 20, z = 0}, {name = "cand:bait"})')
        running.run(1)
        assert forged(running) == []
        assert running.ask("return 7") == 7


def test_calls_of_our_callbacks_are_marked(tmp_path: Path) -> None:
    with world(tmp_path, "forge_calls") as running:
        running.run(2)
        digs = [event for event in running.events if event.kind == "dig"]
        assert len(digs) == 1
        assert str(digs[0].data["via"]).startswith("cand/init.lua:")


def test_a_real_event_is_not_marked(tmp_path: Path) -> None:
    with world(tmp_path, "patch_random", arena_radius=16) as running:
        running.ask(
            'C.set_node({x = 0, y = 9, z = 0}, {name = "default:stone"}) C.node_dig({x = 0, y = 9, z = 0}, '
            '{name = "default:stone"}, nil)'
        )
        digs = [event for event in running.events if event.kind == "dig"]
        assert [event.data.get("via") for event in digs] == [None]


def test_our_step_cannot_be_run_by_others(tmp_path: Path) -> None:
    with world(tmp_path, "forge_steps") as running:
        running.run(3)
        with pytest.raises(ProbeSilent):
            running.ask("return 7")


def test_replacements_cannot_pose_as_the_games_functions(tmp_path: Path) -> None:
    with world(tmp_path, "forge_origin") as running:
        changes = {change.path: change.after for change in registry.diff(vanilla()[0], running.dump())}
        assert changes["core_functions/get_node_drops"] == "fn:text:0"
        assert changes["core_functions/node_punch"].startswith("fn:cand/builtin/game/item.lua:")
        assert changes["core_functions/item_drop"].startswith("fn:")
        tampered = " ".join(running.tamper())
        assert all(name in tampered for name in ("get_node_drops", "node_punch", "item_drop"))


def test_a_patched_api_does_not_reach_us(tmp_path: Path) -> None:
    with world(tmp_path, "patch_api", arena_radius=16) as running:
        running.ask('C.set_node({x = 0, y = 9, z = 0}, {name = "default:stone"})')
        assert running.ask("return C.get_node({x = 0, y = 9, z = 0}).name") == "default:stone"
        assert running.ask('return string.format("%d %s", 7, "x")') == "7 x"
        dump = running.dump()
        assert dump["items"] == vanilla()[0]["items"]
        assert dump["recipes"] == vanilla()[0]["recipes"]
        tampered = [entry.partition(" -> ")[0] for entry in running.tamper()]
        for name in ("core.get_node", "core.parse_json", "string.find", "table.concat", "next", "type"):
            assert name in tampered
        assert "text metatable __index" in tampered


def test_patched_methods_do_not_reach_us(tmp_path: Path) -> None:
    with world(tmp_path, "patch_classes") as running:
        running.join("alice")
        joined = [event.data["name"] for event in running.events if event.kind == "join"]
        assert joined == ["alice"]
        assert running.ask('return I.ObjectRef.get_hp(player("alice"))') == 20
        assert running.ask('local p = player("alice") return p:get_hp()') == 777  # so the attack did work
        tampered = [entry.partition(" -> ")[0] for entry in running.tamper()]
        assert {"ObjectRef:get_hp", "ObjectRef:get_luaentity"} <= set(tampered)


def test_patched_files_do_not_reach_us(tmp_path: Path) -> None:
    with world(tmp_path, "patch_files") as running:
        assert running.ask("return 7") == 7
        assert any(entry.startswith("FILE*:write") for entry in running.tamper())


def test_a_patched_random_shows(tmp_path: Path) -> None:
    with world(tmp_path, "patch_random") as running:
        assert [entry.partition(" -> ")[0] for entry in running.tamper()] == ["math.random"]


def test_removals_show(tmp_path: Path) -> None:
    with world(tmp_path, "remove_registered") as running:
        changes = {change.path: change for change in registry.diff(vanilla()[0], running.dump())}
        assert changes["items/default:stone"].after is None
        assert changes["recipes/default:pick_steel"].after is None
        tampered = running.tamper()
        assert any("registered_on_dignodes" in entry for entry in tampered)
        assert "evaluator's handler in core.registered_on_cheats -> removed" in tampered


def test_removing_our_step_is_silence(tmp_path: Path) -> None:
    with world(tmp_path, "remove_globalsteps") as running:
        running.run(2)
        with pytest.raises(ProbeSilent):
            running.ask("return 7")


def test_a_poisoned_world_starts_again_as_before(tmp_path: Path) -> None:
    with world(tmp_path, "poison_world") as running:
        before = running.dump()
        running.restart()
        assert registry.diff(before, running.dump()) == []
        assert not (tmp_path / "world/world/worldmods/evil").exists()
        assert "sqlite3" in (tmp_path / "world/world/world.mt").read_text()


# -- mods that make reading hard


def test_hostile_tables_can_be_dumped(tmp_path: Path) -> None:
    with world(tmp_path, "hostile_tables") as running:
        dump = running.dump()
        entry = dump["items"]["cand:hostile"]
        assert entry["_cycle"]["self"]["back"] == "<cycle>"
        assert entry["_wide"] == "<table of 1000000 entries>"
        assert "<deep>" in json.dumps(entry["_deep"])
        assert len(json.dumps(entry)) < 2 << 20
        assert entry["_long"].startswith("<text of 5000000 bytes")
        assert entry["_traps"] == {"inner": 1}
        assert entry["_nan"] == "nan" and entry["_inf"] == "inf"
        assert entry["7"] == "a number as key"
        assert "<too much>" in json.dumps(dump["items"]["cand:double"])
        assert len(json.dumps(dump["items"]["cand:double"])) < 2 << 20
        rest = {name: value for name, value in dump["items"].items() if not name.startswith("cand:")}
        assert rest == vanilla()[0]["items"]
        assert running.tamper() == []


def test_odd_bytes_survive(tmp_path: Path) -> None:
    odd = '\0\x01\x1f\x7f\\x80\\xff"\\\n\r\t\\u0041</script>\\xed\\xa0\\x80'
    with world(tmp_path, "odd_bytes") as running:
        running.join("alice")
        dump = running.dump()
        assert dump["items"]["cand:odd"]["description"] == odd
        assert dump["items"]["cand:odd"][odd] == odd
        assert odd in dump["commands"]
        assert dump["settings"]["cand_odd"] == "\\xff\\xfe"
        json.dumps(dump).encode("utf-8")


def test_error_values_are_not_turned_into_text(tmp_path: Path) -> None:
    with world(tmp_path, "hostile_errors") as running:
        with pytest.raises(LuaError, match="<table>"):
            running.ask("C.registered_chatcommands.bomb.func()")
        assert running.ask("return 7") == 7


def test_results_are_bounded(tmp_path: Path) -> None:
    with world(tmp_path) as running:
        answer = running.ask("local t = {} for i = 1, 3e5 do t[i] = i end return {t}")
        assert answer == ["<table of 300000 entries>"]


# -- mods that pry


def test_mod_security_holds(tmp_path: Path) -> None:
    with world(tmp_path, "security"):
        assert (tmp_path / "world/world/allowed.txt").read_text() == ""


def test_links_and_devices_are_not_copied(tmp_path: Path) -> None:
    linked = write_mod(tmp_path / "linked", "")
    (linked / "passwd").symlink_to("/etc/passwd")
    piped = write_mod(tmp_path / "piped", "")
    os.mkfifo(piped / "pipe")
    for mod, what in (
        (linked, "passwd in the mod is a symbolic link"),
        (piped, "pipe in the mod is not a file"),
    ):
        with pytest.raises(WorldFailure, match=what), world(tmp_path, mod, name=mod.name + "_world"):
            pass


def test_the_evaluator_has_no_fixed_name() -> None:
    names = {probe_name(seed) for seed in range(100)}
    assert len(names) == 100
    assert probe_name(7) == probe_name(7)
    assert all(name.isalnum() and name.islower() for name in names)
