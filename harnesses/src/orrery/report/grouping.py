"""Which trials are counted together, and what limits comparison. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from orrery.report.aggregate import (
    Costs,
    DomainRow,
    PassAtK,
    RegressionRow,
    Row,
    Summary,
    by_level,
    costs,
    domains,
    pass_at,
    place,
    regression_row,
    summarise,
)
from orrery.report.model import Job, Subject, Trial

PER_TASK = frozenset({"task", "spec"})
"""Versions that belong to one task; all others belong to the family's verifier."""


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
    parts: dict[Subject, list[_Unit]] = {}
    for job in jobs:
        ordered = sorted(job.trials, key=lambda trial: (_subject_key(trial.subject), place(trial)))
        for subject, same in groupby(ordered, key=lambda trial: trial.subject):
            for unit in _split_by_version(same):
                _merge(parts.setdefault(subject, []), unit)
    found = []
    for subject in sorted(parts, key=_subject_key):
        for unit in parts[subject]:
            names = tuple(dict.fromkeys(trial.job for trial in unit.trials))
            label = subject.label if len(parts[subject]) == 1 else f"{subject.label} ({', '.join(names)})"
            found.append(_group(label, subject, names, tuple(sorted(unit.trials, key=place))))
    if len({group.label for group in found}) < len(found):
        found = [replace(group, label=f"{group.label} #{number}") for number, group in enumerate(found, 1)]
    return tuple(found)


def notes(jobs: Sequence[Job], grouped: Sequence[Group]) -> tuple[str, ...]:
    """What a reader of the whole report must know first."""
    found = []
    for job in jobs:
        if job.planned is not None and len(job.trials) < job.planned:
            found.append(
                f"Job {job.name} is incomplete: {len(job.trials)} of {job.planned} trials have a folder."
            )
    for subject in dict.fromkeys(group.subject for group in grouped):
        same = [group for group in grouped if group.subject == subject]
        if len(same) > 1:
            tasks = ", ".join(_conflicts(same))
            found.append(
                f"Results of {subject.label} are not merged: the versions of {tasks} differ between the jobs "
                f"{'; '.join(', '.join(group.jobs) for group in same)}."
            )
    return tuple(found)


def _group(label: str, subject: Subject, jobs: tuple[str, ...], trials: tuple[Trial, ...]) -> Group:
    overall = summarise(trials)
    modes = _values(trial.mode for trial in trials)
    return Group(
        label=label,
        subject=subject,
        jobs=jobs,
        trials=trials,
        overall=overall,
        rows=tuple(Row(family, level, summarise(part)) for family, level, part in by_level(trials)),
        regressions=tuple(row for part in by_level(trials) if (row := regression_row(*part)).checks),
        domains=domains(trials),
        pass_at=pass_at(trials),
        costs=costs(trials),
        modes=modes,
        versions=_values(trial.versions for trial in trials),
        flags=_flags(trials, overall, modes),
    )


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
        found.append("Hidden data came from the public development key (dev-split): not a held-out result.")
    if any(key.endswith("profile") and "host" in seen for key, seen in modes.items()):
        found.append(
            "Sandbox host profile: the tools were this machine's own, not those of the pinned image."
        )
    mixed = [key for key, seen in modes.items() if len(seen) > 1]
    if mixed:
        found.append(f"Mixed modes within this row: {', '.join(mixed)}.")
    if overall.errors:
        found.append(f"{overall.errors} of {len(trials)} trials ended as error and are in no mean.")
    attempts = sorted(Counter(trial.task_key for trial in trials).values())
    if attempts[0] < attempts[-1]:
        found.append(f"Tasks have unequal numbers of attempts ({attempts[0]} to {attempts[-1]}).")
    if attempts[-1] > 1:
        found.append(
            "Intervals treat attempts at one task as independent: too narrow as a claim about new tasks."
        )
    return tuple(found)


@dataclass
class _Unit:
    """Trials that agree on every version."""

    trials: list[Trial]
    versions: dict[str, object]


def _unit(trials: list[Trial]) -> _Unit:
    return _Unit(trials, _versions(trials))


def _split_by_version(trials: Iterable[Trial]) -> list[_Unit]:
    """One job's trials of a subject in as few units as agree on every version; normally one."""
    units: list[_Unit] = []
    for trial in trials:
        _merge(units, _unit([trial]))
    return units


def _merge(units: list[_Unit], new: _Unit) -> None:
    """Put ``new`` into the first unit that it does not contradict, or make it a unit of its own."""
    for unit in units:
        if not _contradictions(unit.versions, new.versions):
            unit.trials.extend(new.trials)
            unit.versions |= new.versions
            return
    units.append(new)


def _contradictions(one: dict[str, object], other: dict[str, object]) -> set[str]:
    return {key for key in one.keys() & other.keys() if one[key] != other[key]}


def _versions(trials: Iterable[Trial]) -> dict[str, object]:
    """Versions of tasks and, per family, of what the verifier named; unknown ones contradict nothing."""
    found: dict[str, object] = {}
    for trial in trials:
        if trial.task_version:
            found[trial.task_key] = trial.task_version
        for name, version in trial.versions.items():
            scope = trial.task_key if name in PER_TASK else trial.family
            found[f"{name} ({scope})"] = version
    return found


def _conflicts(same: Sequence[Group]) -> list[str]:
    found: set[str] = set()
    for number, group in enumerate(same):
        for other in same[number + 1 :]:
            found |= _contradictions(_versions(group.trials), _versions(other.trials))
    return sorted(found)


def _subject_key(subject: Subject) -> tuple[str, ...]:
    return (subject.agent, subject.version, subject.model, subject.options)
