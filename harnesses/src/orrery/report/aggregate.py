"""Every number of a report, computed from trial records. Pure: no files, no formatting.

Definitions follow the world-editing paper where it has them (Tables 3, 5, 7 and 9); `METHODS` in ``render`` tells the
reader the same in words.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from statistics import fmean, median

from orrery_core.results import Criterion, Status, TrialStatus, count, pass_rate
from orrery_core.statistics import wilson

from orrery.report.model import Job, Subject, Trial

LEVEL = 0.95
"""Coverage of every interval in a report."""

STAGES = ("build", "load", "behaviour", "regression", "integrity", "visual")
FAILURES = ("rejected", *STAGES, "unplaced")
"""Where a trial can fail: the submission is refused, a stage, or a reward below 1 with no failed criterion to blame."""

FUNCTIONAL = ("state", "behaviour")


@dataclass(frozen=True)
class Rate:
    """A share with its sample size and interval; ``value`` is None when nothing was measured."""

    hits: float
    n: int
    value: float | None
    low: float | None
    high: float | None


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


@dataclass(frozen=True)
class Group:
    """All trials that may be counted together: one subject, one version of every task and verifier."""

    label: str
    subject: Subject
    jobs: tuple[str, ...]
    trials: tuple[Trial, ...]
    overall: Summary
    rows: tuple[Row, ...]
    regressions: tuple[RegressionRow, ...]
    domains: tuple[DomainRow, ...]
    pass_at: tuple[PassAtK, ...]
    costs: Costs
    modes: dict[str, tuple[str, ...]]
    """Every value seen per mode key; more than one means mixed."""
    versions: dict[str, tuple[str, ...]]
    flags: tuple[str, ...]
    """What limits comparison with other results."""


def groups(jobs: Sequence[Job]) -> tuple[Group, ...]:
    """Trials by subject; jobs whose task or verifier versions contradict each other stay apart."""
    parts: dict[Subject, list[list[Trial]]] = {}
    for job in jobs:
        ordered = sorted(job.trials, key=lambda trial: (_subject_key(trial.subject), _place(trial)))
        for subject, trials in groupby(ordered, key=lambda trial: trial.subject):
            for unit in _split_by_version(list(trials)):
                _merge(parts.setdefault(subject, []), unit)
    found = []
    for subject in sorted(parts, key=_subject_key):
        for trials in parts[subject]:
            names = tuple(dict.fromkeys(trial.job for trial in trials))
            label = subject.label if len(parts[subject]) == 1 else f"{subject.label} ({', '.join(names)})"
            found.append(_group(label, subject, names, tuple(sorted(trials, key=_place))))
    if len({group.label for group in found}) < len(found):
        found = [replace(group, label=f"{group.label} #{number}") for number, group in enumerate(found, 1)]
    return tuple(found)


def notes(jobs: Sequence[Job], grouped: Sequence[Group]) -> tuple[str, ...]:
    """What a reader of the whole report must know first."""
    found = []
    for job in jobs:
        if job.planned is not None and len(job.trials) < job.planned:
            found.append(f"Job {job.name} is incomplete: {len(job.trials)} of {job.planned} trials have a folder.")
    for subject in dict.fromkeys(group.subject for group in grouped):
        same = [group for group in grouped if group.subject == subject]
        if len(same) > 1:
            tasks = ", ".join(_conflicts(same))
            found.append(
                f"Results of {subject.label} are not merged: the versions of {tasks} differ between the jobs "
                f"{'; '.join(', '.join(group.jobs) for group in same)}."
            )
    return tuple(found)


def summarise(trials: Sequence[Trial]) -> Summary:
    """The metrics over ``trials``; errors are counted and otherwise left out."""
    graded = [trial for trial in trials if trial.graded]
    built = [value for trial in graded if (value := _built(trial)) is not None]
    shares = [value for trial in graded if (value := criterion_share(trial)) is not None]
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
        cpr=rate(math.fsum(shares), len(shares)),
        wsr=rate(sum(trial.solved for trial in graded), len(graded)),
        regression=rate(sum(check.status is Status.PASS for check in regressions), len(regressions)),
        paper_cpr=rate(sum(passed for passed, _ in functional), sum(total for _, total in functional)),
        paper_wsr=rate(sum(passed == total for passed, total in functional), len(functional)),
        mean_reward=fmean(rewards) if rewards else None,
        failures={stage: number for stage, number in failures.items() if number},
    )


def rate(hits: float, n: int) -> Rate:
    """``hits`` of ``n`` with a Wilson interval. ``hits`` may be a sum of shares in [0, 1]: such a share never varies more
    than a yes/no with the same mean, so the interval is then at least as wide as needed."""
    if n == 0:
        return Rate(0, 0, None, None, None)
    low, high = wilson(hits, n, LEVEL)
    return Rate(hits, n, hits / n, low, high)


def criterion_share(trial: Trial) -> float | None:
    """The trial's passed share of criteria: the verifier's own ``cpr``, or counted where a family has none."""
    if "cpr" in trial.rewards:
        return trial.rewards["cpr"]
    return pass_rate(trial.criteria) if trial.criteria else None


def failure_stage(trial: Trial) -> str | None:
    """The earliest stage with a failed criterion; None for a solved trial or an error. State counts as behaviour."""
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
    """Chance that at least one of k attempts drawn without replacement from ``graded`` is among the ``solved``."""
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


def _group(label: str, subject: Subject, jobs: tuple[str, ...], trials: tuple[Trial, ...]) -> Group:
    overall = summarise(trials)
    modes = _values(trial.mode for trial in trials)
    pass_at = _pass_at(trials)
    return Group(
        label=label,
        subject=subject,
        jobs=jobs,
        trials=trials,
        overall=overall,
        rows=tuple(Row(family, level, summarise(part)) for family, level, part in by_level(trials)),
        regressions=tuple(row for part in by_level(trials) if (row := _regression_row(*part)).checks),
        domains=_domains(trials),
        pass_at=pass_at,
        costs=_costs(trials),
        modes=modes,
        versions=_values(trial.versions for trial in trials),
        flags=_flags(trials, overall, modes),
    )


def by_level(trials: Sequence[Trial]) -> list[tuple[str, int | None, list[Trial]]]:
    """Trials by family and level, in reading order; tasks without a level come last."""
    ordered = sorted(trials, key=lambda trial: _place(trial)[:3])
    return [
        (family, level, list(part))
        for (family, level), part in groupby(ordered, key=lambda trial: (trial.family, trial.level))
    ]


def _regression_row(family: str, level: int | None, trials: list[Trial]) -> RegressionRow:
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
        clean=rate(sum(all(check.status is Status.PASS for check in part) for part in per_trial), len(per_trial)),
    )


def _domains(trials: Sequence[Trial]) -> tuple[DomainRow, ...]:
    """Failures by the task's genre; nothing when no task states one."""
    found = []
    for genre in sorted({trial.text.genre for trial in trials if trial.text.genre}):
        part = [trial for trial in trials if trial.graded and trial.text.genre == genre]
        if part:
            failed = [trial for trial in part if not trial.solved]
            criteria = sum(c.status is Status.FAIL for trial in failed for c in trial.criteria)
            found.append(DomainRow(genre, len(part), len(failed), criteria))
    return tuple(found)


def _pass_at(trials: Sequence[Trial]) -> tuple[PassAtK, ...]:
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


def _costs(trials: Sequence[Trial]) -> Costs:
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


def _values(maps: Iterable[dict[str, str]]) -> dict[str, tuple[str, ...]]:
    found: dict[str, set[str]] = {}
    for entry in maps:
        for key, value in entry.items():
            found.setdefault(key, set()).add(value)
    return {key: tuple(sorted(values)) for key, values in sorted(found.items())}


def _flags(trials: Sequence[Trial], overall: Summary, modes: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    found = []
    values = {value for seen in modes.values() for value in seen}
    if "dev-split" in values:
        found.append("Hidden data came from the public development key (dev-split): not comparable with a held-out result.")
    if any(key.endswith("profile") and "host" in seen for key, seen in modes.items()):
        found.append("Sandbox host profile: the tools were this machine's own, not those of the pinned image.")
    if any("in-place" in value or value == "proot" for value in values):
        found.append("The sandbox ran without full isolation: not comparable.")
    mixed = [key for key, seen in modes.items() if len(seen) > 1]
    if mixed:
        found.append(f"Mixed modes within this row: {', '.join(mixed)}.")
    if overall.errors:
        found.append(f"{overall.errors} of {len(trials)} trials ended as error and are in no mean.")
    counts = {}
    for trial in trials:
        counts[trial.task_key] = counts.get(trial.task_key, 0) + trial.graded
    attempts = sorted(set(counts.values()))
    if len(attempts) > 1:
        found.append(f"Tasks have unequal numbers of graded attempts ({attempts[0]} to {attempts[-1]}).")
    if attempts and attempts[-1] > 1:
        found.append("Intervals treat attempts at one task as independent: too narrow as a claim about new tasks.")
    return tuple(found)


def _split_by_version(trials: list[Trial]) -> list[list[Trial]]:
    """One job's trials of a subject in as few sets as agree on every task's version; normally one."""
    units: list[list[Trial]] = []
    for trial in trials:
        _merge(units, [trial])
    return units


def _merge(units: list[list[Trial]], new: list[Trial]) -> None:
    """Put ``new`` into the first unit that it does not contradict, or make it a unit of its own."""
    for unit in units:
        if not _contradictions(unit, new):
            unit.extend(new)
            return
    units.append(list(new))


def _contradictions(one: Iterable[Trial], other: Iterable[Trial]) -> set[str]:
    first, second = _versions(one), _versions(other)
    return {key for key in first.keys() & second.keys() if first[key] != second[key]}


def _versions(trials: Iterable[Trial]) -> dict[str, object]:
    """Version of each task, and of each thing the verifier named per family; unknown versions contradict nothing."""
    found: dict[str, object] = {}
    for trial in trials:
        if trial.task_version:
            found[trial.task_key] = trial.task_version
        for name, version in trial.versions.items():
            found[f"{name} ({trial.family})"] = version
    return found


def _conflicts(same: Sequence[Group]) -> list[str]:
    found: set[str] = set()
    for number, group in enumerate(same):
        for other in same[number + 1 :]:
            found |= _contradictions(group.trials, other.trials)
    return sorted(found)


def _subject_key(subject: Subject) -> tuple[str, ...]:
    return (subject.agent, subject.version, subject.model, subject.options)


def _place(trial: Trial) -> tuple[str, bool, int, str, str, str]:
    level = trial.level if trial.level is not None else 0
    return (trial.family, trial.level is None, level, trial.task, trial.started, trial.name)
