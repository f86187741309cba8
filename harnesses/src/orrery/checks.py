"""What a sound task shows: no drift of rendered files, a full oracle, a nop without success, determinism."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orrery_core.results import canonical_json, comparable

from orrery.jobs import TrialOutcome
from orrery.tasks import TaskDir


@dataclass(frozen=True)
class Finding:
    """One bar that a task missed."""

    task: str
    bar: str
    why: str


def judge(
    task: TaskDir, drift: Sequence[str], outcomes: Sequence[TrialOutcome], repeat: int
) -> list[Finding]:
    """Everything wrong with a task, given its drifted files and the outcomes of its oracle and nop trials."""
    findings = [Finding(task.name, "render", line) for line in drift]
    for agent in ("oracle", "nop"):
        trials = [outcome for outcome in outcomes if outcome.agent == agent]
        findings += [
            Finding(task.name, agent, problem) for outcome in trials if (problem := _missed(agent, outcome))
        ]
        if len(trials) != repeat:
            findings.append(Finding(task.name, agent, f"{len(trials)} of {repeat} trials have a result"))
        different = distinct_reports(trials)
        if different > 1:
            findings.append(
                Finding(
                    task.name, "determinism", f"{agent}: {different} different reports in {len(trials)} runs"
                )
            )
    return findings


def _missed(agent: str, outcome: TrialOutcome) -> str:
    if not outcome.counts:
        return f"no score: {outcome.reason}"
    if agent == "oracle" and outcome.reward != 1.0:
        failed = (
            [item.id for item in outcome.report.criteria if item.status != "pass"] if outcome.report else []
        )
        return f"reward {outcome.reward}, not passed: {', '.join(failed)}"
    if agent == "nop" and outcome.solved:
        return "solved by doing nothing"
    return ""


def distinct_reports(outcomes: Sequence[TrialOutcome]) -> int:
    """How many different reports there are, byte by byte, timings apart."""
    return len({canonical_json(comparable(outcome.report)) for outcome in outcomes if outcome.report})
