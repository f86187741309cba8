"""Numbers and hostile strings as a person reads them. Pure."""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Any

from orrery.report.aggregate import Quantity, Rate

DASH = "—"
MAX_TEXT = 20_000
"""Longest piece of evidence or log shown, in characters."""

ANSI = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
SPOKEN = {
    "environment_setup": "environment",
    "agent_setup": "agent set-up",
    "agent_execution": "agent",
    "verifier": "verifier",
    "total": "whole trial",
}


def clean(text: str) -> str:
    """Terminal colours removed; control characters and those that turn the writing direction made visible."""
    return "".join(_visible(char) for char in ANSI.sub("", text.replace("\r\n", "\n")))


def _visible(char: str) -> str:
    if char in "\n\t" or unicodedata.category(char) not in ("Cc", "Cf", "Cs"):
        return char
    return f"\\u{ord(char):04x}"


def shorten(text: str, limit: int = MAX_TEXT) -> str:
    return text if len(text) <= limit else f"{text[:limit]}\n[... {len(text) - limit} more characters]"


def percent(value: float | None) -> str:
    """``0.875`` as ``87.5 %``; never 100 or 0 for something that is not exactly that."""
    if value is None:
        return DASH
    if 0 < value < 1:
        return f"{min(max(100 * value, 0.1), 99.9):.1f} %"
    return f"{100 * value:.0f} %"


def interval(rate: Rate) -> str:
    """``52.9–97.8`` (percent), empty without data."""
    if rate.low is None or rate.high is None:
        return ""
    return f"{100 * rate.low:.1f}–{100 * rate.high:.1f}"


def fraction(rate: Rate) -> str:
    """``7/8``, or ``n = 8`` for a mean."""
    return f"n = {rate.n}" if rate.is_mean or rate.n == 0 else f"{rate.hits:.0f}/{rate.n}"


def number(value: float | None, digits: int = 2) -> str:
    if value is None:
        return DASH
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.{digits}f}"


def seconds(value: float | None) -> str:
    """``0.4 s``, ``73 s``, ``12 min 5 s``."""
    if value is None:
        return DASH
    if value < 10:
        return f"{value:.1f} s"
    whole = round(value)
    return f"{whole} s" if whole < 120 else f"{whole // 60} min {whole % 60} s"


def tokens(value: float | None) -> str:
    """``950``, ``12.3 k``, ``1.25 M``."""
    if value is None:
        return DASH
    if value < 1000:
        return f"{value:.0f}"
    return f"{value / 1e3:.1f} k" if value < 1e6 else f"{value / 1e6:.2f} M"


def dollars(value: float | None) -> str:
    return DASH if value is None else f"$ {value:.2f}" if value >= 0.01 or value == 0 else f"$ {value:.4f}"


def median_of(quantity: Quantity | None) -> float | None:
    return quantity.median if quantity else None


def total_of(quantity: Quantity | None) -> float | None:
    return quantity.total if quantity else None


def spoken(name: str) -> str:
    """A field name as words."""
    return SPOKEN.get(name, name.replace("_", " "))


def level(value: int | None) -> str:
    return f"L{value}" if value is not None else "no level"


def pretty(value: Any) -> str:
    """Evidence as text: scalars as they are, everything else as JSON that fits the line where it can."""
    if isinstance(value, str):
        return shorten(value)
    one_line = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return (
        one_line
        if len(one_line) <= 100
        else shorten(json.dumps(value, sort_keys=True, ensure_ascii=False, indent=2))
    )


def markdown(text: str) -> str:
    """Plain text for a Markdown table cell: no markup, no HTML, no links, one line."""
    line = " ".join(clean(text).split())
    line = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_\[\]|#!~])", r"\\\1", line)


def csv_cell(value: Any) -> Any:
    """Text that a spreadsheet would run as a formula gets a leading apostrophe."""
    if isinstance(value, str):
        value = clean(value)
        return f"'{value}" if value[:1] in ("=", "+", "-", "@", "\t") else value
    return value


def slug(name: str, taken: set[str]) -> str:
    """A file name of letters, digits, dot, dash and underscore that is not in ``taken``; adds it there."""
    base = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:100] or "trial"
    candidate, count = base, 1
    while candidate.lower() in taken:
        count += 1
        candidate = f"{base}-{count}"
    taken.add(candidate.lower())
    return candidate
