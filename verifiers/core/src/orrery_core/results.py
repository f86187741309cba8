"""The result model of every family: criteria, one report per trial, and pure functions over them.

A criterion that could not be measured is an `error` and counts neither for nor against the agent; a trial
with one has no score. The same report always serialises to the same bytes, so that `cmp` compares
reports.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, model_validator

MAX_DEPTH = 64
"""Deepest nesting of evidence; a deeper value is a mistake or an attack, and would exhaust a JSON parser."""


def clean_text(value: Any) -> Any:
    """Replace lone surrogates, which a log of a hostile program may hold and UTF-8 cannot."""
    if isinstance(value, str):
        return "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in value)
    return value


def clean_json(value: Any, depth: int = 0) -> JsonValue:
    """Return `value` as plain JSON: finite floats, no negative zero, no lone surrogates, tuples as lists.

    Raises:
        ValueError: a float is not finite, the nesting is deeper than `MAX_DEPTH`, or a type is not JSON.
    """
    if depth > MAX_DEPTH:
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str(clean_text(value))
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return finite(value)
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise ValueError("keys of an object must be strings")
        return {str(clean_text(key)): clean_json(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [clean_json(item, depth + 1) for item in value]
    raise ValueError(f"{type(value).__name__} is not a JSON value")


def finite(value: float) -> float:
    """Return `value` without the sign of zero; raise ValueError where it is infinite or not a number."""
    if not math.isfinite(value):
        raise ValueError("must be a finite number")
    return float(value) + 0.0


Text = Annotated[str, BeforeValidator(clean_text)]
Number = Annotated[float, Field(strict=True), AfterValidator(finite)]
Evidence = Annotated[dict[str, JsonValue], BeforeValidator(clean_json)]
Name = Annotated[str, Field(min_length=1), BeforeValidator(clean_text)]


class Status(StrEnum):
    """How one criterion ended."""

    PASS = "pass"  # noqa: S105
    FAIL = "fail"
    UNREACHED = "unreached"
    """An earlier gate failed: counts as failed, is reported apart."""
    ERROR = "error"
    """The verifier could not measure: counts neither for nor against the agent."""


class TrialStatus(StrEnum):
    """How one trial ended."""

    SCORED = "scored"
    REJECTED = "rejected"
    """The submission broke a stated rule: reward 0, with the reason."""
    ERROR = "error"
    """No score: a crash, a time-out of ours, a missing tool, or a criterion that could not be measured."""


class Model(BaseModel):
    """Base of everything that crosses a file or a process: no unknown fields, no changes afterwards."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Criterion(Model):
    """One verdict.

    Args:
        id: unique within the report.
        stage: build, load, state, behaviour, regression, integrity, visual; other families add their own.
        reason: why it did not pass, for people.
        requirement: number of the requirement in the instruction, from 1.
        evidence: what the verdict rests on (seed, eligible count, measured and expected values).
    """

    id: Name
    stage: Name
    status: Status
    reason: Text = ""
    requirement: int | None = None
    evidence: Evidence = Field(default_factory=dict)


class Report(Model):
    """Everything a verifier says about one trial.

    Args:
        reward: in the unit of the family; None exactly when `status` is error, 0 when rejected.
        rewards: the family's further flat keys, always the same set; empty when `status` is error.
        mode: how it ran (isolation, backend, split): part of comparability.
        timings: seconds by phase; the only field that differs between two runs of the same trial.
    """

    schema_version: Literal[1] = 1
    task: Text
    family: Text
    level: int | None = None
    status: TrialStatus
    reason: Text = ""
    reward: Number | None = None
    rewards: dict[Name, Number] = Field(default_factory=dict)
    criteria: tuple[Criterion, ...] = ()
    seeds: Evidence = Field(default_factory=dict)
    versions: dict[Name, Text] = Field(default_factory=dict)
    mode: dict[Name, Text] = Field(default_factory=dict)
    timings: dict[Name, Number] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        repeated = [name for name, n in Counter(item.id for item in self.criteria).items() if n > 1]
        if repeated:
            raise ValueError(f"criterion id {repeated[0]!r} is used twice")
        if self.status is TrialStatus.ERROR:
            if self.reward is not None or self.rewards:
                raise ValueError("a trial with status error has no reward")
            if not self.reason:
                raise ValueError("a trial with status error needs a reason")
            return self
        if self.reward is None:
            raise ValueError(f"a trial with status {self.status} needs a reward")
        if self.rewards.get("reward", self.reward) != self.reward:
            raise ValueError("rewards.reward differs from reward")
        if self.status is TrialStatus.REJECTED and (self.reward != 0 or not self.reason):
            raise ValueError("a rejected trial has reward 0 and a reason")
        if any(item.status is Status.ERROR for item in self.criteria):
            raise ValueError("a criterion could not be measured, so the trial has no score")
        return self

    def reward_file(self) -> dict[str, float] | None:
        """The flat content of reward.json, `reward` first; None when there is no score."""
        if self.reward is None:
            return None
        others = {key: self.rewards[key] for key in sorted(self.rewards) if key != "reward"}
        return {"reward": self.reward, **others}


class Counts(Model):
    """Numbers of criteria by status."""

    passed: int
    failed: int
    unreached: int
    error: int

    @property
    def total(self) -> int:
        """All criteria, measured or not."""
        return self.passed + self.failed + self.unreached + self.error


def count(criteria: Iterable[Criterion], stages: Collection[str] | None = None) -> Counts:
    """Count `criteria` by status, only those of `stages` where given."""
    seen = Counter(item.status for item in criteria if stages is None or item.stage in stages)
    return Counts(
        passed=seen[Status.PASS],
        failed=seen[Status.FAIL],
        unreached=seen[Status.UNREACHED],
        error=seen[Status.ERROR],
    )


def pass_rate(
    criteria: Iterable[Criterion], stages: Collection[str] | None = None, *, empty: float = 0.0
) -> float:
    """Passed share of the criteria of `stages`; `empty` where there are none. Unreached counts as failed."""
    counts = count(criteria, stages)
    return counts.passed / counts.total if counts.total else empty


def all_pass(criteria: Iterable[Criterion], stages: Collection[str] | None = None) -> bool:
    """Whether there is at least one criterion (of `stages`) and every one passes."""
    counts = count(criteria, stages)
    return counts.total > 0 and counts.passed == counts.total


def unmeasured(criteria: Iterable[Criterion]) -> tuple[Criterion, ...]:
    """The criteria with status error: where there is one, the trial has no score."""
    return tuple(item for item in criteria if item.status is Status.ERROR)


def error_report(reason: str, *, task: str = "", family: str = "", **fields: Any) -> Report:
    """A report without a score; `fields` are further fields of `Report` that are already known."""
    return Report(task=task, family=family, status=TrialStatus.ERROR, reason=reason, **fields)


def comparable(report: Report) -> Report:
    """`report` without its timings: equal for two runs of the same trial."""
    return report.model_copy(update={"timings": {}})


def canonical_json(value: BaseModel | JsonValue | Mapping[str, Any]) -> str:
    """JSON text that is the same for equal values: sorted keys, shortest floats, two spaces, final newline.

    Raises:
        ValueError: the value holds something that is not finite JSON.
    """
    plain = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
    return json.dumps(clean_json(plain), sort_keys=True, ensure_ascii=False, allow_nan=False, indent=2) + "\n"
