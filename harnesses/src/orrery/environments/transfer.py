"""Packing and unpacking of directory trees that cross the border of a sandbox.

Archives that come out are hostile. They are unpacked by hand instead of with `tarfile.extractall`, because
the data filter of older Python patch releases can be led out of the target (CVE-2025-4517 and its
siblings): each directory is opened relative to its parent without following links, and links are made last.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import tarfile
from contextlib import suppress
from pathlib import Path
from typing import IO, BinaryIO

MAX_BYTES = 8 << 30
"""Most bytes that one transfer may carry, packed or unpacked."""

MAX_MEMBERS = 500_000
MAX_DEPTH = 200
"""Deeper trees serve only to break tools that walk them recursively."""


class RefusedArchive(Exception):
    """The whole archive is beyond the bounds; single unsafe members are skipped and listed instead."""


def pack_tree(source: Path, file: BinaryIO) -> None:
    """Write the *contents* of `source` as a plain tar; links stay links and are never followed."""
    with tarfile.open(fileobj=file, mode="w") as tar:
        for child in sorted(source.iterdir()):
            tar.add(child, arcname=child.name)


def unpack_tree(file: BinaryIO, target: Path, max_bytes: int = MAX_BYTES) -> list[str]:
    """Unpack a hostile tar under `target` and say which members were left out and why.

    Kept are regular files, directories, hard links to files of the same archive and relative symbolic links
    that stay inside. Devices, pipes, set-id bits, owners and whatever points outside are left out.

    Raises:
        RefusedArchive: too many members or too many bytes.
        tarfile.TarError: not a tar archive, or a truncated one.
    """
    target.mkdir(parents=True, exist_ok=True)
    refused: list[str] = []
    links: list[tuple[list[str], str]] = []
    room, members = max_bytes, 0
    root = os.open(target, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with tarfile.open(fileobj=file, mode="r:*") as tar:
            for member in tar:
                members += 1
                room -= member.size if member.isreg() else 0
                if room < 0 or members > MAX_MEMBERS:
                    raise RefusedArchive(f"more than {max_bytes} bytes or {MAX_MEMBERS} members")
                reason = _unpack_member(tar, member, root, links)
                if reason:
                    refused.append(f"{member.name[:200]!r}: {reason}")
        for parts, destination in links:
            try:
                _make_link(root, parts, destination)
            except OSError as error:
                refused.append(f"{'/'.join(parts)[:200]!r}: {error.strerror}")
    finally:
        os.close(root)
    return refused


def _unpack_member(
    tar: tarfile.TarFile, member: tarfile.TarInfo, root: int, links: list[tuple[list[str], str]]
) -> str | None:
    """Unpack one member; returns the reason when it is left out."""
    parts = _parts(member.name)
    if parts is None:
        return "the path leaves the target"
    if len(parts) > MAX_DEPTH:
        return f"deeper than {MAX_DEPTH} directories"
    try:
        if member.isdir():
            os.close(_open_directory(root, parts))
        elif not parts:
            return "not a directory"
        elif member.issym():
            if not link_stays_inside(len(parts) - 1, member.linkname):
                return "the link points outside"
            links.append((parts, member.linkname))
        elif member.islnk():
            return _copy_hard_link(root, parts, member)
        elif member.isreg():
            data = tar.extractfile(member)
            if data is None:
                return "no data"
            _write_file(root, parts, data, member.mode)
        else:
            return "a device or a pipe"
    except OSError as error:
        if error.errno in _HOST_IS_FULL:
            raise
        return error.strerror or str(error)
    except ValueError:
        return "not a possible file name"
    return None


_HOST_IS_FULL = {errno.ENOSPC, errno.EDQUOT}


def _parts(name: str) -> list[str] | None:
    """Path components of a member, or None when it is absolute or climbs."""
    if name.startswith("/"):
        return None
    parts = [part for part in name.split("/") if part not in ("", ".")]
    return None if ".." in parts else parts


def link_stays_inside(depth: int, destination: str) -> bool:
    """Whether a link in a real directory `depth` levels below the target can only lead into the target.

    `..` may stand only in front: after a name it could follow another link and climb further than it says.
    """
    if destination.startswith("/") or "\0" in destination or not destination:
        return False
    parts = [part for part in destination.split("/") if part not in ("", ".")]
    climbs = 0
    while climbs < len(parts) and parts[climbs] == "..":
        climbs += 1
    return climbs <= depth and ".." not in parts[climbs:]


def _open_directory(root: int, parts: list[str]) -> int:
    """Open (and create) a directory below `root` without following any link; the caller closes it."""
    here = os.dup(root)
    try:
        for part in parts:
            with suppress(FileExistsError):
                os.mkdir(part, 0o755, dir_fd=here)
            deeper = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=here)
            os.close(here)
            here = deeper
    except BaseException:
        os.close(here)
        raise
    return here


def _clear(directory: int, name: str) -> None:
    """Make room for a file or a link; a directory in the way stays and the caller fails."""
    with suppress(FileNotFoundError):
        if not stat.S_ISDIR(os.lstat(name, dir_fd=directory).st_mode):
            os.unlink(name, dir_fd=directory)


def _write_file(root: int, parts: list[str], data: IO[bytes], mode: int) -> None:
    directory = _open_directory(root, parts[:-1])
    try:
        _clear(directory, parts[-1])
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        handle = os.open(parts[-1], flags, 0o600, dir_fd=directory)
        with os.fdopen(handle, "wb") as file:
            shutil.copyfileobj(data, file, 1 << 20)
            os.fchmod(file.fileno(), (mode & 0o755) | 0o600)
    finally:
        os.close(directory)


def _copy_hard_link(root: int, parts: list[str], member: tarfile.TarInfo) -> str | None:
    source = _parts(member.linkname)
    if not source or source == parts:
        return "the hard link points outside"
    directory = _open_directory(root, source[:-1])
    try:
        handle = os.open(source[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=directory)
    finally:
        os.close(directory)
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            return "the hard link does not lead to a file"
        _write_file(root, parts, file, status.st_mode)
    return None


def _make_link(root: int, parts: list[str], destination: str) -> None:
    directory = _open_directory(root, parts[:-1])
    try:
        _clear(directory, parts[-1])
        os.symlink(destination, parts[-1], dir_fd=directory)
    finally:
        os.close(directory)
