"""The step gate: how its library comes to be, and that it holds game time."""

from __future__ import annotations

import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from luanti_worlds import machine, world
from orrery_core.errors import InfrastructureError
from orrery_worldedit.games.luanti import gate
from orrery_worldedit.games.luanti.gate import Gate, build
from orrery_worldedit.games.luanti.selftest import gate_self_test

needs_compiler = pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")


@pytest.fixture
def forget_library():
    gate.library.cache_clear()
    yield
    gate.library.cache_clear()


@needs_compiler
def test_the_source_has_no_warnings(tmp_path: Path) -> None:
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared"]
    subprocess.run(["cc", *flags, str(gate.SOURCE), "-o", str(tmp_path / "gate.so")], check=True)


@needs_compiler
def test_builds_at_the_same_time_do_not_disturb_each_other(tmp_path: Path) -> None:
    code = (
        "import pathlib, sys; from orrery_worldedit.games.luanti.gate import build; "
        "print(build(pathlib.Path(sys.argv[1])))"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    built = {process.communicate()[0].strip() for process in running}
    assert [process.returncode for process in running] == [0] * 4
    assert len(built) == 1
    assert [path.name for path in tmp_path.iterdir()] == [Path(built.pop()).name]


def test_no_compiler_is_an_error_with_a_mend(tmp_path: Path, monkeypatch, forget_library) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("ORRERY_GATE_LIBRARY", raising=False)
    monkeypatch.setattr(gate, "PREBUILT", tmp_path / "nothing")
    with pytest.raises(InfrastructureError) as caught:
        gate.library()
    assert "gcc" in caught.value.mend


@needs_compiler
def test_a_broken_source_is_an_error_and_leaves_nothing(tmp_path: Path, monkeypatch) -> None:
    source = tmp_path / "gate.c"
    source.write_text("int main(void) { return }")
    monkeypatch.setattr(gate, "SOURCE", source)
    with pytest.raises(InfrastructureError, match="cannot build"):
        build(tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def test_a_given_library_is_taken(tmp_path: Path, monkeypatch, forget_library) -> None:
    monkeypatch.setenv("ORRERY_GATE_LIBRARY", str(tmp_path / "missing.so"))
    with pytest.raises(InfrastructureError, match=r"missing\.so"):
        gate.library()
    (tmp_path / "missing.so").write_bytes(b"")
    assert gate.library() == tmp_path / "missing.so"


def test_a_prebuilt_library_needs_no_compiler(tmp_path: Path, monkeypatch, forget_library) -> None:
    monkeypatch.delenv("ORRERY_GATE_LIBRARY", raising=False)
    monkeypatch.setattr(gate, "PREBUILT", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / gate._library_name()).write_bytes(b"")
    assert gate.library().parent == tmp_path


def test_a_library_of_another_layout_is_refused(tmp_path: Path) -> None:
    page = Gate(tmp_path / "page", 0.09, "56")
    assert not page.attached
    with (tmp_path / "page").open("r+b") as file:
        file.seek(8 * 7)
        file.write(struct.pack("<Q", 99))
    with pytest.raises(InfrastructureError, match="layout 99"):
        _ = page.attached


def test_what_the_server_is_told(tmp_path: Path) -> None:
    environment = Gate(tmp_path / "page", 0.09, "510").environment("/page", "/gate.so")
    assert environment["LD_PRELOAD"] == "/gate.so"
    assert environment["GATE_MODE"] == "510"


@pytest.mark.e2e
def test_a_paused_server_stands_still_and_steps_are_exact(tmp_path: Path) -> None:
    measured = gate_self_test(*machine(), tmp_path / "world")
    assert measured["steps"] > 100
    assert measured["shortest_s"] == measured["longest_s"] == pytest.approx(0.09, abs=1e-6)


@pytest.mark.e2e
def test_the_clock_of_mods_is_the_gates(tmp_path: Path) -> None:
    with world(tmp_path) as running:
        before = running.ask("return {C.get_us_time(), C.get_gametime()}")
        running.run(90)
        after = running.ask("return {C.get_us_time(), C.get_gametime()}")
        assert (after[0] - before[0]) / 1e6 == pytest.approx(90.09)
        assert after[1] - before[1] == pytest.approx(90, abs=1)


@pytest.mark.e2e
def test_released_the_server_runs_by_itself(tmp_path: Path) -> None:
    with world(tmp_path) as running:
        server = running._server
        seen = server.place.channel / "evt"
        size = seen.stat().st_size
        server.channel.send("eval", "return 1")
        server.gate.freerun()
        server.gate.wait(lambda: seen.stat().st_size > size, server.watch("running freely took"))
