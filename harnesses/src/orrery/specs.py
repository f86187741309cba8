"""The spec of a task, read by the package that owns its family."""

from __future__ import annotations

from typing import Any

from orrery_core.errors import UserError

from orrery.families import SPEC, family_of
from orrery.paths import shown
from orrery.tasks import TaskDir


def read_spec(task: TaskDir) -> Any:
    """Reads the `spec.toml` of a task; gives the spec model of its family.

    Raises:
        UserError: there is none, or it is malformed; every problem is named with its field.
    """
    path = task.path / SPEC
    if not path.exists():
        raise UserError(
            f"{shown(task.path)}: has no spec.toml", mend="write one; CONTRIBUTING.md describes it"
        )
    return family_of(path).load_spec(path)
