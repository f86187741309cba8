"""Mutants: plausible wrong solutions, each of which one named criterion must catch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from orrery_core.errors import UserError
from orrery_core.results import Status

from orrery.jobs import TrialOutcome
from orrery.specs import read_spec
from orrery.tasks import TaskDir
from orrery.variants import with_mutant


@dataclass(frozen=True)
class MutantRun:
    """A mutant as a task directory of its own, whose reference solution is the wrong one."""

    task: TaskDir
    mutant: str
    criterion: str
    variant: TaskDir


@dataclass(frozen=True)
class Verdict:
    """Whether a mutant was caught where it must be; `why` says what happened when it was not."""

    task: str
    mutant: str
    criterion: str
    killed: bool
    why: str = ""


def plan(tasks: Sequence[TaskDir], jobs_dir: Path) -> list[MutantRun]:
    """Every mutant of the tasks, ready to run.

    Raises:
        UserError: a task declares none, or folders and declarations differ.
    """
    runs = []
    for task in tasks:
        declared = {mutant.id: mutant.criterion for mutant in getattr(read_spec(task), "mutants", ())}
        folder = task.path / "mutants"
        present = {path.name for path in folder.iterdir() if path.is_dir()} if folder.is_dir() else set()
        stray = sorted(present - set(declared))
        if not declared or stray:
            what = f"mutants/{stray[0]} is not declared" if stray else "declares no mutants"
            raise UserError(f"{task.path}: {what}", mend="name every mutant and its criterion in spec.toml")
        runs += [
            MutantRun(task, mutant, criterion, with_mutant(task, mutant, jobs_dir))
            for mutant, criterion in declared.items()
        ]
    return runs


def judge(run: MutantRun, outcome: TrialOutcome | None) -> Verdict:
    """Killed when the named criterion fails (or is not reached) and the trial earns nothing."""
    killed, why = _caught(run.criterion, outcome)
    return Verdict(run.task.name, run.mutant, run.criterion, killed, why)


def _caught(criterion: str, outcome: TrialOutcome | None) -> tuple[bool, str]:
    if outcome is None:
        return False, "the trial has no result"
    if not outcome.counts or outcome.report is None:
        return False, f"the trial has no score: {outcome.reason}"
    found = {item.id: item for item in outcome.report.criteria}
    if criterion not in found:
        return False, f"the report has no criterion {criterion}"
    failed = ", ".join(name for name, item in found.items() if item.status is not Status.PASS) or "none"
    if found[criterion].status not in (Status.FAIL, Status.UNREACHED):
        return False, f"{criterion} is {found[criterion].status}; not passed: {failed}"
    if outcome.reward != 0:
        return False, f"reward is {outcome.reward}"
    return True, ""
