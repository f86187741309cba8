"""Runs a job in this process: builds Harbor's configuration, runs the trials, keeps every finished result.

Harbor's job is used as it is, except that a trial which cannot even be created becomes an error of that trial
instead of ending the whole job, and that the progress display is ours.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import signal
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from orrery_core.errors import InfrastructureError, UserError

from orrery.choices import agent_config, environment_config, require_skills_support
from orrery.jobs import (
    RECORD,
    JobRecord,
    TrialOutcome,
    environment_modes,
    locked,
    prepare_resume,
    read_outcomes,
    read_record,
    read_trial,
)
from orrery.tasks import TaskDir, require_valid
from orrery.variants import without_skills

if TYPE_CHECKING:
    from harbor.models.job.config import JobConfig
    from harbor.trial.hooks import TrialHookEvent

    from orrery.harbor_job import GuardedJob


class Display(Protocol):
    """What the runner tells while it works."""

    def begin(self, planned: int, kept: list[TrialOutcome]) -> None: ...
    def phase(self, trial: str, name: str) -> None: ...
    def ended(self, trial: str, outcome: TrialOutcome | None) -> None: ...
    def stopping(self) -> None: ...


@dataclass(frozen=True)
class Request:
    """What to run, and where its results go."""

    tasks: list[TaskDir]
    jobs_dir: Path
    agents: tuple[str, ...] = ("oracle",)
    model: str | None = None
    environment: str = "sandbox"
    concurrent: int = 2
    attempts: int = 1
    job_name: str | None = None
    skills: bool = True
    retry_errors: bool = False

    def record(self) -> JobRecord:
        return JobRecord(
            tasks=[str(task.path) for task in self.tasks],
            agents=list(self.agents),
            model=self.model,
            environment=self.environment,
            attempts=self.attempts,
            skills=self.skills,
        )


@dataclass(frozen=True)
class JobResult:
    """What a run left behind: one outcome per finished trial, and how many were planned."""

    job_dir: Path
    outcomes: list[TrialOutcome]
    planned: int
    mode: dict[str, str]
    interrupted: bool = False

    @property
    def missing(self) -> int:
        return self.planned - len(self.outcomes)


def run_job(request: Request, display: Display) -> JobResult:
    """Runs what `request` says, or the rest of it when a job of that name exists.

    Raises:
        UserError: an invalid task directory, an unknown agent or environment, or a job name already in use.
        InfrastructureError: the environment cannot work on this machine.
    """
    require_valid(request.tasks)
    request = replace(request, job_name=_checked_name(request))
    config = job_config(request)
    if request.skills and any(task.skills_dir for task in request.tasks):
        for agent in config.agents:
            require_skills_support(agent)
    _preflight(config)
    job_dir = config.jobs_dir / config.job_name
    fresh = _open_job(job_dir, request)
    try:
        with locked(job_dir):
            kept, _ = prepare_resume(
                job_dir, concurrent=request.concurrent, retry_errors=request.retry_errors
            )
            planned = len(request.tasks) * len(request.agents) * request.attempts
            display.begin(planned, read_outcomes(job_dir))
            interrupted = kept < planned and _run_until_done(config, planned, display)
            outcomes = read_outcomes(job_dir)
            mode = run_mode(request.record(), outcomes, environment_modes(job_dir))
    except UserError:
        if fresh:
            shutil.rmtree(job_dir)
        raise
    return JobResult(job_dir, outcomes, planned, mode, interrupted)


def _checked_name(request: Request) -> str:
    name = request.job_name
    if name is None:
        return _fresh_name(request.jobs_dir)
    if name != Path(name).name or name.startswith("."):
        raise UserError(
            f"--job-name {name}: must be a plain folder name", mend="leave out slashes and leading dots"
        )
    return name


def _open_job(job_dir: Path, request: Request) -> bool:
    """Makes the job folder with its record (True), or checks that the one there was asked for the same."""
    record = request.record()
    if not job_dir.exists():
        if request.retry_errors:
            raise UserError(f"{job_dir}: there is no such job to retry", mend="check --job-name and -o")
        job_dir.mkdir(parents=True)
        (job_dir / RECORD).write_text(record.model_dump_json(indent=2), encoding="utf-8")
        return True
    differences = read_record(job_dir).differences(record)
    if differences:
        raise UserError(
            f"job {job_dir.name} was asked for something else:\n"
            + "\n".join(f"  {line}" for line in differences),
            mend="repeat the options of the first run to resume it, or choose another --job-name",
        )
    return False


def _fresh_name(jobs_dir: Path) -> str:
    stamp = datetime.now(UTC).astimezone().strftime("%Y-%m-%d__%H-%M-%S")
    name, count = stamp, 1
    while (jobs_dir / name).exists():
        count += 1
        name = f"{stamp}-{count}"
    return name


def job_config(request: Request) -> JobConfig:
    """Harbor's configuration of the job; tasks are explicit, so that Harbor can skip none of them."""
    from harbor.models.job.config import JobConfig
    from harbor.models.trial.config import TaskConfig

    tasks = request.tasks
    if not request.skills:
        tasks = [without_skills(task, request.jobs_dir) for task in tasks]
    return JobConfig(
        job_name=request.job_name or "",
        jobs_dir=request.jobs_dir.resolve(),
        n_attempts=request.attempts,
        n_concurrent_trials=request.concurrent,
        quiet=True,
        environment=environment_config(request.environment),
        agents=[agent_config(name, request.model) for name in request.agents],
        tasks=[TaskConfig(path=task.path, source=task.family) for task in tasks],
    )


def _preflight(config: JobConfig) -> None:
    """Asks the environment whether it can work here; a refusal ends the run before any trial."""
    from harbor.environments.factory import EnvironmentFactory

    environment = config.environment
    try:
        EnvironmentFactory.run_preflight(environment.type, environment.import_path, environment.kwargs)
    except SystemExit as refusal:
        raise InfrastructureError(
            f"the environment cannot work here: {refusal.code}", mend="orrery doctor shows what is missing"
        ) from refusal


def _run_until_done(config: JobConfig, planned: int, display: Display) -> bool:
    """Runs the remaining trials; True when it was stopped by Ctrl-C or SIGTERM."""
    try:
        asyncio.run(_run(config, planned, display))
    except (KeyboardInterrupt, asyncio.CancelledError):
        return True
    except BaseExceptionGroup as group:
        raise _first_leaf(group) from group
    return False


def _first_leaf(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


async def _run(config: JobConfig, planned: int, display: Display) -> None:
    import rich

    task = asyncio.current_task()
    if task is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    rich.reconfigure(quiet=True)  # Harbor's own bar goes to the global console, which is standard output
    job = await _create(config)
    _silence_console_log()
    if len(job) != planned:
        raise InfrastructureError(f"Harbor plans {len(job)} trials where {planned} were asked for")
    _watch(job, display)
    try:
        await job.run()
    except FileExistsError as error:
        raise UserError(
            f"job {config.job_name} cannot go on: a task's files or Harbor changed since it began ({error})",
            mend="run under another --job-name",
        ) from error


async def _create(config: JobConfig) -> GuardedJob:
    from orrery.harbor_job import GuardedJob

    try:
        job: GuardedJob = await GuardedJob.create(config)
    except (ValueError, TypeError, ImportError, SystemExit) as error:
        raise UserError(
            f"Harbor refuses the job: {error}",
            mend="check --agent, --model, --env and the credentials they need",
        ) from error
    return job


def _silence_console_log() -> None:
    """Harbor's job logs to standard error as well as to job.log; the display owns the terminal."""
    from harbor.utils.logger import logger

    for handler in list(logger.handlers):
        if type(handler) is logging.StreamHandler:
            logger.removeHandler(handler)


def _watch(job: GuardedJob, display: Display) -> None:
    """Turns Harbor's hooks into display calls."""

    def tell(name: str) -> Any:
        async def hook(event: TrialHookEvent) -> None:
            display.phase(event.trial_name, name)

        return hook

    def show_end(trial: str) -> None:
        display.ended(trial, read_trial(job.job_dir / trial))

    async def ended(event: TrialHookEvent) -> None:
        show_end(event.trial_name)

    async def cancelled(event: TrialHookEvent) -> None:
        display.stopping()

    job.when_refused = show_end
    job.on_trial_started(tell("starting"))
    job.on_environment_started(tell("environment"))
    job.on_agent_started(tell("agent"))
    job.on_agent_ended(tell("collecting"))
    job.on_verification_started(tell("verifier"))
    job.on_trial_ended(ended)
    job.on_trial_cancelled(cancelled)


def run_mode(record: JobRecord, outcomes: list[TrialOutcome], environments: set[str]) -> dict[str, str]:
    """What decides whether two runs compare: environment, skills, and what the verifiers recorded.

    A key on which trials disagree lists every value that was seen.
    """
    seen: dict[str, set[str]] = {}
    for outcome in outcomes:
        for key, value in (outcome.report.mode if outcome.report else {}).items():
            seen.setdefault(key, set()).add(value)
    environment = " | ".join(sorted(environments)) or record.environment
    mode = {"environment": environment, "skills": "with" if record.skills else "without"}
    return mode | {key: " | ".join(sorted(values)) for key, values in sorted(seen.items())}
