"""The table at the end of a run: per family and level, with n beside every mean."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from orrery_core.results import pass_rate

from orrery.jobs import TrialOutcome

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

PIPED_WIDTH = 160
WORLD_EDITING = {"reward", "cpr", "built"}


def console() -> Console:
    """Standard output for tables; wide where it is no terminal, so that nothing is cut."""
    from rich.console import Console

    return Console(highlight=False, width=None if sys.stdout.isatty() else PIPED_WIDTH)


@dataclass(frozen=True)
class Column:
    """A mean over the trials that count (scored or rejected)."""

    title: str
    value: Callable[[TrialOutcome], float | None]
    percent: bool = True

    def cell(self, outcomes: Sequence[TrialOutcome]) -> str:
        values = [
            value for outcome in outcomes if outcome.counts and (value := self.value(outcome)) is not None
        ]
        if not values:
            return "-"
        mean = fmean(values)
        return f"{100 * mean:.1f} %" if self.percent else f"{mean:.3g}"


def _key(title: str, key: str, *, percent: bool = True) -> Column:
    return Column(title, lambda outcome: outcome.rewards.get(key), percent)


def _regression(outcome: TrialOutcome) -> float | None:
    criteria = outcome.report.criteria if outcome.report else ()
    if not any(item.stage == "regression" for item in criteria):
        return None
    return pass_rate(criteria, ("regression",))


def columns(outcomes: Iterable[TrialOutcome]) -> list[Column]:
    """The paper's rates for world editing; for any other family its own reward keys, `reward` first."""
    keys = list(dict.fromkeys(key for outcome in outcomes for key in outcome.rewards))
    if set(keys) >= WORLD_EDITING:
        wsr = Column("WSR", lambda outcome: float(outcome.solved))
        return [_key("BSR", "built"), _key("CPR", "cpr"), wsr, Column("regression", _regression)]
    return [_key(key, key, percent=False) for key in keys]


def summary(outcomes: Sequence[TrialOutcome]) -> list[Table]:
    """One table per family: a row per level and one for all; seconds are the mean of a whole trial."""
    families = sorted({outcome.family for outcome in outcomes})
    return [_family_table(name, [item for item in outcomes if item.family == name]) for name in families]


def _family_table(family: str, outcomes: Sequence[TrialOutcome]) -> Table:
    from rich import box
    from rich.table import Table

    means = columns(outcomes)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in (family, "tasks", "n", *(column.title for column in means), "seconds", "errors"):
        table.add_column(title, justify="left" if title == family else "right", no_wrap=True)
    levels = sorted({outcome.level for outcome in outcomes}, key=lambda level: (level is None, level or 0))
    for level in levels:
        rows = [outcome for outcome in outcomes if outcome.level == level]
        table.add_row(*_row("-" if level is None else f"L{level}", rows, means))
    table.add_section()
    table.add_row(*_row("all", outcomes, means))
    return table


def _row(label: str, outcomes: Sequence[TrialOutcome], means: Sequence[Column]) -> list[str]:
    counted = [outcome for outcome in outcomes if outcome.counts]
    return [
        label,
        str(len({outcome.task for outcome in outcomes})),
        str(len(counted)),
        *(column.cell(outcomes) for column in means),
        f"{fmean(outcome.seconds for outcome in outcomes):.1f}",
        str(len(outcomes) - len(counted)),
    ]
