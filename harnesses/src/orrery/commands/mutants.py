"""`orrery mutants`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from orrery.cli import INTERRUPTED
from orrery.commands import _options

if TYPE_CHECKING:
    from orrery.mutants import Verdict


@click.command()
@_options.task_paths
@_options.environment
@_options.concurrent
@_options.jobs_dir
@_options.as_json
def command(paths: tuple[str, ...], environment: str, concurrent: int, jobs_dir: Path, as_json: bool) -> int:
    """Run every mutant as if it were the solution; each must be caught by the criterion it names."""
    from orrery.mutants import judge, plan
    from orrery.paths import shown
    from orrery.progress import Progress
    from orrery.runner import Request, run_job
    from orrery.tasks import find_tasks, require_valid

    tasks = find_tasks(paths)
    require_valid(tasks)
    runs = plan(tasks, jobs_dir)
    request = Request(
        tasks=[run.variant for run in runs],
        jobs_dir=jobs_dir,
        environment=environment,
        concurrent=concurrent,
    )
    with Progress() as progress:
        result = run_job(request, progress)
    outcomes = {outcome.task_path: outcome for outcome in result.outcomes}
    verdicts = [judge(run, outcomes.get(run.variant.path)) for run in runs]
    if as_json:
        click.echo(json.dumps({"mutants": [_entry(verdict) for verdict in verdicts]}, indent=2))
    else:
        _print(verdicts)
        click.echo(f"job: {shown(result.job_dir)}")
    if result.interrupted:
        return INTERRUPTED
    if result.missing or any(not outcome.counts for outcome in result.outcomes):
        return 3
    return 0 if all(verdict.killed for verdict in verdicts) else 1


def _entry(verdict: Verdict) -> dict[str, object]:
    return {
        "task": verdict.task,
        "mutant": verdict.mutant,
        "criterion": verdict.criterion,
        "killed": verdict.killed,
    }


def _print(verdicts: list[Verdict]) -> None:
    from rich import box
    from rich.table import Table

    from orrery.tables import console

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in ("task", "mutant", "must fail", "verdict"):
        table.add_column(title)
    for verdict in verdicts:
        word = "killed" if verdict.killed else f"SURVIVED: {verdict.why}"
        table.add_row(verdict.task, verdict.mutant, verdict.criterion, word)
    output = console()
    output.print(table)
    output.print(f"{sum(verdict.killed for verdict in verdicts)} of {len(verdicts)} mutants killed")
