"""Task directories: finding them by path or glob, and refusing those that Harbor would silently skip."""

from __future__ import annotations

import difflib
import glob
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orrery_core.errors import UserError

from orrery.paths import repo_root, shown

LEVEL = re.compile(r"l(\d)_")
MARKERS = ("task.toml", "spec.toml")


@dataclass(frozen=True, order=True)
class TaskDir:
    """One task directory; the folder above it names the family."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def family(self) -> str:
        return self.path.parent.name

    def config(self) -> dict[str, Any]:
        """`task.toml` as written; empty when it is missing or cannot be read (see `problem`)."""
        try:
            return tomllib.loads((self.path / "task.toml").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}

    @property
    def level(self) -> int | None:
        """Difficulty level: `[metadata].level`, else the `lN_` that starts the directory name."""
        level = self.config().get("metadata", {}).get("level")
        if isinstance(level, int):
            return level
        match = LEVEL.match(self.name)
        return int(match.group(1)) if match else None

    @property
    def skills_dir(self) -> str | None:
        """Where the agent finds the skills, or None where the task brings none."""
        place = self.config().get("environment", {}).get("skills_dir")
        return place if isinstance(place, str) else None

    def problem(self) -> str | None:
        """Why Harbor would not run this directory, or None. Imports Harbor's task model: half a second."""
        if not (self.path / "task.toml").is_file():
            return "task.toml is missing"
        from harbor.models.task.task import Task
        from pydantic import ValidationError

        try:
            Task(self.path)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            return f"task.toml: {where + ': ' if where else ''}{first['msg']}"
        except tomllib.TOMLDecodeError as error:
            return f"task.toml: {error}"
        except (OSError, ValueError, RuntimeError) as error:
            return str(error).replace(f"{self.path}{os.sep}", "").replace(str(self.path), "the directory")
        if not (self.path / "environment").is_dir() and not self._docker_image():
            return "environment/ is missing and [environment].docker_image is not set"
        return None

    def _docker_image(self) -> str | None:
        image = self.config().get("environment", {}).get("docker_image")
        return image if isinstance(image, str) else None


def is_task(path: Path) -> bool:
    return any((path / marker).is_file() for marker in MARKERS)


def find_tasks(patterns: Sequence[str]) -> list[TaskDir]:
    """Every task directory that the patterns name, sorted and without repeats.

    A pattern is a task directory, a folder of tasks at any depth, or a glob (`**` included), relative to the
    current folder and, when nothing is there, to the checkout.

    Raises:
        UserError: a pattern matches nothing, or matches a folder without a task in it.
    """
    found: set[TaskDir] = set()
    for pattern in patterns:
        found.update(_expand_pattern(pattern))
    return sorted(found)


def _expand_pattern(pattern: str) -> list[TaskDir]:
    matches = _match(pattern)
    folders = [path for path in matches if path.is_dir()]
    if "**" in pattern:  # matches the insides of tasks too; only whole tasks count
        tasks = [TaskDir(path.resolve()) for path in folders if is_task(path)]
    else:
        tasks = [task for folder in folders for task in _inside(folder.resolve())]
    if tasks:
        return tasks
    if matches and not folders:
        raise UserError(
            f"{pattern}: is a file, not a task directory", mend="give the directory that holds task.toml"
        )
    raise UserError(f"{pattern}: no task directory matches", mend=_near_names(pattern))


def _match(pattern: str) -> list[Path]:
    here = Path.cwd()
    bases = [here]
    if not Path(pattern).is_absolute():
        try:
            root = repo_root(here)
        except UserError:
            pass
        else:
            bases += [root, root / "tasks"]
    for base in bases:  # Path.glob takes no absolute patterns
        hits = sorted(glob.glob(pattern, root_dir=base, recursive=True))  # noqa: PTH207
        if hits:
            return [base / hit for hit in hits]
    return []


def _inside(folder: Path) -> list[TaskDir]:
    if is_task(folder):
        return [TaskDir(folder)]
    children = [
        child for child in sorted(folder.iterdir()) if child.is_dir() and not child.name.startswith(".")
    ]
    if not any(_holds_task(child) for child in children):
        raise UserError(
            f"{shown(folder)}: not a task directory (it has neither task.toml nor spec.toml) and holds none",
            mend="give a task directory, a folder of tasks or a glob; `orrery ls` lists all tasks",
        )
    return [task for child in children for task in _inside(child)]


def _holds_task(folder: Path) -> bool:
    return any(is_task(Path(parent)) for parent, _, _ in os.walk(folder))


def _near_names(pattern: str) -> str:
    known = {shown(task.path): task for task in all_tasks()}
    if not known:
        return "there are no tasks here; change into the checkout"
    wanted = pattern.rstrip("/*").rsplit("/", 1)[-1]
    names = {task.name: path for path, task in known.items()}
    near = [names[name] for name in difflib.get_close_matches(wanted, names, n=3, cutoff=0.5)]
    near += difflib.get_close_matches(pattern, known, n=3, cutoff=0.6)
    if near:
        return "did you mean " + " or ".join(dict.fromkeys(near)) + "?"
    return "`orrery ls` lists all tasks"


def all_tasks() -> list[TaskDir]:
    """Every task of the checkout; empty outside of one."""
    try:
        root = repo_root()
    except UserError:
        return []
    return sorted(_walk(root / "tasks"))


def _walk(folder: Path) -> Iterator[TaskDir]:
    if is_task(folder):
        yield TaskDir(folder.resolve())
        return
    for child in folder.iterdir():
        if child.is_dir() and not child.name.startswith("."):
            yield from _walk(child)


def require_valid(tasks: Iterable[TaskDir]) -> None:
    """Refuses directories that Harbor would skip without a word.

    Raises:
        UserError: names every invalid directory with its reason.
    """
    bad = [(task, problem) for task in tasks if (problem := task.problem()) is not None]
    if not bad:
        return
    lines = "\n".join(f"  {shown(task.path)}: {problem}" for task, problem in bad)
    missing_render = [task for task, _ in bad if not (task.path / "task.toml").exists()]
    mend = (
        "orrery render " + " ".join(shown(task.path) for task in missing_render)
        if missing_render
        else "mend the files named, or leave these directories out"
    )
    noun = "directory is not a valid task" if len(bad) == 1 else "directories are not valid tasks"
    raise UserError(f"{len(bad)} {noun}:\n{lines}", mend=mend)
