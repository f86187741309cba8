"""`orrery run`."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from orrery.cli import INTERRUPTED
from orrery.commands import _options

if TYPE_CHECKING:
    from orrery.runner import JobResult


@click.command()
@_options.task_paths
@click.option(
    "--agent", "-a", default="oracle", show_default=True, help="oracle, nop, a Harbor agent, or module:Class."
)
@click.option("--model", "-m", help="The agent's model, as Harbor takes it (provider/name).")
@_options.environment
@_options.concurrent
@click.option(
    "-k", "attempts", type=click.IntRange(min=1), default=1, show_default=True, help="Attempts per task."
)
@click.option("--job-name", help="Name of the job; the name of an interrupted job resumes it.")
@_options.jobs_dir
@click.option(
    "--retry-errors", is_flag=True, help="Run the trials of --job-name again that ended without a score."
)
@click.option("--no-skills", is_flag=True, help="Leave the modding skills out of the agent's container.")
@_options.as_json
def command(
    paths: tuple[str, ...],
    agent: str,
    model: str | None,
    environment: str,
    concurrent: int,
    attempts: int,
    job_name: str | None,
    jobs_dir: Path,
    retry_errors: bool,
    no_skills: bool,
    as_json: bool,
) -> int:
    """Run an agent on tasks and print what came out.

    PATHS are task directories, folders of tasks, or quoted globs (** works), from here or from the checkout.
    Ctrl-C keeps what is finished; the same command with --job-name goes on.
    """
    if retry_errors and not job_name:
        raise click.UsageError("--retry-errors needs the --job-name of the job to go on with")
    from orrery.progress import Progress
    from orrery.runner import Request, run_job
    from orrery.tasks import find_tasks

    request = Request(
        tasks=find_tasks(paths),
        jobs_dir=jobs_dir,
        agents=(agent,),
        model=model,
        environment=environment,
        concurrent=concurrent,
        attempts=attempts,
        job_name=job_name,
        skills=not no_skills,
        retry_errors=retry_errors,
    )
    with Progress() as progress:
        result = run_job(request, progress)
    if as_json:
        click.echo(json.dumps(as_dict(result), indent=2))
    else:
        _print(result)
    if result.interrupted or result.missing:
        click.echo(
            f"to go on: {_resume(paths, request_options(click.get_current_context()), result.job_dir.name)}",
            err=True,
        )
    return exit_code(result, oracle=agent == "oracle")


def exit_code(result: JobResult, *, oracle: bool) -> int:
    """130 interrupted; 3 a trial without a score; 1 the oracle left a task unsolved; else 0."""
    if result.interrupted:
        return INTERRUPTED
    if result.missing or any(not outcome.counts for outcome in result.outcomes):
        return 3
    if oracle and not all(outcome.solved for outcome in result.outcomes):
        return 1
    return 0


def as_dict(result: JobResult) -> dict[str, object]:
    """The stable shape of `--json`."""
    return {
        "trials": [
            {
                "task": outcome.task,
                "status": str(outcome.status),
                "reward": outcome.reward,
                "rewards": outcome.rewards,
                "seconds": round(outcome.seconds, 3),
            }
            for outcome in result.outcomes
        ],
        "mode": result.mode,
    }


def request_options(context: click.Context) -> list[str]:
    """The options that differ from their defaults, ready to be typed again; without --job-name."""
    words: list[str] = []
    for option in context.command.params:
        if not isinstance(option, click.Option) or option.name in ("job_name", "retry_errors"):
            continue
        value = context.params[option.name or ""]
        if (
            value == option.get_default(context)
            or value is None
            or str(value) == str(option.get_default(context))
        ):
            continue
        longest = max(option.opts, key=len)
        words += [longest] if option.is_flag else [longest, str(value)]
    return words


def _resume(paths: tuple[str, ...], options: list[str], job_name: str) -> str:
    return shlex.join(["orrery", "run", *paths, *options, "--job-name", job_name])


def _print(result: JobResult) -> None:
    from orrery.paths import shown
    from orrery.tables import console, summary

    output = console()
    for table in summary(result.outcomes):
        output.print(table)
    for outcome in result.outcomes:
        if not outcome.counts:
            output.print(f"error: {outcome.task}: {outcome.reason}", markup=False, soft_wrap=True)
    output.print(
        "mode: " + ", ".join(f"{key}={value}" for key, value in result.mode.items()),
        markup=False,
        soft_wrap=True,
    )
    output.print(f"job: {shown(result.job_dir)}", markup=False, soft_wrap=True)
    if result.outcomes and not result.interrupted:
        from orrery.report import build

        page = build([result.job_dir], result.job_dir / "report")
        output.print(f"report: {shown(page)}", markup=False, soft_wrap=True)
