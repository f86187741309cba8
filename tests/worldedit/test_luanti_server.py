"""Finding the server, the files of a world, and the server's life as a process."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

import pytest
from luanti_worlds import machine, vanilla, world, write_mod
from orrery_core.errors import InfrastructureError
from orrery_worldedit.games.luanti import diagnose, install, server
from orrery_worldedit.games.luanti.folder import WorldFolder, extend_depends
from orrery_worldedit.games.luanti.modconf import parse_conf

# -- finding the server


@pytest.mark.parametrize(
    ("line", "version", "mode"),
    [
        ("Minetest 5.6.1 (Linux)\nUsing LuaJIT", "5.6.1", "56"),
        ("Minetest 5.8.0 (Linux)", "5.8.0", "56"),
        ("Minetest 5.9.0 (Linux)", "5.9.0", "510"),
        ("Luanti 5.10.0 (Linux)", "5.10.0", "510"),
        ("Luanti 5.17 (Linux)", "5.17", "510"),
    ],
)
def test_version_and_gate_mode(line: str, version: str, mode: str) -> None:
    assert install.parse_version(line) == version
    assert install.gate_mode(version) == mode


@pytest.mark.parametrize("line", ["", "bash: not found", "Minetest five"])
def test_an_unreadable_version_is_an_error(line: str) -> None:
    with pytest.raises(InfrastructureError, match="version"):
        install.parse_version(line)


def test_an_old_version_is_an_error() -> None:
    with pytest.raises(InfrastructureError, match=r"5\.5\.0"):
        install.gate_mode("5.5.0")


def fake(root: Path, generation: install.Generation, version: str, game: bool = True) -> None:
    binary = root / generation.server
    binary.parent.mkdir(parents=True)
    binary.write_text(f"#!/bin/sh\necho '{version}'\n")
    binary.chmod(0o755)
    if game:
        folder = root / generation.games[0] / "minetest_game"
        folder.mkdir(parents=True)
        (folder / "game.conf").write_text("")


def test_nothing_installed_names_the_packages(tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError) as caught:
        install.find_install(tmp_path)
    assert "minetest-server" in caught.value.mend and "luanti-server" in caught.value.mend


def test_the_newer_generation_wins(tmp_path: Path) -> None:
    fake(tmp_path, install.GENERATIONS[1], "Minetest 5.6.1 (Linux)")
    assert install.find_install(tmp_path).version == "5.6.1"
    fake(tmp_path, install.GENERATIONS[0], "Luanti 5.10.0 (Linux)")
    found = install.find_install(tmp_path)
    assert (found.version, found.gate_mode) == ("5.10.0", "510")
    assert found.games_dir == tmp_path / "usr/share/luanti/games"
    assert set(found.versions()) == {"luanti", "minetest_game", "gate_mode"}


def test_a_server_without_its_game_is_an_error(tmp_path: Path) -> None:
    fake(tmp_path, install.GENERATIONS[0], "Luanti 5.10.0 (Linux)", game=False)
    with pytest.raises(InfrastructureError, match="minetest_game"):
        install.find_install(tmp_path)


# -- the files of a world


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, {"name": "cand", "depends": "probe"}),
        ({"mod.conf": "name = cand\n"}, {"name": "cand", "depends": "probe"}),
        (
            {"mod.conf": "name = other\ndepends = default,dye"},
            {"name": "other", "depends": "default, dye, probe"},
        ),
        (
            {"mod.conf": "depends = default\noptional_depends = fire"},
            {"name": "cand", "depends": "default, probe", "optional_depends": "fire"},
        ),
        (
            {"depends.txt": "default\nfire?\n"},
            {"name": "cand", "depends": "default, probe", "optional_depends": "fire"},
        ),
        ({"mod.conf": "depends =", "depends.txt": "default"}, {"name": "cand", "depends": "probe"}),
    ],
)
def test_a_copied_mod_depends_on_the_probe(tmp_path: Path, files: dict[str, str], expected: dict) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert parse_conf(extend_depends(tmp_path, "cand", "probe")) == expected


def test_the_configuration_can_be_extended(tmp_path: Path) -> None:
    place = WorldFolder(tmp_path, seed=7, step_s=0.09)
    place.config.parent.mkdir()
    place.write_config("flat", 1234, 5678, {"time_speed": "0", "default_privs": "interact"})
    written = parse_conf(place.config.read_text())
    assert (written["port"], written["fixed_map_seed"], written["time_speed"]) == ("1234", "7", "0")
    assert written["default_privs"] == "interact"
    assert "nobiomes" in written["mg_flags"]


# -- what a log means


@pytest.mark.parametrize(
    ("code", "verdict", "tail", "cause"),
    [
        (0, None, [], "exit"),
        (134, None, [], "killed"),
        (137, "memory", [], "memory"),
        (137, "wall", [], "time"),
        (137, "output", [], "output"),
        (1, None, ["ERROR[Main]: ModError: Failed to load", "x/init.lua:3: '=' expected near 'y'"], "syntax"),
        (1, None, ["ERROR[Main]: ModError: Failed to load", "x/init.lua:3: attempt to index"], "load"),
        (1, None, ["ModError: Runtime error from mod 'x' in callback on_mods_loaded()"], "mods_loaded"),
        (1, None, ["ServerError: AsyncErr: Lua: Runtime error in callback environment_Step()"], "callback"),
        (1, None, ['ERROR[Main]: mod "x" has unsatisfied dependencies: "y"'], "dependency"),
        (1, None, ["ServerError: AsyncErr: Lua: not enough memory"], "memory"),
    ],
)
def test_causes(code: int, verdict: str | None, tail: list[str], cause: str) -> None:
    assert diagnose.explain(code, verdict, tail)[0] == cause


def test_the_log_tail_is_bounded_and_printable(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert diagnose.log_tail(log) == []
    log.write_bytes(b"start\n" * 20000 + b"ERROR[Main]: ModError: \x1b[31m\xff" + b"x" * 9999 + b"\nafter\n")
    tail = diagnose.log_tail(log)
    assert len(tail) == 2 and tail[1] == "after"
    assert tail[0].isprintable() and len(tail[0]) == diagnose.MAX_WIDTH


# -- the process


@pytest.mark.e2e
def test_a_taken_port_is_tried_again(tmp_path: Path, monkeypatch) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        real, answers = server._free_port, [taken.getsockname()[1]]
        monkeypatch.setattr(
            server,
            "_free_port",
            lambda kind: answers.pop() if answers and kind == socket.SOCK_DGRAM else real(kind),
        )
        with world(tmp_path) as running:
            assert not answers
            assert running.ask("return 7") == 7


def alive(pid: int) -> bool:
    """A process that has ended but that nobody has reaped yet is not alive."""
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] not in "ZX"


@pytest.mark.e2e
def test_nothing_is_left_of_a_world(tmp_path: Path) -> None:
    running = world(tmp_path)
    running.start()
    pid = running._server._process.pid
    assert alive(pid)
    assert running.stop() is None
    deadline = time.monotonic() + 10  # the kernel takes a namespace down after its first process has ended
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not alive(pid)
    assert running.stop() is None


@pytest.mark.e2e
def test_a_killed_server_is_noticed(tmp_path: Path) -> None:
    mod = write_mod(tmp_path / "mod", "")
    with world(tmp_path, mod) as running:
        running._server.kill()
        with pytest.raises(server.ServerDied):
            running.run(1)


@pytest.mark.e2e
def test_the_subject_sees_no_path_of_the_judge(tmp_path: Path) -> None:
    mod = write_mod(tmp_path / "mod", "")
    with world(tmp_path, mod) as running:
        paths = running.ask('return {C.get_worldpath(), C.get_modpath("cand")}')
        assert paths == ["/game/world", "/game/world/worldmods/cand"]
        assert str(tmp_path) not in running._place.log.read_text()
        assert str(machine()[0].version) in vanilla()[0]["version"]["string"]


@pytest.mark.e2e
def test_a_private_umask_does_not_hide_the_world_from_the_server(tmp_path: Path) -> None:
    os.umask(0o077)
    mod = write_mod(tmp_path / "cand", "")
    with world(tmp_path, mod) as running:
        assert running.ask("return 1") == 1
