"""Small task specs for tests, none of them part of the library."""

from __future__ import annotations

from typing import Any

from orrery_worldedit.spec import TaskSpec


def check(**changes: Any) -> dict[str, Any]:
    """A state check that measures one node."""
    return {
        "id": "there",
        "stage": "state",
        "requirement": 1,
        "action": "looks",
        "subject": "a node",
        "outcome": "it is stone",
        "measurement": [{"do": "node", "at": [0, 0, 0], "as": "seen"}],
        "acceptance": ["seen == 'default:stone'"],
        **changes,
    }


def raw(**changes: Any) -> dict[str, Any]:
    """A whole spec as data, with one check."""
    return {
        "schema_version": 1,
        "id": "l1_test",
        "family": "luanti",
        "level": 1,
        "genre": "crafting",
        "title": "A task for tests",
        "request": "Make it stone.",
        "requirements": ["It is stone."],
        "mod": {"name": "cand"},
        "checks": [check()],
        **changes,
    }


def spec(**changes: Any) -> TaskSpec:
    return TaskSpec.model_validate(raw(**changes))
