"""Mods that try to look right instead of being right: nothing passes that should not, integrity fails."""

from __future__ import annotations

from pathlib import Path

import pytest
from orrery_core.results import Status, TrialStatus
from submissions import HONEST, attacked, code, group, judged, reason, status, task, write_mod

pytestmark = pytest.mark.e2e


# -- forged answers


@pytest.mark.parametrize("name", group("forges", sample=4))
def test_forged_answers_pass_nothing(tmp_path: Path, name: str) -> None:
    report = attacked(tmp_path, code("forges", name))
    assert status(report, "stack_of_five") is not Status.PASS


@pytest.mark.parametrize("name", group("tampers", sample=4))
def test_an_honest_result_does_not_excuse_tampering(tmp_path: Path, name: str) -> None:
    report = attacked(tmp_path, HONEST + code("tampers", name))
    assert status(report, "untampered") is Status.FAIL
    assert "replaced: " in reason(report, "untampered")


def test_tampering_in_one_of_several_runs_shows(tmp_path: Path) -> None:
    # Replaced until the restart, and itself again in the run that is looked at last.
    lua = code("single", "tampers_until_the_restart")
    report = attacked(tmp_path, HONEST + lua, task(restart=True))
    assert status(report, "after_restart") is Status.PASS
    assert status(report, "untampered") is Status.FAIL


def test_forged_events_and_channel(tmp_path: Path) -> None:
    # Calls of the probe's own callbacks, and every file that might be the channel.
    report = attacked(tmp_path, code("single", "forges_events_and_files"))
    assert status(report, "loaded") is Status.PASS, reason(report, "loaded")
    assert status(report, "stack_of_five") is Status.FAIL


def test_log_lines_are_no_evidence(tmp_path: Path) -> None:
    report = judged(tmp_path, write_mod(tmp_path / "mod", HONEST + code("single", "forges_log_lines")))
    assert report.reward == 1.0, [c for c in report.criteria if c.status is not Status.PASS]


def test_looking_for_the_evaluator_finds_no_checks(tmp_path: Path) -> None:
    # All that a mod can read is searched for words of the hidden spec; a find would switch on the solution.
    report = attacked(tmp_path, code("single", "looks_for_checks"))
    assert report.status is TrialStatus.SCORED
    assert status(report, "loaded") is Status.PASS, reason(report, "loaded")
    assert status(report, "stack_of_five") is Status.FAIL


# -- changes of what was to stay

_KEPT = ("loaded", "survives", "registry_preserved", "untampered", "eating_heals", "digging_stone")


@pytest.mark.parametrize("name", group("changes_the_rest", sample=4))
def test_changing_the_rest_of_the_game(tmp_path: Path, name: str) -> None:
    report = attacked(tmp_path, HONEST + code("changes_the_rest", name))
    assert report.status is TrialStatus.SCORED
    assert [kept for kept in _KEPT if status(report, kept) is not Status.PASS], "nobody noticed"


def test_a_changed_item_is_named(tmp_path: Path) -> None:
    report = attacked(tmp_path, HONEST + code("changes_the_rest", "only_while_playing"))
    assert status(report, "registry_preserved") is Status.FAIL
    assert "items/default:dirt/groups" in reason(report, "registry_preserved")


# -- a world that is not what it was


def test_a_poisoned_world_starts_again_as_ours(tmp_path: Path) -> None:
    mod = write_mod(tmp_path / "mod", HONEST + code("single", "poisons_the_world"))
    report = judged(tmp_path, mod, task(restart=True))
    assert report.status is TrialStatus.SCORED
    assert status(report, "stack_of_five") is Status.PASS
    assert status(report, "untampered") is Status.PASS


@pytest.mark.parametrize(
    "name", ["map.sqlite", "players.sqlite", "auth.sqlite", "map_meta.txt", "env_meta.txt"]
)
def test_a_broken_world_never_stops_the_judge(tmp_path: Path, name: str) -> None:
    lua = f"""
    core.register_on_item_eat(function()
        local file = io.open(core.get_worldpath() .. "/{name}", "w")
        if file then file:write("garbage ", string.rep("x", 1000)) file:close() end
    end)
    """
    report = judged(tmp_path, write_mod(tmp_path / "mod", HONEST + lua), task(restart=True))
    assert report.status is TrialStatus.SCORED


# -- players


@pytest.mark.parametrize("name", group("in_the_players_way", sample=4))
def test_getting_in_the_players_way(tmp_path: Path, name: str) -> None:
    report = attacked(tmp_path, HONEST + code("in_the_players_way", name))
    assert report.status is TrialStatus.SCORED


def test_a_mod_that_swallows_chat_does_not_lame_other_checks(tmp_path: Path) -> None:
    report = judged(tmp_path, write_mod(tmp_path / "mod", HONEST + code("single", "swallows_chat")))
    assert report.status is TrialStatus.SCORED
    assert status(report, "stack_of_five") is Status.PASS
