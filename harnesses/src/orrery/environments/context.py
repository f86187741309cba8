"""The build context of a Dockerfile: which files COPY takes, and the archive that carries them inside."""

from __future__ import annotations

import hashlib
import os
import re
import tarfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from orrery.environments.dockerfile import Copy, MakeDirectory, refuse

Owner = Callable[[str], tuple[int, int]]
"""Resolves the value of --chown to (uid, gid)."""


class Context:
    """A directory with its .dockerignore applied."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()

    @cached_property
    def _rules(self) -> list[tuple[bool, re.Pattern[str]]]:
        path = self.root / ".dockerignore"
        lines = path.read_text().splitlines() if path.exists() else []
        kept = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
        return [(line.startswith("!"), _pattern(line.lstrip("!").strip())) for line in kept]

    def ignored(self, relative: str) -> bool:
        """Whether .dockerignore leaves this path out; the last rule that matches it or a parent decides."""
        result = False
        for negated, pattern in self._rules:
            if pattern.match(relative):
                result = not negated
        return result

    def matches(self, copy: Copy, source: str) -> list[Path]:
        """Files and directories that one source of a COPY names."""
        pattern = "/".join(part for part in source.split("/") if part not in ("", "."))
        found = [self.root] if not pattern else sorted(self.root.glob(pattern))
        found = [p for p in found if p == self.root or not self._hidden(p)]
        for path in found:
            if not path.resolve().is_relative_to(self.root):
                raise refuse(copy.where, f"{source} leads out of the build context")
        if not found:
            raise refuse(copy.where, f"{source} is not in the build context {self.root}")
        return found

    def _hidden(self, path: Path) -> bool:
        """Ignored, and not a directory that may hold files which a later rule brings back."""
        relative = path.relative_to(self.root).as_posix()
        return self.ignored(relative) and not (path.is_dir() and any(negated for negated, _ in self._rules))

    def files(self, top: Path) -> Iterator[Path]:
        """Everything below a directory that is not ignored, parents first."""
        for path in sorted(top.iterdir()):
            if not self.ignored(path.relative_to(self.root).as_posix()):
                yield path
                if path.is_dir() and not path.is_symlink():
                    yield from self.files(path)
            elif path.is_dir() and not path.is_symlink() and any(negated for negated, _ in self._rules):
                yield from self.files(path)

    def digest(self) -> str:
        """Of names, kinds, modes and contents: what a cached build depends on."""
        digest = hashlib.sha256()
        for path in self.files(self.root):
            status = path.lstat()
            digest.update(f"{path.relative_to(self.root)}\0{status.st_mode}\0".encode())
            if path.is_symlink():
                digest.update(os.fsencode(path.readlink()))
            elif path.is_file():
                digest.update(hashlib.sha256(path.read_bytes()).digest())
        return digest.hexdigest()


def _pattern(line: str) -> re.Pattern[str]:
    """Translate a .dockerignore line; it also covers everything below what it names."""
    line = "/".join(part for part in line.split("/") if part not in ("", "."))
    out, index = "", 0
    while index < len(line):
        if line.startswith("**/", index):
            out, index = out + "(?:.*/)?", index + 3
        elif line.startswith("**", index):
            out, index = out + ".*", index + 2
        elif line[index] == "*":
            out, index = out + "[^/]*", index + 1
        elif line[index] == "?":
            out, index = out + "[^/]", index + 1
        else:
            out, index = out + re.escape(line[index]), index + 1
    return re.compile(out + r"(?:/.*)?\Z")


def pack_steps(context: Context, steps: Sequence[Copy | MakeDirectory], owner: Owner, file: BinaryIO) -> None:
    """One archive, rooted at `/`, that carries out COPY and WORKDIR steps in order."""
    with tarfile.open(fileobj=file, mode="w") as tar:
        for step in steps:
            if isinstance(step, MakeDirectory):
                _add_directory(tar, step.path)
            else:
                _add_copy(tar, context, step, owner)


def _add_directory(tar: tarfile.TarFile, path: str) -> None:
    entry = tarfile.TarInfo(path.strip("/") or ".")
    entry.type, entry.mode, entry.mtime = tarfile.DIRTYPE, 0o755, int(time.time())
    tar.addfile(entry)


def _add_copy(tar: tarfile.TarFile, context: Context, copy: Copy, owner: Owner) -> None:
    uid, gid = owner(copy.owner) if copy.owner else (0, 0)

    def settle(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid, entry.gid, entry.uname, entry.gname = uid, gid, "", ""
        if copy.mode is not None and not entry.issym():
            entry.mode = copy.mode
        return entry

    target = copy.target.lstrip("/")
    for source in copy.sources:
        for path in context.matches(copy, source):
            if path.is_dir():
                base = PurePosixPath(target)
                if target.strip("/"):
                    _add_directory(tar, str(base))
                for below in context.files(path):
                    name = str(base / below.relative_to(path).as_posix())
                    tar.add(below, arcname=name, recursive=False, filter=settle)
            else:
                name = f"{target}{path.name}" if copy.target.endswith("/") else target
                tar.add(path.resolve(), arcname=name, recursive=False, filter=settle)
