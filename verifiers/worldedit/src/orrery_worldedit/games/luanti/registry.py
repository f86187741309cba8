"""Canonical registry dumps and their differences (first version)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Change:
    path: str
    before: Any = None
    after: Any = None


def canonical(raw: dict[str, Any]) -> dict[str, Any]:
    return raw


def diff(vanilla: dict[str, Any], candidate: dict[str, Any]) -> list[Change]:
    return []
