"""Where the library of tasks lies."""

from __future__ import annotations

from pathlib import Path

from orrery_core.errors import UserError


def repo_root(start: Path | None = None) -> Path:
    """The checkout that holds `tasks/`: the nearest above `start` (default: current folder), else our own.

    Raises:
        UserError: neither place is inside a checkout.
    """
    here = (start or Path.cwd()).resolve()
    own = Path(__file__).resolve().parents[3]
    for folder in (here, *here.parents, own):
        if (folder / "tasks").is_dir() and (folder / "harnesses").is_dir():
            return folder
    raise UserError(
        f"no Orrery checkout above {here}",
        mend="change into the checkout, or give task paths that exist here",
    )


def shown(path: Path) -> str:
    """`path` as a person would type it: relative to the current folder or the checkout if inside."""
    path = path.resolve()
    for base in (Path.cwd().resolve(), Path(__file__).resolve().parents[3]):
        if path.is_relative_to(base):
            return path.relative_to(base).as_posix() or "."
    return path.as_posix()
