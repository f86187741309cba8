"""The pictures of the unmodified game, by digest: a submission that re-uses one has not drawn its own."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

PICTURES = ("*.png", "*.jpg", "*.tga")


@cache
def vanilla_digests(*folders: Path) -> frozenset[str]:
    """Hexadecimal SHA-1 digests, as the media list carries them, of every picture below the given folders."""
    found = (path for folder in folders for pattern in PICTURES for path in folder.rglob(pattern))
    return frozenset(hashlib.sha1(path.read_bytes()).hexdigest() for path in found)  # noqa: S324
