"""Read Harbor job folders. A broken trial folder becomes an error record with its reason."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from math import isfinite
from pathlib import Path
from typing import Annotated, Any

from orrery_core.errors import UserError
from orrery_core.results import Report, TrialStatus
from pydantic import AfterValidator, AliasChoices, BaseModel, Field, ValidationError

from orrery.jobs import RECORD, HarborTrial, JobRecord, judge_trial
from orrery.report import files, task_text
from orrery.report.model import Job, Subject, Trial, Usage

TRIAL_MARKS = ("result.json", "config.json", "lock.json", "trial.log", "agent", "verifier")
PHASES = ("environment_setup", "agent_setup", "agent_execution", "verifier")
RECORD_FILES = ("sandbox.json", "engine.json")
"""Where an environment says how it ran: role to mode and details."""
COMPARED = ("mode", "profile", "engine")
"""Fields of such a record that must be the same for a comparison."""


def _finite(value: float | None) -> float | None:
    """Money that is not a finite number was not recorded."""
    return value if value is not None and isfinite(value) else None


Finite = Annotated[float | None, AfterValidator(_finite)]


class _Phase(BaseModel):
    started_at: datetime | None = None
    finished_at: datetime | None = None

    @property
    def seconds(self) -> float | None:
        if self.started_at is None or self.finished_at is None:
            return None
        return (self.finished_at - self.started_at).total_seconds()


class _Model(BaseModel):
    name: str
    provider: str | None = None


class _Agent(BaseModel):
    name: str
    version: str = ""
    model_info: _Model | None = None


class _Usage(BaseModel):
    n_input_tokens: int | None = None
    n_cache_tokens: int | None = None
    n_output_tokens: int | None = None
    cost_usd: Finite = None


class _Exception(BaseModel):
    exception_type: str
    exception_message: str = ""

    @property
    def text(self) -> str:
        return f"{self.exception_type}: {self.exception_message}".strip().rstrip(":")


class _TaskConfig(BaseModel):
    path: str | None = None
    source: str | None = None


class _AgentConfig(BaseModel):
    name: str | None = None
    import_path: str | None = None
    model_name: str | None = None
    options: dict[str, Any] = Field({}, validation_alias=AliasChoices("kwargs"))


class _Config(BaseModel):
    task: _TaskConfig = _TaskConfig()
    agent: _AgentConfig = _AgentConfig()


class _Result(_Phase):
    """What a report shows of Harbor's trial result, beyond what `HarborTrial` reads to decide the outcome.

    Other keys may come and go with Harbor's versions.
    """

    task_name: str
    trial_name: str = ""
    task_checksum: str = ""
    config: _Config = _Config()
    agent_info: _Agent
    agent_result: _Usage | None = None
    exception_info: _Exception | None = None
    environment_setup: _Phase | None = None
    agent_setup: _Phase | None = None
    agent_execution: _Phase | None = None
    verifier: _Phase | None = None


class _FinalMetrics(BaseModel):
    total_prompt_tokens: int | None = None
    total_completion_tokens: int | None = None
    total_cached_tokens: int | None = None
    total_cost_usd: Finite = None


class _Step(BaseModel):
    source: str = ""
    message: Any = None


class _Trajectory(BaseModel):
    steps: list[_Step] = []
    final_metrics: _FinalMetrics | None = None


class _JobResult(BaseModel):
    n_total_trials: int | None = Field(None, ge=0)


def load_jobs(job_dirs: list[Path]) -> list[Job]:
    """Every job, in the order given, each folder once.

    Raises:
        UserError: no folder given, one does not exist, or one holds no trial.
    """
    if not job_dirs:
        raise UserError("no job folder given", "orrery report JOB_FOLDER...")
    unique = list(dict.fromkeys(path.resolve() for path in job_dirs))
    names: dict[str, int] = {}
    jobs = []
    for path in unique:
        names[path.name] = names.get(path.name, 0) + 1
        count = names[path.name]
        jobs.append(load_job(path, path.name if count == 1 else f"{path.name} ({count})"))
    return jobs


def load_job(path: Path, name: str) -> Job:
    """One job folder.

    Raises:
        UserError: it does not exist or holds no trial.
    """
    if not path.is_dir():
        raise UserError(
            f"{path}: no such job folder", "give a folder that `orrery run` or `harbor run` wrote"
        )
    trial_dirs = sorted(child for child in path.iterdir() if _is_trial(child))
    if not trial_dirs:
        raise UserError(
            f"{path}: holds no trial", "give the job's own folder, the one with a folder per trial in it"
        )
    record, _ = _read_model(path, RECORD, JobRecord)
    finished, _ = _read_model(path, "result.json", _JobResult)
    planned = finished.n_total_trials if finished else None
    if record is not None:
        planned = len(record.tasks) * len(record.agents) * record.attempts
    options = "without skills" if record is not None and not record.skills else ""
    trials = [_load_surely(child, name, options) for child in trial_dirs]
    return Job(name, tuple(_with_known_subjects(trials)), planned)


def _load_surely(path: Path, job: str, options: str) -> Trial:
    """`load_trial`, or an error record where the folder holds what no reader is prepared for."""
    try:
        return load_trial(path, job, options)
    except (OSError, ValueError, TypeError, RecursionError) as problem:
        return Trial(
            job=job,
            name=path.name,
            task=path.name.partition("__")[0],
            family="",
            level=task_text.level_of_name(path.name),
            subject=Subject("unknown agent", "", "", options),
            status=TrialStatus.ERROR,
            reason=f"cannot be read ({type(problem).__name__}: {problem})".replace(str(path), path.name),
            finished=False,
        )


def load_trial(path: Path, job: str, options: str = "") -> Trial:
    """One trial folder, whatever state it is in. ``options`` are the job's, a part of the subject."""
    harbor, problem = _read_model(path, "result.json", HarborTrial)
    result, other_problem = _read_model(path, "result.json", _Result)
    if harbor is None or result is None:
        return _unfinished(path, job, options, problem or other_problem)
    report, report_problem = _read_model(path, "verifier/report.json", Report)
    outcome = judge_trial(harbor, report, report_problem)
    trajectory = _trajectory(path)
    mode, environment = _modes(path, report)
    text = task_text.read(result.config.task.path)
    exception = result.exception_info.text if result.exception_info else ""
    return Trial(
        job=job,
        name=path.name,
        task=outcome.task,
        family=outcome.family,
        level=_first(outcome.level, text.level),
        subject=_subject(result.agent_info, result.config.agent, options),
        status=outcome.status,
        reason=report.reason if report and outcome.counts else outcome.reason,
        reward=outcome.reward,
        rewards=dict(outcome.rewards),
        criteria=tuple(report.criteria) if report else (),
        note=exception if outcome.counts else "",
        task_version=result.task_checksum,
        versions=dict(report.versions) if report else {},
        seeds=dict(report.seeds) if report else {},
        mode=mode,
        environment=environment,
        phases=_phases(result),
        timings=dict(report.timings) if report else {},
        usage=_usage(result.agent_result, trajectory),
        started=result.started_at.isoformat(timespec="seconds") if result.started_at else "",
        configured=result.config.agent.model_dump_json(),
        text=text,
        last_message=_last_message(trajectory),
        logs=files.log_tails(path),
        images=files.images(path / "verifier", path),
    )


def _is_trial(path: Path) -> bool:
    if not path.is_dir() or path.is_symlink():
        return False
    return "__" in path.name or any((path / mark).exists() for mark in TRIAL_MARKS)


def _read_model[M: BaseModel](folder: Path, name: str, model: type[M]) -> tuple[M | None, str]:
    """The parsed file, or None and what is wrong with it."""
    data, problem = files.read(folder / name, folder)
    if data is None:
        return None, f"{name}: {problem}"
    try:
        return model.model_validate_json(data), ""
    except ValidationError as failure:
        first = failure.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        return None, f"{name}: {place + ': ' if place else ''}{first['msg']}"


def _unfinished(path: Path, job: str, options: str, problem: str) -> Trial:
    """A trial without a readable result, for example after `kill -9` of the runner."""
    config, _ = _read_model(path, "config.json", _Config)
    config = config or _Config()
    task = Path(config.task.path).name if config.task.path else path.name.partition("__")[0]
    text = task_text.read(config.task.path)
    mode, environment = _modes(path, None)
    agent = _Agent(name=config.agent.name or config.agent.import_path or "unknown agent")
    if config.agent.model_name:
        agent.model_info = _Model(name=config.agent.model_name)
    return Trial(
        job=job,
        name=path.name,
        task=task,
        family=_family(config),
        level=_first(text.level, task_text.level_of_name(task)),
        subject=_subject(agent, config.agent, options),
        status=TrialStatus.ERROR,
        reason=problem,
        finished=False,
        configured=config.agent.model_dump_json(),
        text=text,
        mode=mode,
        environment=environment,
        logs=files.log_tails(path),
    )


def _with_known_subjects(trials: list[Trial]) -> list[Trial]:
    """Unfinished trials do not know their agent's name and version; finished ones so configured do."""
    known = {trial.configured: trial.subject for trial in trials if trial.finished}
    return [
        trial if trial.finished else replace(trial, subject=known.get(trial.configured, trial.subject))
        for trial in trials
    ]


def _family(config: _Config) -> str:
    if config.task.source:
        return config.task.source
    return Path(config.task.path).parent.name if config.task.path else ""


def _subject(agent: _Agent, config: _AgentConfig, options: str) -> Subject:
    model = ""
    if agent.model_info:
        provider = agent.model_info.provider
        model = f"{provider}/{agent.model_info.name}" if provider else agent.model_info.name
    given = [options] if options else []
    given += [f"{key}={_flat(value)}" for key, value in sorted(config.options.items())]
    version = "" if agent.version in ("", "unknown") else agent.version
    return Subject(agent.name, version, model, ", ".join(given))


def _phases(result: _Result) -> dict[str, float]:
    found = {}
    for name in PHASES:
        phase: _Phase | None = getattr(result, name)
        if phase is not None and phase.seconds is not None:
            found[name] = phase.seconds
    if result.seconds is not None:
        found["total"] = result.seconds
    return found


def _modes(path: Path, report: Report | None) -> tuple[dict[str, str], dict[str, str]]:
    """What comparability rests on (modes of verifier and environments), and what else was recorded."""
    mode = dict(report.mode) if report else {}
    details: dict[str, str] = {}
    for name in RECORD_FILES:
        if not (path / name).exists():
            continue
        for role, record in sorted(files.read_object(path / name, path).items()):
            role = role.partition("__")[0]
            fields = record if isinstance(record, dict) else {"mode": record}
            inner = fields.get("details")
            fields = {**fields, **(inner if isinstance(inner, dict) else {})}
            for key, value in sorted(fields.items()):
                if key in COMPARED:
                    mode[f"{role} environment" if key == "mode" else f"{role} {key}"] = _flat(value)
                elif key != "details":
                    details[f"{role} {key}"] = _flat(value)
    return mode, details


def _flat(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(_flat(item) for item in value)
    if isinstance(value, dict):
        return ", ".join(f"{key}={_flat(item)}" for key, item in sorted(value.items()))
    return str(value)


def _trajectory(path: Path) -> _Trajectory | None:
    if not (path / "agent" / "trajectory.json").exists():
        return None
    return _read_model(path, "agent/trajectory.json", _Trajectory)[0]


def _usage(context: _Usage | None, trajectory: _Trajectory | None) -> Usage:
    recorded = context or _Usage()
    metrics = (trajectory and trajectory.final_metrics) or _FinalMetrics()
    return Usage(
        input_tokens=_first(recorded.n_input_tokens, metrics.total_prompt_tokens),
        cached_tokens=_first(recorded.n_cache_tokens, metrics.total_cached_tokens),
        output_tokens=_first(recorded.n_output_tokens, metrics.total_completion_tokens),
        cost_usd=_first(recorded.cost_usd, metrics.total_cost_usd),
        steps=len(trajectory.steps) if trajectory else None,
    )


def _last_message(trajectory: _Trajectory | None) -> str:
    for step in reversed(trajectory.steps if trajectory else []):
        if step.source == "agent" and isinstance(step.message, str) and step.message.strip():
            return step.message
    return ""


def _first[T](*values: T | None) -> T | None:
    return next((value for value in values if value is not None), None)
