"""Folders that hostile programs have written to, and how to be rid of them."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A private temporary folder, gone afterwards with everything in it."""
    folder = Path(tempfile.mkdtemp(prefix="orrery-"))
    try:
        yield folder
    finally:
        remove(folder)


def remove(path: Path) -> None:
    """Delete a tree of any shape.

    By `rm`, which goes down as far as a tree does; Python's own walk ends at its recursion limit, and a mod
    can make folders deeper than that.
    """
    subprocess.run(["rm", "-rf", "--", str(path)], check=False, capture_output=True)
