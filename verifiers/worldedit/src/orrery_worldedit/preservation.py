"""Which registry changes a task allows; everything else is a broken promise to leave the game alone."""

from __future__ import annotations

import re
from functools import cache

from orrery_worldedit.evidence import Change
from orrery_worldedit.spec import Preservation

MACHINERY = ("abms", "lbms", "callbacks", "detached", "mod_functions", "mods")
"""Registries that may always grow.

How a mod works inside is its own business. Changed or removed entries still count.
"""


@cache
def _pattern(glob: str) -> re.Pattern[str]:
    parts = (re.escape(p).replace(r"\*\*", ".*").replace(r"\*", "[^/]*") for p in [glob])
    return re.compile("".join(parts) + r"(/.*)?")


def matches(glob: str, path: str) -> bool:
    """Whether a glob covers a path: `*` within one level, `**` over several, and everything below a match."""
    return _pattern(glob).fullmatch(path) is not None


def offending(changes: list[Change], rules: Preservation, mod_name: str) -> list[Change]:
    """The changes that the task does not allow.

    Args:
        changes: registry diff, vanilla to candidate.
        rules: what the spec allows.
        mod_name: additions count as the mod's own when their registered name carries its prefix.
    """
    return [change for change in changes if not _allowed(change, rules, mod_name)]


def _allowed(change: Change, rules: Preservation, mod_name: str) -> bool:
    registry = change.path.partition("/")[0]
    if change.before is None and registry in MACHINERY:
        return True
    if change.before is None and registry in rules.new and _own(change.path, registry, mod_name):
        return True
    return any(matches(glob, change.path) for glob in rules.allow)


def _own(path: str, registry: str, mod_name: str) -> bool:
    """Whether an added entry is named after the mod; recipes and commands carry no prefix of their own."""
    if registry in ("items", "entities", "recipes", "cooking", "fuel"):
        return path.split("/")[1].lstrip(":").startswith(f"{mod_name}:")
    return True
