"""A small labelled task, hostile submissions to it, and what must hold after every one of them."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest
from orrery_core.reports import read_outcome
from orrery_core.results import Report, Status, TrialStatus
from orrery_worldedit.games.luanti import adapter
from orrery_worldedit.spec import TaskSpec
from orrery_worldedit.verify import verify

MODS = Path(__file__).with_name("mods")
HONEST = 'core.override_item("default:apple", {stack_max = 5})\n'
CONF = "name = cand\ndepends = default\n"

_STACK_OF_FIVE = {
    "id": "stack_of_five",
    "stage": "state",
    "requirement": 1,
    "action": "receives the item definitions",
    "subject": "default:apple",
    "outcome": "five fit on a stack",
    "measurement": [{"do": "definition", "player": "alice", "item": "default:apple", "as": "apple"}],
    "acceptance": ["apple.stack_max == 5"],
}
_EATING = {
    "id": "eating_heals",
    "stage": "regression",
    "requirement": 2,
    "action": "eats",
    "subject": "default:apple",
    "outcome": "two health, as in the unmodified game",
    "fixture": [
        {"do": "set_hp", "player": "alice", "hp": 10},
        {"do": "give", "player": "alice", "item": "default:apple", "slot": 1},
    ],
    "trigger": [
        {"do": "hold", "player": "alice", "item": "default:apple"},
        {"do": "use", "player": "alice"},
    ],
    "measurement": [{"do": "hp", "player": "alice", "as": "hp"}],
    "acceptance": ["hp == vanilla.hp", "hp == 12"],
}
_DIGGING = {
    "id": "digging_stone",
    "stage": "regression",
    "requirement": 2,
    "action": "digs",
    "subject": "default:stone with default:pick_steel",
    "outcome": "as long as in the unmodified game, and a cobblestone",
    "players": ["alice", "bob"],
    "fixture": [
        {"do": "set_node", "at": [0, 0, 0], "node": "default:stone"},
        {"do": "give", "player": "alice", "item": "default:pick_steel", "slot": 1},
    ],
    "trigger": [
        {"do": "hold", "player": "alice", "item": "default:pick_steel"},
        {"do": "dig", "player": "alice", "at": [0, 0, 0], "as": "dig"},
        {"do": "say", "player": "bob", "text": "hello", "as": "answer"},
    ],
    "measurement": [
        {"do": "physics", "player": "alice", "as": "physics"},
        {"do": "hud", "player": "alice", "as": "hud"},
        {"do": "definition", "player": "alice", "item": "default:pick_steel", "as": "pick"},
        {"do": "node_definition", "player": "alice", "node": "default:stone", "as": "stone"},
    ],
    "acceptance": [
        "dig == vanilla.dig",
        "physics == vanilla.physics",
        "hud == vanilla.hud",
        "pick == vanilla.pick",
        "stone == vanilla.stone",
    ],
}
_AFTER_RESTART = {
    "id": "after_restart",
    "stage": "regression",
    "requirement": 2,
    "action": "comes back after a restart",
    "subject": "a chest",
    "outcome": "it is still there, and so is the player's inventory",
    "fixture": [
        {"do": "set_node", "at": [1, 0, 1], "node": "default:chest"},
        {"do": "give", "player": "alice", "item": "default:cobble", "count": 3},
    ],
    "trigger": [{"do": "restart"}],
    "measurement": [
        {"do": "node", "at": [1, 0, 1], "as": "chest"},
        {"do": "inventory", "player": "alice", "as": "has"},
    ],
    "acceptance": ["chest == 'default:chest'", "has['default:cobble'] == 3"],
}


def task(*, restart: bool = False) -> TaskSpec:
    """Made for these tests: apples stack to five and nothing else changes."""
    return TaskSpec.model_validate(
        {
            "schema_version": 1,
            "id": "l1_attack_target",
            "family": "luanti",
            "level": 1,
            "genre": "crafting",
            "title": "Test task, not part of the library",
            "request": "Apples shall stack to five.",
            "requirements": ["Five apples fit on a stack.", "Everything else stays."],
            "mod": {"name": "cand"},
            "preservation": {
                "allow": ["items/default:apple/stack_max", "items/default:apple/engine/stack_max"]
            },
            "subjects": [{"id": "pie", "kind": "item", "words": [["pie"]]}],
            "checks": [_STACK_OF_FIVE, _EATING, _DIGGING, *([_AFTER_RESTART] if restart else [])],
        }
    )


def write_mod(
    folder: Path, code: str, conf: str = CONF, files: Mapping[str, str | bytes] | None = None
) -> Path:
    folder.mkdir(parents=True)
    (folder / "mod.conf").write_text(conf)
    (folder / "init.lua").write_text(code)
    for name, content in (files or {}).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def code(group: str, name: str) -> str:
    """One of the hostile pieces of Lua beside this."""
    return (MODS / group / f"{name}.lua").read_text()


def group(name: str, sample: int | None = None) -> list[Any]:
    """All pieces of a group as parameters; beyond a seeded sample only for a full run."""
    names = sorted(path.stem for path in (MODS / name).glob("*.lua"))
    usual = names if sample is None else Random(name).sample(names, sample)
    return [pytest.param(one, marks=[] if one in usual else [pytest.mark.full]) for one in names]


def judged(tmp_path: Path, mod: Path, spec: TaskSpec | None = None) -> Report:
    """Verify a submission, and hold that it ended with a verdict and left nothing behind."""
    spec = spec or task()
    work, out = tmp_path / "work", tmp_path / "out"
    work.mkdir()
    children = _children()
    report = verify(spec, mod, out, work)
    assert report.status is not TrialStatus.ERROR, report.reason
    assert [criterion.id for criterion in report.criteria] == spec.criteria
    assert read_outcome(out) == report
    for criterion in report.criteria:
        if criterion.status is not Status.PASS:
            assert (
                criterion.reason and "Traceback" not in criterion.reason and str(work) not in criterion.reason
            )
    assert _children() == children, "a process was left"
    assert str(tmp_path) not in Path("/proc/self/mounts").read_text(), "a mount was left"
    assert not list(work.glob("*/*")), "a world was left"
    assert max(path.stat().st_size for path in out.iterdir()) < 64 << 20
    return report


def attacked(tmp_path: Path, code: str, spec: TaskSpec | None = None, **parts: Any) -> Report:
    """The report on a mod with this code, which must not earn anything."""
    report = judged(tmp_path, write_mod(tmp_path / "mod", code, **parts), spec)
    assert report.reward == 0.0 and report.rewards["reward"] == 0.0
    return report


def status(report: Report, name: str) -> Status:
    return next(criterion.status for criterion in report.criteria if criterion.id == name)


def reason(report: Report, name: str) -> str:
    return next(criterion.reason for criterion in report.criteria if criterion.id == name)


def hurry(patch: pytest.MonkeyPatch, arm_s: float = 120.0, **limits: float) -> None:
    """Shorter patience with servers that hang than a real verification has."""
    usual = adapter.limits

    def hasty(wall_s: float) -> adapter.ServerLimits:
        return dataclasses.replace(usual(wall_s), **{"load_s": 25.0, "step_s": 10.0, **limits})

    patch.setattr(adapter, "limits", hasty)
    patch.setattr(adapter, "ARM_S", arm_s)


def _children() -> set[int]:
    found: set[int] = set()
    for task_id in os.listdir("/proc/self/task"):
        try:
            found |= set(map(int, Path(f"/proc/self/task/{task_id}/children").read_text().split()))
        except OSError:
            continue
    return found
