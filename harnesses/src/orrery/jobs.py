"""Job folders: what was asked (`orrery.json`), how each trial ended, and going on with an interrupted job.

A job folder is Harbor's own; `orrery.json` beside its files says what was asked in our words.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from orrery_core.errors import InfrastructureError, UserError
from orrery_core.reports import REPORT, read_outcome
from orrery_core.results import Report, TrialStatus
from pydantic import BaseModel, TypeAdapter, ValidationError

from orrery.tasks import LEVEL

RECORD = "orrery.json"
ENVIRONMENT_RECORD = "sandbox.json"
AGENT_ENDINGS = frozenset(
    {
        "AgentTimeoutError",
        "NonZeroAgentExitCodeError",
        "ContextWindowExceededError",
        "ContextLengthExceededError",
        "OutputTokenExceededError",
        "OutputLengthExceededError",
        "AgentSafetyRefusalError",
        "ContentPolicyViolationError",
    }
)
"""Exceptions that are the agent's own end: what it left is graded and counts. Harbor also counts a trial with
an exception that it does not know; that may as well be a broken environment, so here it is an error."""


class JobRecord(BaseModel):
    """What a job was asked to do; two runs under one name must agree in every field."""

    schema_version: Literal[1] = 1
    tasks: list[str]
    agents: list[str]
    model: str | None = None
    environment: str
    attempts: int = 1
    skills: bool = True

    def differences(self, other: JobRecord) -> list[str]:
        """One line per field in which `other` (the new request) departs from this record."""
        lines = []
        for name in type(self).model_fields:
            was, now = getattr(self, name), getattr(other, name)
            if was == now:
                continue
            if name == "tasks":
                gone, new = sorted(set(was) - set(now)), sorted(set(now) - set(was))
                lines += [f"tasks: not asked for now: {_names(gone)}"] if gone else []
                lines += [f"tasks: not in the job: {_names(new)}"] if new else []
            else:
                lines.append(f"{name}: was {was!r}, now {now!r}")
        return lines


def _names(paths: list[str]) -> str:
    return ", ".join(Path(path).name for path in paths)


def read_record(job_dir: Path) -> JobRecord:
    """Raises UserError when the folder is not one of our jobs."""
    try:
        return JobRecord.model_validate_json((job_dir / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValidationError) as error:
        raise UserError(
            f"{job_dir}: not a job of `orrery run` ({RECORD} is missing or unreadable)",
            mend="give the job folder that `orrery run` named at its end, or choose another --job-name",
        ) from error


class _Task(BaseModel):
    path: Path | None = None
    source: str | None = None


class _Config(BaseModel):
    task: _Task


class _Agent(BaseModel):
    name: str


class _Exception(BaseModel):
    exception_type: str
    exception_message: str


class _Environment(BaseModel):
    mode: str


_RECORDS = TypeAdapter(dict[str, _Environment])


class _Verifier(BaseModel):
    rewards: dict[str, float] | None = None


class HarborTrial(BaseModel):
    """The part of Harbor's trial `result.json` that decides an outcome; other fields are ignored."""

    trial_name: str
    config: _Config
    agent_info: _Agent
    exception_info: _Exception | None = None
    reward_valid: bool = False
    verifier_result: _Verifier | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None

    @property
    def seconds(self) -> float:
        if self.started_at is None or self.finished_at is None:
            return 0.0
        return (self.finished_at - self.started_at).total_seconds()

    @property
    def cancelled(self) -> bool:
        return self.exception_info is not None and self.exception_info.exception_type == "CancelledError"


@dataclass(frozen=True)
class TrialOutcome:
    """How one trial ended. `reward` and `rewards` are empty exactly when `status` is `error`."""

    trial: str
    task: str
    task_path: Path
    family: str
    level: int | None
    agent: str
    status: TrialStatus
    reason: str
    seconds: float
    reward: float | None = None
    rewards: dict[str, float] = field(default_factory=dict)
    report: Report | None = None

    @property
    def counts(self) -> bool:
        """Scored or rejected: the trial says something about the agent."""
        return self.status is not TrialStatus.ERROR

    @property
    def solved(self) -> bool:
        return self.reward is not None and self.reward >= 1.0


def read_trial(trial_dir: Path) -> TrialOutcome | None:
    """The outcome of one trial folder; None where it is unfinished, cancelled or cannot be read."""
    try:
        harbor = HarborTrial.model_validate_json((trial_dir / "result.json").read_text(encoding="utf-8"))
    except (OSError, ValidationError):
        return None
    if harbor.cancelled:
        return None
    verifier = trial_dir / "verifier"
    report, problem = None, ""
    if not (verifier / REPORT).exists():
        problem = f"the verifier left no {REPORT}"
    else:
        try:
            report = read_outcome(verifier)
        except InfrastructureError as error:
            problem = error.message
    return judge_trial(harbor, report, problem)


def judge_trial(harbor: HarborTrial, report: Report | None, problem: str = "") -> TrialOutcome:
    """Decides the outcome from Harbor's result and the verifier's report; never invents a score.

    An agent that ran out of time was still graded and counts. A trial with an exception that is not the
    agent's doing (a dead environment, a failing model host), without a report, or with another reward than
    its report gives, is an error.
    """
    task_path = harbor.config.task.path or Path(harbor.trial_name.rsplit("__", 1)[0])
    level = LEVEL.match(task_path.name)
    common: dict[str, Any] = {
        "trial": harbor.trial_name,
        "task": task_path.name,
        "task_path": task_path,
        "family": harbor.config.task.source or (report.family if report else task_path.parent.name),
        "level": report.level if report else (int(level.group(1)) if level else None),
        "agent": harbor.agent_info.name,
        "seconds": harbor.seconds,
        "report": report,
    }
    exception = harbor.exception_info
    said = f"{exception.exception_type}: {_first_line(exception.exception_message)}" if exception else ""
    if exception is not None and (not harbor.reward_valid or exception.exception_type not in AGENT_ENDINGS):
        why = report.reason if report is not None and report.status is TrialStatus.ERROR else ""
        if why and exception.exception_type == "RewardFileNotFoundError":
            said = ""  # only says again that a report without a score comes without a reward file
        return TrialOutcome(**common, status=TrialStatus.ERROR, reason="; ".join(filter(None, (said, why))))
    if report is None:
        return TrialOutcome(**common, status=TrialStatus.ERROR, reason=said or problem)
    if report.status is TrialStatus.ERROR:
        return TrialOutcome(
            **common, status=TrialStatus.ERROR, reason=report.reason or "the verifier could not measure"
        )
    rewards = report.reward_file()
    if rewards is None or harbor.verifier_result is None or harbor.verifier_result.rewards != rewards:
        return TrialOutcome(
            **common, status=TrialStatus.ERROR, reason="Harbor read another reward than the report gives"
        )
    return TrialOutcome(
        **common, status=report.status, reason=report.reason or said, reward=report.reward, rewards=rewards
    )


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0] if text.strip() else "no message"


def trial_dirs(job_dir: Path) -> list[Path]:
    return sorted(path for path in job_dir.iterdir() if path.is_dir() and "__" in path.name)


def read_outcomes(job_dir: Path) -> list[TrialOutcome]:
    """Outcomes of the finished trials of a job, by task and trial name."""
    outcomes = [outcome for path in trial_dirs(job_dir) if (outcome := read_trial(path)) is not None]
    return sorted(outcomes, key=lambda outcome: (outcome.family, outcome.task, outcome.agent, outcome.trial))


def environment_modes(job_dir: Path) -> set[str]:
    """How our environments say they ran the trials of a job; Harbor's own keep no record."""
    modes = set()
    for path in job_dir.glob(f"*__*/{ENVIRONMENT_RECORD}"):
        modes |= {record.mode for record in _RECORDS.validate_json(path.read_bytes()).values()}
    return modes


@contextlib.contextmanager
def locked(job_dir: Path) -> Iterator[None]:
    """Holds the job for this process: two runs would take each other's unfinished trials for leftovers.

    Raises:
        UserError: another process runs this job now.
    """
    with (job_dir / RECORD).open("r+b") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UserError(
                f"{job_dir}: this job is running in another process",
                mend="wait for it, or choose another --job-name",
            ) from error
        yield


def prepare_resume(job_dir: Path, *, concurrent: int, retry_errors: bool) -> tuple[int, int]:
    """Makes an existing job folder ready to be run again; returns the numbers of trials kept and dropped.

    Dropped: trials that were interrupted (no readable result, or cancelled) and, with `retry_errors`, those
    that ended as an error. Files of the job that a kill cut short are removed; Harbor writes them anew.
    """
    kept = dropped = 0
    for path in trial_dirs(job_dir):
        outcome = read_trial(path)
        whole = outcome is not None and _is_json(path / "config.json")
        if whole and not (retry_errors and outcome is not None and not outcome.counts):
            kept += 1
        else:
            shutil.rmtree(path)
            dropped += 1
    for name in ("config.json", "lock.json", "result.json"):
        path = job_dir / name
        if not _is_json(path):
            path.unlink(missing_ok=True)
    for name in ("config.json", "lock.json"):  # how many run at once is no part of what was asked
        path = job_dir / name
        if path.exists():
            data = json.loads(path.read_text(encoding="utf-8"))
            data["n_concurrent_trials"] = concurrent
            path.write_text(json.dumps(data, indent=4), encoding="utf-8")
    return kept, dropped


def _is_json(path: Path) -> bool:
    try:
        json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return True
