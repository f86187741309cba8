"""The library's tasks on real servers: the oracle solves them, the scaffold does not, mutants are caught."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
from orrery_core.results import Report, Status, TrialStatus, canonical_json, comparable
from orrery_worldedit.spec import TaskSpec, load_spec
from orrery_worldedit.verify import verify

pytestmark = pytest.mark.e2e

TASKS = {
    path.parent.name: path.parent
    for path in sorted(Path(__file__).parents[2].glob("tasks/luanti/*/spec.toml"))
}
SPECS = {name: load_spec(path / "spec.toml") for name, path in TASKS.items()}
MUTANTS = [(name, mutant.id) for name, spec in SPECS.items() for mutant in spec.mutants]
SAMPLE = set(random.Random("mutants of the day").sample(MUTANTS, 6))
REPEATED = "l3_combo"
"""The task of the everyday determinism check: players, entities, fights, random numbers."""


def judged(spec: TaskSpec, submission: Path, folder: Path) -> Report:
    work = folder / "work"
    work.mkdir(parents=True)
    return verify(spec, submission, folder / "out", work)


def unpassed(report: Report) -> dict[str, str]:
    return {c.id: f"{c.status.value}: {c.reason}" for c in report.criteria if c.status is not Status.PASS}


@pytest.mark.parametrize("name", TASKS)
def test_the_oracle_solves_it(tmp_path: Path, name: str) -> None:
    report = judged(SPECS[name], TASKS[name] / "solution/mod", tmp_path)
    assert report.reward == 1.0, unpassed(report)


@pytest.mark.parametrize("name", TASKS)
def test_the_scaffold_is_scored_and_does_not(tmp_path: Path, name: str) -> None:
    report = judged(SPECS[name], TASKS[name] / "environment/mod", tmp_path)
    assert report.status is TrialStatus.SCORED and report.reward == 0.0
    assert report.rewards["built"] == report.rewards["loaded"] == 1.0
    kept = [c for c in report.criteria if c.stage in ("regression", "integrity", "build", "load")]
    assert {c.status for c in kept} == {Status.PASS}, unpassed(report)


def _mark(case: tuple[str, str]) -> object:
    marks = [] if case in SAMPLE else [pytest.mark.full]
    return pytest.param(*case, id="-".join(case), marks=marks)


@pytest.mark.parametrize(("name", "mutant_id"), [_mark(case) for case in MUTANTS])
def test_a_mutant_is_caught_by_the_criterion_it_names(tmp_path: Path, name: str, mutant_id: str) -> None:
    mutant = next(found for found in SPECS[name].mutants if found.id == mutant_id)
    submission = tmp_path / "mod"
    shutil.copytree(TASKS[name] / "solution/mod", submission)
    shutil.copytree(TASKS[name] / "mutants" / mutant_id, submission, dirs_exist_ok=True)
    report = judged(SPECS[name], submission, tmp_path)
    assert report.status is TrialStatus.SCORED
    caught = next(c for c in report.criteria if c.id == mutant.criterion)
    assert caught.status is Status.FAIL, unpassed(report)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == REPEATED else [pytest.mark.full]) for name in TASKS]
)
def test_three_verifications_are_the_same_to_the_byte(tmp_path: Path, name: str) -> None:
    reports, evidence = set(), set()
    for number in range(3):
        folder = tmp_path / str(number)
        report = judged(SPECS[name], TASKS[name] / "solution/mod", folder)
        reports.add(canonical_json(comparable(report)))
        evidence.add((folder / "out" / "evidence.json").read_bytes())
    assert len(reports) == 1 and len(evidence) == 1
