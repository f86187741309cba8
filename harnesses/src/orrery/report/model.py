"""The records that loading produces and aggregation consumes."""

from __future__ import annotations

from dataclasses import dataclass, field

from orrery_core.results import Criterion, TrialStatus


@dataclass(frozen=True)
class Subject:
    """What is measured: one complete agent configuration."""

    agent: str
    version: str
    model: str
    options: str

    @property
    def label(self) -> str:
        parts = [f"{self.agent} {self.version}".strip(), self.model, self.options]
        return " · ".join(part for part in parts if part)


@dataclass(frozen=True)
class TaskText:
    """What the task directory on this machine says about a task; empty when the directory is not here."""

    level: int | None = None
    genre: str = ""
    request: str = ""
    requirements: tuple[str, ...] = ()
    behaviours: dict[str, dict[str, str]] = field(default_factory=dict)
    """Criterion id to the behaviour fields its check states (actor, action, subject, ...)."""


@dataclass(frozen=True)
class Log:
    name: str
    tail: str


@dataclass(frozen=True)
class Image:
    name: str
    mime: str
    base64: str
    width: int | None = None
    """Pixels at which to show it: a whole multiple of its own width; None = as it is."""


@dataclass(frozen=True)
class Usage:
    """Tokens (input includes cached ones), cost in US dollars, trajectory steps; None where not recorded."""

    input_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    steps: int | None = None


@dataclass(frozen=True)
class Trial:
    """One attempt of one subject at one task, as far as its folder tells."""

    job: str
    name: str
    task: str
    family: str
    level: int | None
    subject: Subject
    status: TrialStatus
    reason: str = ""
    reward: float | None = None
    rewards: dict[str, float] = field(default_factory=dict)
    criteria: tuple[Criterion, ...] = ()
    note: str = ""
    """An exception that Harbor recorded although the trial was graded, such as the agent's time-out."""
    task_version: str = ""
    """Content hash of the task directory; trials of different versions are never merged."""
    versions: dict[str, str] = field(default_factory=dict)
    seeds: dict[str, object] = field(default_factory=dict)
    mode: dict[str, str] = field(default_factory=dict)
    """How it ran, as far as that must be the same for a comparison."""
    environment: dict[str, str] = field(default_factory=dict)
    """What else the environments recorded about themselves; may differ between tasks."""
    phases: dict[str, float] = field(default_factory=dict)
    """Seconds per phase of the trial, and ``total``."""
    timings: dict[str, float] = field(default_factory=dict)
    """Seconds per step inside the verifier."""
    usage: Usage = Usage()
    started: str = ""
    finished: bool = True
    """Has a readable result."""
    configured: str = ""
    """The agent part of the trial's config, which an unfinished trial has too; finds its subject."""
    text: TaskText = TaskText()
    last_message: str = ""
    logs: tuple[Log, ...] = ()
    images: tuple[Image, ...] = ()

    @property
    def task_key(self) -> str:
        return f"{self.family}/{self.task}" if self.family else self.task

    @property
    def graded(self) -> bool:
        """Counts in the means: everything but an error."""
        return self.status is not TrialStatus.ERROR

    @property
    def solved(self) -> bool:
        return self.graded and self.reward is not None and self.reward >= 1.0


@dataclass(frozen=True)
class Job:
    name: str
    trials: tuple[Trial, ...]
    planned: int | None = None
    """Trials that the job meant to run; None when its result file does not say."""
