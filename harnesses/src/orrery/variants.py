"""Altered copies of task directories, kept beside the jobs: without skills, or with a mutant as the solution.

Harbor runs them like any task, on every environment, so that what is tested is the path that agents take.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

from orrery_core.errors import UserError

from orrery.tasks import TaskDir

FOLDER = ".variants"


def without_skills(task: TaskDir, jobs_dir: Path) -> TaskDir:
    """The task with an empty `environment/skills`, and with nothing that speaks of it.

    The folder stays, because the Dockerfile copies it. The `skills_dir` of task.toml and the lines of the
    instruction that name that place go.
    """
    place = task.skills_dir

    def clear(copy: Path) -> None:
        skills = copy / "environment" / "skills"
        if skills.is_dir():
            shutil.rmtree(skills)
            skills.mkdir()
        if place:
            _drop_lines(copy / "task.toml", "skills_dir")
            _drop_lines(copy / "instruction.md", f"`{place}`")

    return _variant(task, jobs_dir, "no-skills", task.name, clear)


def _drop_lines(path: Path, word: str) -> None:
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(line for line in lines if word not in line), encoding="utf-8")


def with_mutant(task: TaskDir, mutant: str, jobs_dir: Path) -> TaskDir:
    """The task, as `<task>--<mutant>`, whose solution has the files of `mutants/<mutant>` laid over it."""
    overlay = task.path / "mutants" / mutant
    solution = task.path / "solution" / "mod"
    for folder in (overlay, solution):
        if not folder.is_dir():
            raise UserError(
                f"{folder}: no such folder", mend="every mutant of spec.toml has its folder of files"
            )

    def lay_over(copy: Path) -> None:
        shutil.copytree(overlay, copy / "solution" / "mod", dirs_exist_ok=True)

    return _variant(task, jobs_dir, "mutants", f"{task.name}--{mutant}", lay_over)


def _variant(task: TaskDir, jobs_dir: Path, label: str, name: str, change: Callable[[Path], None]) -> TaskDir:
    """A changed copy at `<jobs>/.variants/<label>-<content hash>/<family>/<name>`, made once per content."""
    digest = _content_hash(task.path)
    target = jobs_dir.resolve() / FOLDER / f"{label}-{digest}" / task.family / name
    if not target.exists():
        scratch = target.with_name(f".{name}.part")
        shutil.rmtree(scratch, ignore_errors=True)
        shutil.copytree(task.path, scratch, symlinks=True)
        change(scratch)
        scratch.rename(target)
    return TaskDir(target)


def _content_hash(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0")
        if path.is_symlink():
            digest.update(path.readlink().as_posix().encode())
        elif path.is_file():
            digest.update(oct(path.stat().st_mode & 0o777).encode() + path.read_bytes())
    return digest.hexdigest()[:12]
