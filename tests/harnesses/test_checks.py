"""`orrery check` and `orrery mutants`: what they demand, and that they run whole trials."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from helpers import make_task
from orrery.checks import judge as check
from orrery.jobs import TrialOutcome
from orrery.mutants import MutantRun
from orrery.mutants import judge as verdict
from orrery.tasks import TaskDir
from orrery.variants import with_mutant
from orrery_core.errors import UserError
from orrery_core.results import Criterion, Report, Status, TrialStatus

TASK = TaskDir(Path("/tasks/fake/l1_one"))


def outcome(
    agent: str, reward: float | None, *, criteria: tuple[Criterion, ...] = (), drawn: int = 0
) -> TrialOutcome:
    error = reward is None
    report = Report(
        task="l1_one",
        family="fake",
        status=TrialStatus.ERROR if error else TrialStatus.SCORED,
        reason="broke" if error else "",
        reward=reward,
        criteria=() if error else criteria,
        seeds={"drawn": drawn},
        timings={"total": float(drawn)},
    )
    return TrialOutcome(
        trial="l1_one__x",
        task="l1_one",
        task_path=TASK.path,
        family="fake",
        level=1,
        agent=agent,
        status=report.status,
        reason=report.reason,
        seconds=1.0,
        reward=reward,
        report=report,
    )


def bars(drift: list[str], outcomes: list[TrialOutcome], repeat: int = 1) -> list[str]:
    return [finding.bar for finding in check(TASK, drift, outcomes, repeat)]


def test_a_sound_task() -> None:
    assert bars([], [outcome("oracle", 1.0), outcome("nop", 0.0)]) == []


@pytest.mark.parametrize(
    ("drift", "trials", "expected"),
    [
        (["task.toml: differs"], [("oracle", 1.0), ("nop", 0.0)], ["render"]),
        ([], [("oracle", 0.9), ("nop", 0.0)], ["oracle"]),
        ([], [("oracle", 1.0), ("nop", 1.0)], ["nop"]),
        ([], [("oracle", None), ("nop", 0.0)], ["oracle"]),
        ([], [("oracle", 1.0)], ["nop"]),
    ],
)
def test_each_bar_can_be_missed(drift: list[str], trials: list[Any], expected: list[str]) -> None:
    assert bars(drift, [outcome(agent, reward) for agent, reward in trials]) == expected


def test_reports_must_be_equal_apart_from_timings() -> None:
    nops = [outcome("nop", 0.0), outcome("nop", 0.0)]
    assert bars([], [outcome("oracle", 1.0, drawn=1), outcome("oracle", 1.0, drawn=2), *nops], 2) == [
        "determinism"
    ]
    same = [outcome("oracle", 1.0), outcome("oracle", 1.0)]
    assert same[0].report and same[1].report
    assert bars([], [*same, *nops], 2) == []


RUN = MutantRun(TASK, "wrong", "answer", TASK)


def criterion(name: str, status: Status) -> Criterion:
    return Criterion(id=name, stage="behaviour", status=status)


@pytest.mark.parametrize(
    ("result", "killed", "why"),
    [
        (outcome("oracle", 0.0, criteria=(criterion("answer", Status.FAIL),)), True, ""),
        (outcome("oracle", 0.0, criteria=(criterion("answer", Status.UNREACHED),)), True, ""),
        (
            outcome(
                "oracle", 0.0, criteria=(criterion("answer", Status.PASS), criterion("other", Status.FAIL))
            ),
            False,
            "answer is pass; not passed: other",
        ),
        (outcome("oracle", 1.0, criteria=(criterion("answer", Status.FAIL),)), False, "reward is 1.0"),
        (outcome("oracle", 0.0, criteria=(criterion("other", Status.FAIL),)), False, "no criterion answer"),
        (outcome("oracle", None), False, "no score: broke"),
        (None, False, "no result"),
    ],
)
def test_a_mutant_is_killed_only_by_the_criterion_it_names(
    result: TrialOutcome | None, killed: bool, why: str
) -> None:
    found = verdict(RUN, result)
    assert found.killed is killed
    assert why in found.why


def test_a_mutant_is_the_solution_with_its_files_laid_over(tmp_path: Path) -> None:
    task = TaskDir(make_task(tmp_path / "tasks/fake", "l1_one"))
    (task.path / "solution/mod/kept.txt").write_text("kept")
    variant = with_mutant(task, "wrong", tmp_path / "jobs")
    assert (variant.name, variant.family) == ("l1_one--wrong", "fake")
    assert (variant.path / "solution/mod/answer.txt").read_text() == "no"
    assert (variant.path / "solution/mod/kept.txt").read_text() == "kept"
    assert (task.path / "solution/mod/answer.txt").read_text() == "yes"
    assert with_mutant(task, "wrong", tmp_path / "jobs") == variant
    (task.path / "mutants/wrong/answer.txt").write_text("maybe")
    assert with_mutant(task, "wrong", tmp_path / "jobs") != variant


def test_a_mutant_without_its_folder_is_said(tmp_path: Path) -> None:
    task = TaskDir(make_task(tmp_path / "tasks/fake", "l1_one"))
    with pytest.raises(UserError, match="no such folder"):
        with_mutant(task, "absent", tmp_path / "jobs")
