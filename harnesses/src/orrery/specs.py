"""The spec of a task, read by the package that owns its family."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orrery_core.errors import UserError

from orrery.paths import shown
from orrery.tasks import TaskDir

if TYPE_CHECKING:
    from orrery_worldedit.spec import TaskSpec


def read_spec(task: TaskDir) -> TaskSpec:
    """Reads `spec.toml` of a world-editing task.

    Raises:
        UserError: there is none, or it is malformed; every problem is named with its field.
    """
    from orrery_worldedit.spec import load_spec

    path = task.path / "spec.toml"
    if not path.exists():
        raise UserError(
            f"{shown(task.path)}: has no spec.toml", mend="write one; CONTRIBUTING.md describes it"
        )
    return load_spec(path)
