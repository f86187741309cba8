"""Which registry changes a task allows; everything else is a broken promise to leave the game alone."""

from __future__ import annotations

import re
from functools import cache

from orrery_worldedit.evidence import Change
from orrery_worldedit.spec import Preservation

MACHINERY = ("abms", "lbms", "callbacks", "detached", "mod_functions", "mods")
"""Registries that may always grow.

How a mod works inside is its own business. Changed or removed entries, and what is added to an entry of the
game, still count.
"""
_PREFIXED = ("items", "entities", "recipes", "cooking", "fuel")
"""Named after the mod, or after an item of the mod."""
_SIGNED = ("abms", "lbms", "commands")
"""Entries say which mod registered them."""
_FLAT = ("privileges", "detached", "mods")
"""Entries are one level deep, everything below is part of one."""


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
    may_grow = registry in MACHINERY or registry in rules.new
    if change.before is None and may_grow and _own(change, registry, mod_name):
        return True
    return any(matches(glob, change.path) for glob in rules.allow)


def _own(change: Change, registry: str, mod_name: str) -> bool:
    """Whether an addition is a whole entry of the mod's own, as far as the registry tells."""
    name = change.path.partition("/")[2]
    if registry in _PREFIXED:
        return name.removeprefix(":").startswith(f"{mod_name}:")
    if registry in _SIGNED:
        return isinstance(change.after, dict) and change.after.get("mod_origin") == mod_name
    if registry in _FLAT:
        return bool(name) and "/" not in name
    return True
