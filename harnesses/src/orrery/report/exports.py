"""The report's numbers as Markdown, CSV and JSON."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from orrery_core.results import Status, canonical_json

from orrery.report import aggregate
from orrery.report.aggregate import Rate, Summary, failure_stage
from orrery.report.grouping import Group
from orrery.report.model import Job, Trial
from orrery.report.text import (
    csv_cell,
    dollars,
    fraction,
    interval,
    level,
    median_of,
    percent,
    seconds,
    spoken,
    tokens,
    total_of,
)
from orrery.report.text import markdown as md

CSV_COLUMNS = (
    "job", "trial", "agent", "version", "model", "options", "family", "task", "level", "genre", "status",
    "reason", "reward", "cpr", "built", "loaded", "preservation", "passed", "failed", "unreached",
    "unmeasured", "failure_stage", "seconds", "agent_seconds", "verifier_seconds", "input_tokens",
    "cached_tokens", "output_tokens", "cost_usd", "started", "task_version", "page",
)  # fmt: skip


def json_text(
    jobs: Sequence[Job], groups: Sequence[Group], notes: Sequence[str], pages: dict[tuple[str, str], str]
) -> str:
    """Everything the HTML tables show, and one object per trial."""
    content: dict[str, Any] = {
        "schema_version": 1,
        "interval": {"coverage": aggregate.LEVEL, "method": "wilson"},
        "jobs": [{"name": job.name, "trials": len(job.trials), "planned": job.planned} for job in jobs],
        "notes": list(notes),
        "groups": [_group(group) for group in groups],
        "trials": [
            {"group": group.label, **_trial(trial, pages[trial.job, trial.name])}
            for group in groups
            for trial in group.trials
        ],
    }
    return canonical_json(content)


def csv_table(groups: Sequence[Group], pages: dict[tuple[str, str], str]) -> str:
    """One line per trial."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for group in groups:
        for trial in group.trials:
            row = _csv_row(trial, pages[trial.job, trial.name])
            writer.writerow([csv_cell(row[column]) for column in CSV_COLUMNS])
    return out.getvalue()


def markdown(jobs: Sequence[Job], groups: Sequence[Group], notes: Sequence[str]) -> str:
    """The tables for a pull request or a log."""
    parts = ["# Orrery report", "Jobs: " + ", ".join(md(job.name) for job in jobs)]
    parts += [f"> {md(note)}" for note in notes]
    parts += [
        "## Results",
        "Each rate with hits/n and its 95 % interval in percent. Errors are in no mean.",
        _levels(groups),
    ]
    for group in groups:
        if group.flags:
            parts.append(
                "\n".join(
                    [f"Comparability of {md(group.label)}:", "", *(f"- {md(flag)}" for flag in group.flags)]
                )
            )
    if any(group.pass_at for group in groups):
        rows = [[md(g.label), f"{p.k}", f"{p.tasks}", percent(p.value)] for g in groups for p in g.pass_at]
        parts += ["## pass@k", _table(["agent", "k", "tasks", "pass@k"], rows)]
    parts += ["## Failures", _failures(groups)]
    parts += ["## Regression checks", _regressions(groups)]
    parts += ["## Time and cost", _costs(groups)]
    parts += ["## Trials", _trials(groups)]
    return "\n\n".join(parts) + "\n"


def _group(group: Group) -> dict[str, Any]:
    plain = asdict(group)
    del plain["trials"]
    return plain


def _trial(trial: Trial, page: str) -> dict[str, Any]:
    plain = asdict(trial)
    for key in ("criteria", "configured", "text", "last_message", "logs", "images"):
        del plain[key]
    plain["genre"] = trial.text.genre
    plain["failure_stage"] = failure_stage(trial)
    plain["criteria"] = [
        {
            "id": c.id,
            "stage": c.stage,
            "status": str(c.status),
            "reason": c.reason,
            "requirement": c.requirement,
        }
        for c in trial.criteria
    ]
    plain["page"] = f"trials/{page}"
    return plain


def _csv_row(trial: Trial, page: str) -> dict[str, Any]:
    statuses = [criterion.status for criterion in trial.criteria]
    return {
        **{
            key: getattr(trial, key)
            for key in ("job", "family", "task", "level", "reason", "reward", "started")
        },
        **{key: trial.rewards.get(key) for key in ("cpr", "built", "loaded", "preservation")},
        "trial": trial.name,
        "agent": trial.subject.agent,
        "version": trial.subject.version,
        "model": trial.subject.model,
        "options": trial.subject.options,
        "genre": trial.text.genre,
        "status": str(trial.status),
        "passed": statuses.count(Status.PASS),
        "failed": statuses.count(Status.FAIL),
        "unreached": statuses.count(Status.UNREACHED),
        "unmeasured": statuses.count(Status.ERROR),
        "failure_stage": failure_stage(trial),
        "seconds": trial.phases.get("total"),
        "agent_seconds": trial.phases.get("agent_execution"),
        "verifier_seconds": trial.phases.get("verifier"),
        **{
            key: getattr(trial.usage, key)
            for key in ("input_tokens", "cached_tokens", "output_tokens", "cost_usd")
        },
        "task_version": trial.task_version,
        "page": f"trials/{page}",
    }


def _levels(groups: Sequence[Group]) -> str:
    rows = []
    for group in groups:
        for row in group.rows:
            rows.append(
                [md(group.label), md(f"{row.family} {level(row.level)}".strip()), *_metrics(row.summary)]
            )
        rows.append([md(group.label), "**all**", *_metrics(group.overall)])
    return _table(["agent", "level", "tasks", "trials", "errors", "BSR", "CPR", "WSR", "regression"], rows)


def _metrics(summary: Summary) -> list[str]:
    rates = (summary.bsr, summary.cpr, summary.wsr, summary.regression)
    return [f"{summary.tasks}", f"{summary.trials}", f"{summary.errors}", *(_rate(rate) for rate in rates)]


def _rate(rate: Rate) -> str:
    return f"{percent(rate.value)} ({fraction(rate)}, {interval(rate)})" if rate.n else percent(None)


def _failures(groups: Sequence[Group]) -> str:
    rows = [
        [md(group.label), md(row.family), level(row.level), stage, f"{number}"]
        for group in groups
        for row in group.rows
        for stage, number in row.summary.failures.items()
    ]
    return (
        _table(["agent", "family", "level", "first failed stage", "trials"], rows)
        if rows
        else "No graded trial failed."
    )


def _regressions(groups: Sequence[Group]) -> str:
    rows = [
        [md(group.label), md(row.family), level(row.level), f"{row.tasks}", f"{row.checks}",
         f"{row.unreached}", _rate(row.rate), _rate(row.clean)]
        for group in groups
        for row in group.regressions
    ]  # fmt: skip
    header = [
        "agent",
        "family",
        "level",
        "tasks",
        "checks",
        "unreached",
        "checks passed",
        "trials all passed",
    ]
    return _table(header, rows) if rows else "No regression checks."


def _costs(groups: Sequence[Group]) -> str:
    phases = list(dict.fromkeys(name for group in groups for name in group.costs.phases))
    rows = []
    for group in groups:
        costs = group.costs
        times = [seconds(median_of(costs.phases.get(name))) for name in phases]
        usage = [
            tokens(median_of(costs.input_tokens)),
            tokens(median_of(costs.output_tokens)),
            dollars(total_of(costs.cost_usd)),
        ]
        rows.append([md(group.label), *times, *usage])
    header = [
        "agent",
        *(f"{spoken(name)} (median)" for name in phases),
        "input tokens (median)",
        "output tokens (median)",
        "cost (sum)",
    ]
    return _table(header, rows)


def _trials(groups: Sequence[Group]) -> str:
    rows = [
        [md(group.label), md(trial.task_key), level(trial.level), str(trial.status),
         percent(None) if trial.reward is None else f"{trial.reward:g}", failure_stage(trial) or "",
         seconds(trial.phases.get("total")), md(trial.reason[:200])]
        for group in groups
        for trial in group.trials
    ]  # fmt: skip
    return _table(["agent", "task", "level", "status", "reward", "failed at", "time", "reason"], rows)


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
