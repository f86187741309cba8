"""What goes over a root to make an image, and the hashes that say whether a copy of it is current."""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
from collections.abc import Iterator
from pathlib import Path

from orrery_core.errors import UserError

from orrery.images.files import image_file, image_folder, known_roots, root_of

# `-P` keeps a hostile working folder off the module path.
_WRAPPER = """#!/bin/sh
export PYTHONPATH=/opt/orrery/src:/opt/orrery/site PYTHONNOUSERSITE=1
exec /opt/orrery/python/bin/python3 -P -m {module} "$@"
"""
_FOLDERS = {
    "app": 0o755,
    "tests": 0o755,
    "logs": 0o755,
    "logs/agent": 0o777,
    "logs/verifier": 0o777,
    "logs/artifacts": 0o777,
}


def stage(name: str, target: Path) -> None:
    """Writes the layer of an image: the file tree that goes over its root."""
    image = image_file(name)
    for folder, mode in _FOLDERS.items():
        (target / folder).mkdir(parents=True, exist_ok=True)
        (target / folder).chmod(mode)
    for package in image.packages:
        for source, relative in _package_files(package):
            copy = target / "opt/orrery/src" / relative
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, copy)
            copy.chmod(0o644)
    (target / "opt/orrery").mkdir(parents=True, exist_ok=True)
    (target / "opt/orrery/python").symlink_to("/usr")
    commands = target / "usr/local/bin"
    commands.mkdir(parents=True)
    for command in image.commands:
        path = commands / command
        path.write_text(_WRAPPER.format(module=command.replace("-", "_")))
        path.chmod(0o755)


def content_hash(name: str) -> str:
    """Of everything an image is built from, its root's definition included."""
    digest = hashlib.sha256(root_hash(root_of(name)).encode())
    folder = image_folder(name)
    for path in (folder / "Dockerfile", folder / "image.toml", Path(__file__)):
        digest.update(path.read_bytes() + b"\0")
    for package in image_file(name).packages:
        for source, relative in _package_files(package):
            digest.update(f"{relative}\0".encode() + source.read_bytes() + b"\0")
    return digest.hexdigest()


def root_hash(name: str) -> str:
    folder = known_roots()[name]
    return hashlib.sha256(
        (folder / "root.toml").read_bytes() + (folder / "Dockerfile").read_bytes()
    ).hexdigest()


def _package_files(package: str) -> Iterator[tuple[Path, Path]]:
    """(file, path below /opt/orrery/src) of an importable package of ours, in a fixed order."""
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise UserError(f"image package {package}: not installed here", mend="run scripts/setup")
    base = Path(found.submodule_search_locations[0])
    for path in sorted(base.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path, package / path.relative_to(base)
