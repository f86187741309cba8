"""SVG by hand, in small pure functions. Lengths are percentages, so that a plot fits any width."""

from __future__ import annotations

from collections.abc import Mapping

from markupsafe import Markup, escape

from orrery.report.aggregate import Rate, stage_order
from orrery.report.text import clean, fraction, interval, percent

HEIGHT = 22
GRID = (25, 50, 75)
SERIES = 8
"""Colours that the style sheet has for agents."""


def bar(rate: Rate, label: str, series: int = 1) -> Markup:
    """A bar from 0 to the rate with its interval as a whisker, on a track from 0 to 100 %."""
    if rate.value is None or rate.low is None or rate.high is None:
        return _svg(f"{label}: not measured", [*_track(), _text(50, "not measured")])
    middle = HEIGHT / 2
    low, high = 100 * rate.low, 100 * rate.high
    parts = [
        *_track(),
        _rect(f"bar s{series}", 0, 100 * rate.value, inset=4),
        f'<line class="whisker" x1="{_p(low)}" x2="{_p(high)}" y1="{middle:g}" y2="{middle:g}"/>',
        *(f'<line class="whisker" x1="{_p(x)}" x2="{_p(x)}" y1="7" y2="{HEIGHT - 7}"/>' for x in (low, high)),
    ]
    title = f"{label}: {percent(rate.value)} ({fraction(rate)}), 95 % interval {interval(rate)} %"
    return _svg(title, parts)


def stacked(counts: Mapping[str, int], total: int, label: str) -> Markup:
    """One bar of ``total`` trials, cut into failures by stage; what remains is solved."""
    if total == 0:
        return _svg(f"{label}: no graded trial", [*_track(), _text(50, "no graded trial")])
    parts = list(_track(grid=False))
    left = 0.0
    for stage in sorted(counts, key=failure_order):
        width = 100 * counts[stage] / total
        parts.append(_rect(_stage_class(stage), left, width))
        if width >= 4:
            parts.append(_text(left + width / 2, str(counts[stage]), "count"))
        left += width
    solved = total - sum(counts.values())
    if solved:
        parts += [_rect("solved", left, 100 - left), _text((left + 100) / 2, str(solved), "count")]
    spoken = ", ".join(f"{stage} {counts[stage]}" for stage in sorted(counts, key=failure_order))
    return _svg(f"{label}: {total} trials, {spoken or 'no failure'}, solved {solved}", parts)


def failure_order(stage: str) -> tuple[int, tuple[int, str]]:
    """Rejected first, then stages in order, then what has no stage."""
    return ({"rejected": 0, "unplaced": 2}.get(stage, 1), stage_order(stage))


def _stage_class(stage: str) -> str:
    known = ("rejected", "build", "load", "behaviour", "regression", "integrity", "visual")
    return f"f-{stage}" if stage in known else "f-other"


def _track(grid: bool = True) -> list[str]:
    parts = [_rect("track", 0, 100)]
    if grid:
        parts += [f'<line class="grid" x1="{x}%" x2="{x}%" y1="1" y2="{HEIGHT - 1}"/>' for x in GRID]
    return parts


def _rect(kind: str, x: float, width: float, inset: int = 1) -> str:
    height = HEIGHT - 2 * inset
    return f'<rect class="{kind}" x="{_p(x)}" y="{inset}" width="{_p(width)}" height="{height}" rx="2"/>'


def _text(x: float, text: str, kind: str = "quiet") -> str:
    place = f'x="{_p(x)}" y="{HEIGHT / 2:g}" text-anchor="middle" dominant-baseline="central"'
    return f'<text class="{kind}" {place}>{escape(text)}</text>'


def _p(value: float) -> str:
    return f"{value:.2f}%"


def _svg(title: str, parts: list[str]) -> Markup:
    title = clean(title)
    return Markup(  # noqa: S704 - every part is made here, from numbers and escaped text
        f'<svg class="plot" width="100%" height="{HEIGHT}" role="img" aria-label="{escape(title)}">'
        f"<title>{escape(title)}</title>{''.join(parts)}</svg>"
    )
