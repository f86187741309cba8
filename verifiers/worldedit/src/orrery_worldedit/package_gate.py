"""The package gate: what a submitted mod folder may be before any of it is run or even copied."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from orrery_worldedit.games.luanti.modconf import read_conf

MAX_FILES = 2000
"""Files and folders together."""
MAX_FILE_BYTES = 16 << 20
MAX_TOTAL_BYTES = 64 << 20
MAX_DEPTH = 12
_TEXTS = (".lua", ".conf", ".txt", ".md", ".rst", ".json", ".csv", ".tr", ".po", ".license")
_MEDIA = (".png", ".jpg", ".jpeg", ".tga", ".ogg", ".obj", ".b3d", ".x", ".gltf", ".glb", ".mts")
ENDINGS = frozenset((*_TEXTS, *_MEDIA))
BARE_NAMES = frozenset(
    {"LICENSE", "COPYING", "README", "CHANGELOG", ".luacheckrc", ".gitignore", ".editorconfig"}
)
_NATIVE = (
    b"\x7fELF",
    b"\xfe\xed\xfa\xce",
    b"\xfe\xed\xfa\xcf",
    b"\xcf\xfa\xed\xfe",
    b"\xce\xfa\xed\xfe",
    b"\xca\xfe\xba\xbe",
    b"!<arch>",
    b"#!",
)
_BYTECODE = b"\x1b"


class PackageRejected(Exception):
    """The submission breaks a stated rule; the text names the file and the rule."""


@dataclass(frozen=True)
class Package:
    """A mod folder that passed.

    Attributes:
        root: where it lies.
        files: relative paths, sorted.
        digest: SHA-256 over names and contents.
    """

    root: Path
    files: tuple[str, ...]
    digest: str

    @property
    def lua_files(self) -> tuple[str, ...]:
        return tuple(name for name in self.files if name.endswith(".lua"))


def inspect_package(root: Path, mod_name: str) -> Package:
    """Check a submission without following links, running code or reading more than the limits.

    Raises:
        PackageRejected: a rule is broken.
    """
    if not root.is_dir() or root.is_symlink():
        raise PackageRejected("no mod folder was submitted")
    names: list[str] = []
    total = 0
    digest = hashlib.sha256()
    try:
        for path, relative in _entries(root):
            size = _check_file(path, relative)
            total += size
            names.append(relative)
            if total > MAX_TOTAL_BYTES:
                raise PackageRejected(f"more than {MAX_TOTAL_BYTES >> 20} MiB in all")
            digest.update(f"{relative}\0{size}\0".encode())
            digest.update(_content(path, relative))
    except PermissionError as problem:
        where = Path(problem.filename or root).relative_to(root)
        raise PackageRejected(f"{where}: cannot be read; give files mode 644 and folders 755") from None
    _check_single_mod(root, names, mod_name)
    return Package(root, tuple(names), digest.hexdigest())


def _entries(root: Path) -> Iterator[tuple[Path, str]]:
    """Files with their relative paths, folder by folder in the order of names."""
    pending, seen = [root], 0
    while pending:
        folder = pending.pop()
        if len(folder.relative_to(root).parts) > MAX_DEPTH:
            raise PackageRejected(f"{folder.relative_to(root)}: folders deeper than {MAX_DEPTH}")
        with os.scandir(folder) as found:
            entries = sorted(islice(found, MAX_FILES + 1), key=lambda entry: entry.name)
        seen += len(entries)
        if seen > MAX_FILES:
            raise PackageRejected(f"more than {MAX_FILES} files and folders")
        for entry in entries:
            relative = str(Path(entry.path).relative_to(root))
            if not relative.isprintable() or "\\" in relative:
                raise PackageRejected(f"{relative!r}: unprintable file name")
            if entry.is_symlink():
                raise PackageRejected(f"{relative}: symbolic links are not allowed")
            if entry.is_dir(follow_symlinks=False):
                pending.append(Path(entry.path))
            else:
                yield Path(entry.path), relative


def _check_file(path: Path, relative: str) -> int:
    info = path.lstat()
    if not stat.S_ISREG(info.st_mode):
        raise PackageRejected(f"{relative}: not an ordinary file")
    if info.st_size > MAX_FILE_BYTES:
        raise PackageRejected(
            f"{relative}: {info.st_size >> 20} MiB; at most {MAX_FILE_BYTES >> 20} MiB a file"
        )
    if path.suffix.lower() not in ENDINGS and path.name not in BARE_NAMES:
        raise PackageRejected(f"{relative}: files of this kind are not part of a mod")
    return info.st_size


def _content(path: Path, relative: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        data = file.read(MAX_FILE_BYTES + 1)
    if data.startswith(_NATIVE) or (data.startswith(b"MZ") and b"\0" in data[:64]):
        raise PackageRejected(f"{relative}: native code or an executable script")
    if data.startswith(_BYTECODE):
        raise PackageRejected(f"{relative}: Lua bytecode; only source text is allowed")
    return data


def _check_single_mod(root: Path, names: list[str], mod_name: str) -> None:
    for name in names:
        if Path(name).name in ("modpack.conf", "modpack.txt"):
            raise PackageRejected(f"{name}: one mod, not a modpack")
        if "/" in name and Path(name).name == "mod.conf":
            raise PackageRejected(f"{name}: a second mod inside the mod")
    if "mod.conf" not in names:
        raise PackageRejected("mod.conf is missing")
    if (root / "mod.conf").stat().st_size > 1 << 16:
        raise PackageRejected("mod.conf is larger than 64 KiB")
    found = read_conf(root / "mod.conf").get("name")
    if found != mod_name:
        given = "gives no name" if found is None else f"says name = {found[:80]!r}"
        raise PackageRejected(f'mod.conf {given}; the mod must keep the name "{mod_name}"')
