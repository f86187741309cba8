"""What a task directory says, where it is on this machine: request, requirements, meaning of each check."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from orrery.report.model import TaskText

BEHAVIOUR = ("actor", "action", "subject", "provenance", "context", "timing", "outcome")


class _Check(BaseModel):
    """Any family's check: its id and whichever behaviour fields it states."""

    model_config = ConfigDict(extra="allow")

    id: str


class _Spec(BaseModel):
    level: int | None = None
    genre: str = ""
    request: str = ""
    requirements: tuple[str, ...] = ()
    checks: tuple[_Check, ...] = ()


class _Metadata(BaseModel):
    level: int | None = None
    genre: str = ""
    domain: str = ""


class _TaskToml(BaseModel):
    metadata: _Metadata = _Metadata()


def read(task_path: str | None) -> TaskText:
    """The task's words; empty where directory or field are missing: a report must not need the task."""
    if not task_path:
        return TaskText()
    folder = Path(task_path)
    spec = _parse(folder / "spec.toml", _Spec) or _Spec()
    metadata = (_parse(folder / "task.toml", _TaskToml) or _TaskToml()).metadata
    return TaskText(
        level=spec.level if spec.level is not None else metadata.level,
        genre=spec.genre or metadata.genre or metadata.domain,
        request=spec.request or _instruction(folder),
        requirements=spec.requirements,
        behaviours={check.id: _behaviour(check) for check in spec.checks},
    )


def level_of_name(task: str) -> int | None:
    """The level that a directory name such as ``l3_beacon`` states."""
    match = re.match(r"l(\d)_", task)
    return int(match[1]) if match else None


def _parse[M: BaseModel](path: Path, model: type[M]) -> M | None:
    try:
        return model.model_validate(tomllib.loads(path.read_text()))
    except (OSError, ValueError, ValidationError):
        return None


def _instruction(folder: Path) -> str:
    try:
        return (folder / "instruction.md").read_text()
    except (OSError, ValueError):
        return ""


def _behaviour(check: _Check) -> dict[str, str]:
    extra = check.model_extra or {}
    return {key: str(extra[key]) for key in BEHAVIOUR if extra.get(key)}
