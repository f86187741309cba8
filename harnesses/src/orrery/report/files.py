"""Careful reading inside one trial folder: no symlinks, bounded sizes, only what lies inside."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path

from orrery.report.model import Image, Log

MAX_JSON = 32 * 2**20
MAX_LOG = 16 * 2**10
MAX_LOG_LINES = 60
MAX_LOGS = 8
MAX_IMAGE = 512 * 2**10
MAX_IMAGES = 24
SHOWN_WIDTH = 256
LOG_SUFFIXES = (".txt", ".log")

MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
"""Leading bytes to type. Names are not believed, and SVG, which can carry script, is not shown."""


def is_plain(path: Path, root: Path) -> bool:
    """A regular file that lies under ``root`` without any symlink on the way."""
    try:
        return path.is_file() and path.resolve() == root.resolve() / path.relative_to(root)
    except (OSError, ValueError, RuntimeError):
        return False


def read(path: Path, root: Path) -> tuple[bytes | None, str]:
    """The content, or None and the reason it cannot be had."""
    if not path.exists() and not path.is_symlink():
        return None, "missing"
    if not is_plain(path, root):
        return None, "not a regular file of this trial"
    try:
        if path.stat().st_size > MAX_JSON:
            return None, f"larger than {MAX_JSON // 2**20} MiB"
        return path.read_bytes(), ""
    except OSError as problem:
        return None, f"cannot be read ({problem.strerror})"


def read_object(path: Path, root: Path) -> dict[str, object]:
    """A JSON object, or what is wrong with it under the key ``unreadable``."""
    data, problem = read(path, root)
    if data is None:
        return {"unreadable": problem}
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        return {"unreadable": "not JSON"}
    return content if isinstance(content, dict) else {"unreadable": "not a JSON object"}


def log_tails(trial_dir: Path) -> tuple[Log, ...]:
    """The ends of the logs of trial, verifier and agent, without the trial's own place on this machine."""
    candidates = [trial_dir / "exception.txt", trial_dir / "trial.log"]
    for folder in ("verifier", "agent"):
        candidates += [path for path in _walk(trial_dir / folder) if path.suffix in LOG_SUFFIXES]
    found: list[Log] = []
    for path in candidates:
        if len(found) < MAX_LOGS and is_plain(path, trial_dir):
            tail = _tail(path).replace(str(trial_dir.resolve().parent), "<job>")
            if tail.strip():
                found.append(Log(path.relative_to(trial_dir).as_posix(), tail))
    return tuple(found)


def images(folder: Path, root: Path) -> tuple[Image, ...]:
    """Raster images under ``folder``, ready to be put into a page."""
    found: list[Image] = []
    for path in _walk(folder):
        if len(found) == MAX_IMAGES:
            break
        if is_plain(path, root) and path.stat().st_size <= MAX_IMAGE:
            data = path.read_bytes()
            mime = _image_type(data)
            if mime:
                name = path.relative_to(folder).as_posix()
                found.append(
                    Image(name, mime, base64.b64encode(data).decode("ascii"), _shown_width(data, mime))
                )
    return tuple(found)


def _image_type(data: bytes) -> str:
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((mime for magic, mime in MAGIC if data.startswith(magic)), "")


def _shown_width(data: bytes, mime: str) -> int | None:
    """A small PNG enlarged by a whole factor, so that each of its pixels can be seen."""
    width = int.from_bytes(data[16:20], "big") if mime == "image/png" else 0
    return width * (SHOWN_WIDTH // width) if 0 < width <= SHOWN_WIDTH else None


def _walk(folder: Path) -> Iterator[Path]:
    if not folder.is_dir() or folder.is_symlink():
        return
    for place, directories, names in folder.walk():
        directories.sort()
        yield from (place / name for name in sorted(names))


def _tail(path: Path) -> str:
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - MAX_LOG))
        text = file.read(MAX_LOG).decode("utf-8", "replace")
    lines = text.splitlines()
    cut = size > MAX_LOG or len(lines) > MAX_LOG_LINES
    return "\n".join((["[...]"] if cut else []) + lines[-MAX_LOG_LINES:])
