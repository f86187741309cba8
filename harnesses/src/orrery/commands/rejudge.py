"""`orrery rejudge`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from orrery_core.errors import UserError

from orrery.commands import _options

if TYPE_CHECKING:
    from orrery_core.results import Report

    from orrery.jobs import TrialOutcome

REJUDGED = "rejudged.json"


@click.command()
@click.argument(
    "jobs", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, file_okay=False)
)
@_options.as_json
def command(jobs: tuple[Path, ...], as_json: bool) -> None:
    """Judge the stored evidence of JOBS again with the specs as they are now; nothing is run.

    The stored reports stay as they are; each new one is written beside its trial as rejudged.json.
    """
    from orrery.jobs import read_outcomes

    trials = []
    for job_dir in jobs:
        for outcome in read_outcomes(job_dir):
            report = _rejudge(job_dir / outcome.trial, outcome)
            trials.append(_changes(outcome, report))
    if not trials:
        raise UserError(
            f"{', '.join(map(str, jobs))}: no finished trial", mend="give a job folder of `orrery run`"
        )
    if as_json:
        click.echo(json.dumps({"trials": trials}, indent=2))
        return
    for trial in trials:
        click.echo(f"{trial['trial']}: reward {trial['before']} -> {trial['after']}")
        for line in trial["changed"]:
            click.echo(f"  {line}")


def _rejudge(trial_dir: Path, outcome: TrialOutcome) -> Report | None:
    """The new report, or None where the trial has no evidence."""
    from orrery_core.reports import EVIDENCE
    from orrery_core.results import canonical_json

    from orrery.families import SPEC, family_of
    from orrery.specs import read_spec
    from orrery.tasks import TaskDir, all_tasks

    verifier = trial_dir / "verifier"
    if not (verifier / EVIDENCE).exists():
        return None
    known = {(task.family, task.name): task for task in all_tasks()}
    task = known.get((outcome.family, outcome.task), TaskDir(outcome.task_path))
    report = family_of(task.path / SPEC).rejudge(read_spec(task), verifier)
    (trial_dir / REJUDGED).write_text(canonical_json(report), encoding="utf-8")
    return report


def _changes(outcome: TrialOutcome, report: Report | None) -> dict[str, Any]:
    if report is None:
        return {
            "trial": outcome.trial,
            "before": outcome.reward,
            "after": None,
            "changed": ["no evidence was stored"],
        }
    before = {item.id: item.status for item in outcome.report.criteria} if outcome.report else {}
    after = {item.id: item.status for item in report.criteria}
    changed = [
        f"{name}: {before.get(name, 'absent')} -> {after.get(name, 'absent')}"
        for name in dict.fromkeys([*before, *after])
        if before.get(name) != after.get(name)
    ]
    return {"trial": outcome.trial, "before": outcome.reward, "after": report.reward, "changed": changed}
