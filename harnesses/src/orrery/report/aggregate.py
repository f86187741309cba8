"""Every number of a report, computed from trial records. Pure: no files, no formatting.

Definitions follow the world-editing paper where it has them (Tables 3, 5, 7 and 9). The template
``methods.html.j2`` tells the reader the same in words.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import fmean, median

from orrery_core.results import Criterion, Status, TrialStatus, count, pass_rate
from orrery_core.statistics import wilson

from orrery.report.model import Trial

LEVEL = 0.95
"""Coverage of every interval in a report."""

STAGES = ("build", "load", "behaviour", "regression", "integrity", "visual")
FAILURES = ("rejected", *STAGES, "unplaced")
"""Where a trial can fail: refused, at a stage, or with a reward below 1 and no failed criterion to blame."""

FUNCTIONAL = ("state", "behaviour")


@dataclass(frozen=True)
class Rate:
    """A share with its sample size and interval; ``value`` is None when nothing was measured."""

    hits: float
    """Yes-answers, or for a mean the sum of the shares."""
    n: int
    value: float | None
    low: float | None
    high: float | None
    is_mean: bool = False


@dataclass(frozen=True)
class PassAtK:
    k: int
    tasks: int
    """Tasks with at least k graded attempts."""
    value: float


@dataclass(frozen=True)
class Summary:
    """The metrics of one set of trials."""

    tasks: int
    trials: int
    """Graded trials, the n of BSR, CPR and WSR."""
    errors: int
    rejected: int
    bsr: Rate
    cpr: Rate
    wsr: Rate
    regression: Rate
    paper_cpr: Rate
    paper_wsr: Rate
    mean_reward: float | None
    failures: dict[str, int]


@dataclass(frozen=True)
class Row:
    """One line of the table by level."""

    family: str
    level: int | None
    summary: Summary


@dataclass(frozen=True)
class RegressionRow:
    family: str
    level: int | None
    tasks: int
    checks: int
    unreached: int
    rate: Rate
    clean: Rate
    """Trials that reached at least one regression check and passed all they reached."""


@dataclass(frozen=True)
class DomainRow:
    genre: str
    trials: int
    failed: int
    criteria_failed: int


@dataclass(frozen=True)
class Quantity:
    """Sum and median over the trials that recorded the value."""

    n: int
    total: float
    median: float


@dataclass(frozen=True)
class Costs:
    phases: dict[str, Quantity]
    input_tokens: Quantity | None
    output_tokens: Quantity | None
    cost_usd: Quantity | None


def summarise(trials: Sequence[Trial]) -> Summary:
    """The metrics over ``trials``; errors are counted and otherwise left out."""
    graded = [trial for trial in trials if trial.graded]
    built = [known for known in map(_built, graded) if known is not None]
    shares = [share for share in map(criterion_share, graded) if share is not None]
    functional = [(passed, total) for passed, total in map(_functional, graded) if total]
    regressions = [check for trial in graded for check in _regressions(trial) if _reached(check)]
    rewards = [trial.reward for trial in graded if trial.reward is not None]
    failures = dict.fromkeys(FAILURES, 0)
    for trial in graded:
        stage = failure_stage(trial)
        if stage:
            failures[stage] = failures.get(stage, 0) + 1
    return Summary(
        tasks=len({trial.task_key for trial in trials}),
        trials=len(graded),
        errors=len(trials) - len(graded),
        rejected=sum(trial.status is TrialStatus.REJECTED for trial in graded),
        bsr=rate(sum(built), len(built)),
        cpr=mean_rate(shares),
        wsr=rate(sum(trial.solved for trial in graded), len(graded)),
        regression=rate(sum(check.status is Status.PASS for check in regressions), len(regressions)),
        paper_cpr=rate(sum(passed for passed, _ in functional), sum(total for _, total in functional)),
        paper_wsr=rate(sum(passed == total for passed, total in functional), len(functional)),
        mean_reward=fmean(rewards) if rewards else None,
        failures={stage: number for stage, number in failures.items() if number},
    )


def rate(hits: int, n: int) -> Rate:
    """``hits`` of ``n`` with a Wilson interval."""
    return _rate(hits, n, is_mean=False)


def mean_rate(shares: Sequence[float]) -> Rate:
    """Mean of shares in [0, 1], with the Wilson interval of their sum as hits (see `wilson`)."""
    return _rate(math.fsum(shares), len(shares), is_mean=True)


def _rate(hits: float, n: int, *, is_mean: bool) -> Rate:
    if n == 0:
        return Rate(0, 0, None, None, None, is_mean)
    low, high = wilson(hits, n, LEVEL)
    return Rate(hits, n, hits / n, low, high, is_mean)


def criterion_share(trial: Trial) -> float | None:
    """The trial's passed share of criteria; None where it has none. Unreached counts as failed."""
    return pass_rate(trial.criteria) if trial.criteria else None


def failure_stage(trial: Trial) -> str | None:
    """The earliest stage with a failed criterion, state counted as behaviour; None for solved and error."""
    if not trial.graded or trial.solved:
        return None
    if trial.status is TrialStatus.REJECTED:
        return "rejected"
    for wanted in (Status.FAIL, Status.UNREACHED):
        stages = {_stage(criterion) for criterion in trial.criteria if criterion.status is wanted}
        if stages:
            return min(stages, key=stage_order)
    return "unplaced"


def stage_order(stage: str) -> tuple[int, str]:
    """Sort key of stages: the known ones as a trial runs through them, a family's own ones after them."""
    return (STAGES.index(stage) if stage in STAGES else len(STAGES), stage)


def pass_at_k(graded: int, solved: int, k: int) -> float:
    """Chance that k attempts drawn without replacement from ``graded`` hold one of the ``solved``."""
    return 1.0 - math.comb(graded - solved, k) / math.comb(graded, k)


def _stage(criterion: Criterion) -> str:
    return "behaviour" if criterion.stage == "state" else criterion.stage


def _built(trial: Trial) -> bool | None:
    """Whether the submission built and loaded; None for families without such gates."""
    if "built" in trial.rewards and "loaded" in trial.rewards:
        return trial.rewards["built"] >= 1.0 and trial.rewards["loaded"] >= 1.0
    gates = count(trial.criteria, ("build", "load"))
    return gates.passed == gates.total if gates.total else None


def _functional(trial: Trial) -> tuple[int, int]:
    """Passed and all criteria of state and behaviour. Unreached ones count as failed."""
    counts = count(trial.criteria, FUNCTIONAL)
    return counts.passed, counts.total


def _regressions(trial: Trial) -> list[Criterion]:
    return [criterion for criterion in trial.criteria if criterion.stage == "regression"]


def _reached(check: Criterion) -> bool:
    return check.status in (Status.PASS, Status.FAIL)


def by_level(trials: Sequence[Trial]) -> list[tuple[str, int | None, list[Trial]]]:
    """Trials by family and level, in reading order; tasks without a level come last."""
    ordered = sorted(trials, key=lambda trial: place(trial)[:3])
    return [
        (family, level, list(part))
        for (family, level), part in groupby(ordered, key=lambda trial: (trial.family, trial.level))
    ]


def regression_row(family: str, level: int | None, trials: list[Trial]) -> RegressionRow:
    graded = [trial for trial in trials if trial.graded]
    checks = [check for trial in graded for check in _regressions(trial)]
    reached = [check for check in checks if _reached(check)]
    per_trial = [[check for check in _regressions(trial) if _reached(check)] for trial in graded]
    per_trial = [part for part in per_trial if part]
    return RegressionRow(
        family=family,
        level=level,
        tasks=len({trial.task_key for trial in graded if _regressions(trial)}),
        checks=len(checks),
        unreached=sum(check.status is Status.UNREACHED for check in checks),
        rate=rate(sum(check.status is Status.PASS for check in reached), len(reached)),
        clean=rate(
            sum(all(check.status is Status.PASS for check in part) for part in per_trial), len(per_trial)
        ),
    )


def domains(trials: Sequence[Trial]) -> tuple[DomainRow, ...]:
    """Failures by the task's genre; nothing when no task states one."""
    found = []
    for genre in sorted({trial.text.genre for trial in trials if trial.text.genre}):
        part = [trial for trial in trials if trial.graded and trial.text.genre == genre]
        if part:
            failed = [trial for trial in part if not trial.solved]
            criteria = sum(c.status is Status.FAIL for trial in failed for c in trial.criteria)
            found.append(DomainRow(genre, len(part), len(failed), criteria))
    return tuple(found)


def pass_at(trials: Sequence[Trial]) -> tuple[PassAtK, ...]:
    """pass@k for 1, 2, 4, ... and the largest k, each over the tasks with enough graded attempts."""
    attempts: dict[str, list[bool]] = {}
    for trial in trials:
        if trial.graded:
            attempts.setdefault(trial.task_key, []).append(trial.solved)
    most = max((len(part) for part in attempts.values()), default=0)
    if most < 2:
        return ()
    sizes = sorted({2**power for power in range(most.bit_length()) if 2**power <= most} | {most})
    found = []
    for k in sizes:
        values = [pass_at_k(len(part), sum(part), k) for part in attempts.values() if len(part) >= k]
        found.append(PassAtK(k, len(values), fmean(values)))
    return tuple(found)


def costs(trials: Sequence[Trial]) -> Costs:
    names = dict.fromkeys(name for trial in trials for name in trial.phases)
    phases = {name: _quantity(trial.phases.get(name) for trial in trials) for name in names}
    return Costs(
        phases={name: quantity for name, quantity in phases.items() if quantity},
        input_tokens=_quantity(trial.usage.input_tokens for trial in trials),
        output_tokens=_quantity(trial.usage.output_tokens for trial in trials),
        cost_usd=_quantity(trial.usage.cost_usd for trial in trials),
    )


def _quantity(values: Iterable[float | None]) -> Quantity | None:
    known = [value for value in values if value is not None]
    return Quantity(len(known), math.fsum(known), median(known)) if known else None


def place(trial: Trial) -> tuple[str, bool, int, str, str, str]:
    """Sort key: family, level (none last), task, then the order of the attempts."""
    level = trial.level if trial.level is not None else 0
    return (trial.family, trial.level is None, level, trial.task, trial.started, trial.name)
