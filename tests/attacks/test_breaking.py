"""Mods that do not load, crash, hang, or take all they can get: a failed gate with its reason, in time."""

from __future__ import annotations

from pathlib import Path

import pytest
from orrery_core.results import Report, Status, TrialStatus
from orrery_worldedit.games.luanti import adapter
from submissions import HONEST, attacked, code, group, hurry, judged, reason, status, task, write_mod

pytestmark = pytest.mark.e2e


def test_the_honest_solution_is_worth_everything(tmp_path: Path) -> None:
    report = judged(tmp_path, write_mod(tmp_path / "mod", HONEST), task(restart=True))
    assert report.reward == 1.0, [c for c in report.criteria if c.status is not Status.PASS]


def test_doing_nothing_is_scored_and_worth_nothing(tmp_path: Path) -> None:
    report = attacked(tmp_path, "")
    assert report.status is TrialStatus.SCORED
    assert [c.id for c in report.criteria if c.status is not Status.PASS] == ["stack_of_five"]


# -- what does not compile


@pytest.mark.parametrize(
    ("lua", "words"),
    [
        ("local = 1\n", "init.lua:1"),
        ("x = (" * 300, "init.lua:1"),
        ("return '" + "a" * 100, "init.lua:1"),
        ("goto nowhere\n", "nowhere"),
        ("x = 1 \0 2", "init.lua:1"),
    ],
)
def test_a_syntax_error(tmp_path: Path, lua: str, words: str) -> None:
    report = attacked(tmp_path, lua)
    assert report.status is TrialStatus.SCORED
    assert status(report, "built") is Status.FAIL and words in reason(report, "built")
    assert {c.status for c in report.criteria[1:]} == {Status.UNREACHED}


def test_a_syntax_error_in_a_file_that_is_never_loaded(tmp_path: Path) -> None:
    report = attacked(tmp_path, HONEST, files={"lib/other.lua": "if then"})
    assert status(report, "built") is Status.FAIL and "lib/other.lua:1" in reason(report, "built")


def test_a_file_that_cannot_be_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # It takes more than a server may have, before anything of the mod has run; the machine is not at fault.
    monkeypatch.setattr(adapter, "MEMORY_MB", 150)
    report = attacked(tmp_path, HONEST + "x = 1 y = 2\n" * 1_200_000)
    assert status(report, "built") is Status.FAIL
    assert reason(report, "built") == "init.lua: cannot be compiled: the server used more memory than allowed"


# -- what does not load

_LOADING = {
    "error": "no",
    "error_soon": "soon",
    "error_when_all_are_in": "late",
    "nil_index": "init.lua:2",
    "no_return": "init.lua",
    "os_exit": "init.lua:2",
    "os_exit_closing": "init.lua:2",
    "shutdown": "ended without being asked",
    "shutdown_when_all_are_in": "ended without being asked",
    "stack_overflow": "error while loading",
    "steps_taken_out": "no longer answers",
    "wrong_prefix": "other:thing",
}


@pytest.mark.parametrize("name", group("does_not_load"))
def test_a_mod_that_does_not_load(tmp_path: Path, name: str) -> None:
    report = attacked(tmp_path, HONEST + code("does_not_load", name))
    assert report.status is TrialStatus.SCORED
    assert status(report, "built") is Status.PASS
    assert status(report, "loaded") is Status.FAIL and _LOADING[name] in reason(report, "loaded")
    assert {c.status for c in report.criteria[2:]} == {Status.UNREACHED}


def test_a_missing_dependency(tmp_path: Path) -> None:
    report = attacked(tmp_path, HONEST, conf="name = cand\ndepends = default, nothing_of_that_name\n")
    assert status(report, "loaded") is Status.FAIL
    assert "depends on" in reason(report, "loaded")


def test_no_init_file(tmp_path: Path) -> None:
    mod = write_mod(tmp_path / "mod", HONEST)
    (mod / "init.lua").unlink()
    report = judged(tmp_path, mod)
    assert report.reward == 0.0 and status(report, "loaded") is Status.FAIL


_HANGING = {
    "endless_loop": "time limit",
    "memory": "memory",
    "output": "printed more",
    "pattern": "time limit",
}


@pytest.mark.parametrize("name", group("hangs_loading"))
def test_hanging_while_loading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    hurry(monkeypatch, load_s=12.0)
    report = attacked(tmp_path, code("hangs_loading", name))
    assert status(report, "loaded") is Status.FAIL and _HANGING[name] in reason(report, "loaded")


# -- what breaks once it runs

_BREAKING = {
    "error_on_eating": "spoiled",
    "error_on_join": "hello",
    "error_on_second_player": "two",
    "loop_on_eating": "time limit",
    "loop_on_join": "time limit",
    "memory_on_join": "memory",
    "shutdown_after_join": "without being asked",
    "shutdown_on_join": "without being asked",
}


@pytest.mark.parametrize("name", group("breaks_later"))
def test_breaking_during_a_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    hurry(monkeypatch)
    report = attacked(tmp_path, HONEST + code("breaks_later", name))
    assert report.status is TrialStatus.SCORED
    assert status(report, "loaded") is Status.PASS
    assert status(report, "survives") is Status.FAIL and _BREAKING[name] in reason(report, "survives")


def _gate_failed(report: Report) -> bool:
    return Status.FAIL in (status(report, "loaded"), status(report, "survives"))


@pytest.mark.parametrize("step", [102, 104, 106])
def test_ending_before_the_first_check(tmp_path: Path, step: int) -> None:
    lua = f"""
    local n = 0
    core.register_globalstep(function()
        n = n + 1
        if n == {step} then core.request_shutdown("", false, 0) end
    end)
    """
    report = attacked(tmp_path, HONEST + lua)
    assert report.status is TrialStatus.SCORED and _gate_failed(report)


def test_every_step_too_slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Never long enough for the limit on one step, but the arm's time runs out.
    hurry(monkeypatch, arm_s=25.0)
    report = attacked(tmp_path, HONEST + code("single", "slow_steps"))
    assert report.status is TrialStatus.SCORED and _gate_failed(report)
    assert "time limit" in reason(report, "loaded") + reason(report, "survives")


# -- what takes all it can get


@pytest.mark.parametrize("name", group("floods_the_disk"))
def test_a_flood_of_files_or_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    hurry(monkeypatch)
    monkeypatch.setattr(adapter, "DISK_MB", 48)
    report = attacked(tmp_path, code("floods_the_disk", name))
    assert report.status is TrialStatus.SCORED and _gate_failed(report)
    words = reason(report, "loaded") + reason(report, "survives")
    assert ("printed more" if name == "output" else "wrote more to disk") in words


def test_busy_threads_do_not_cost_the_vanilla_control_its_life(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hurry(monkeypatch)
    report = judged(tmp_path, write_mod(tmp_path / "mod", HONEST + code("single", "busy_threads")))
    assert report.status is TrialStatus.SCORED
