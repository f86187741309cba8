"""`orrery check`."""

from __future__ import annotations

from pathlib import Path

import click

from orrery.cli import INTERRUPTED
from orrery.commands import _options


@click.command()
@_options.task_paths
@click.option(
    "--repeat", type=click.IntRange(min=1), default=1, show_default=True, help="Runs per agent, compared."
)
@_options.environment
@_options.concurrent
@_options.jobs_dir
def command(paths: tuple[str, ...], repeat: int, environment: str, concurrent: int, jobs_dir: Path) -> int:
    """Prove that tasks are sound.

    The committed files are what spec and templates give, the oracle earns 1.0, doing nothing does not solve
    the task, and repeated runs give the same report, byte by byte, apart from timings.
    """
    from orrery import compile as compiler
    from orrery.checks import judge
    from orrery.paths import shown
    from orrery.progress import Progress
    from orrery.runner import Request, run_job
    from orrery.tasks import find_tasks

    tasks = find_tasks(paths)
    drift = {task: compiler.drift(task.path) for task in tasks}
    request = Request(
        tasks=tasks,
        jobs_dir=jobs_dir,
        agents=("oracle", "nop"),
        environment=environment,
        concurrent=concurrent,
        attempts=repeat,
    )
    with Progress() as progress:
        result = run_job(request, progress)
    if result.interrupted:
        return INTERRUPTED
    findings = []
    for task in tasks:
        of_task = [outcome for outcome in result.outcomes if outcome.task_path == task.path]
        missed = judge(task, drift[task], of_task, repeat)
        findings += missed
        click.echo(f"{task.family}/{task.name}: {'sound' if not missed else 'NOT SOUND'}")
        for finding in missed:
            click.echo(f"  {finding.bar}: {finding.why}")
    click.echo(f"job: {shown(result.job_dir)}")
    if result.missing or any(not outcome.counts for outcome in result.outcomes):
        return 3
    return 1 if findings else 0
