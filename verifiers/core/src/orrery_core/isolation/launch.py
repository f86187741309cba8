"""Command lines that put a subject into namespaces of its own: pure functions of what was asked for."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from orrery_core.isolation.model import ADDRESS_SPACE, OPEN_FILES, SUBJECT_UID, Bind, Limits
from orrery_core.isolation.tools import find_tool

MIB = 1 << 20
TMP, SHARED_MEMORY = "/tmp", "/dev/shm"  # noqa: S108 the subject's own
THERE = ("/", "/usr", TMP)
SYSTEM_LINKS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")


@dataclass(frozen=True)
class Order:
    """One subject as the caller asked for it."""

    argv: tuple[str, ...]
    binds: tuple[Bind, ...]
    env: Mapping[str, str]
    limits: Limits
    cwd: str = "/"
    proc: bool = False
    network: bool = True
    fixed_addresses: bool = False

    def __post_init__(self) -> None:
        if not self.argv or "=" in self.argv[0]:
            raise ValueError(f"argv must start with a program without '=' in its path, not {self.argv[:1]}")
        for key, value in self.env.items():
            if not key or "=" in key or "\0" in key + value:
                raise ValueError(f"environment variable {key!r} cannot be set")


def sandbox(
    bwrap: Path, order: Order, *, own_user: bool, proc: str, status_fd: int, filter_fd: int
) -> list[str]:
    """Command line of bubblewrap for `order`.

    Args:
        own_user: already root of a user namespace made for the subject, which then runs as `SUBJECT_UID`;
            otherwise bubblewrap makes one that maps the caller alone.
        proc: "empty", "fresh" (a new /proc of the new pid namespace) or "outer" (the caller's, read-only).
    """
    line = [os.fspath(bwrap), "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    line += ["--die-with-parent", "--new-session", "--clearenv"]
    if not order.network:
        line.append("--unshare-net")
    line += ["--cap-drop", "ALL"]
    if own_user:
        line += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--cap-add", "CAP_SETPCAP"]
    else:
        line += ["--unshare-user", "--uid", str(SUBJECT_UID), "--gid", str(SUBJECT_UID)]
    line += _view(order, proc)
    line += ["--json-status-fd", str(status_fd), "--seccomp", str(filter_fd), "--chdir", order.cwd, "--"]
    if own_user:
        line += [find_tool("setpriv"), f"--reuid={SUBJECT_UID}", f"--regid={SUBJECT_UID}", "--clear-groups"]
        line += ["--inh-caps=-all", "--bounding-set=-all", "--no-new-privs", "--"]
    return line + _limited(order)


def _view(order: Order, proc: str) -> list[str]:
    limits = order.limits
    line = ["--ro-bind", "/usr", "/usr"]
    for name in SYSTEM_LINKS:
        path = Path("/", name)
        if path.is_symlink():
            line += ["--symlink", os.fspath(path.readlink()), str(path)]
        elif path.is_dir():
            line += ["--ro-bind", str(path), str(path)]
    line += ["--perms", "0755", "--dir", "/etc"]
    line += ["--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache"]
    line += {
        "empty": ["--tmpfs", "/proc", "--remount-ro", "/proc"],
        "fresh": ["--proc", "/proc"],
        "outer": ["--ro-bind", "/proc", "/proc"],
    }[proc]
    line += ["--dev", "/dev", *_scratch(SHARED_MEMORY, limits), "--remount-ro", "/dev"]
    line += _scratch(TMP, limits)
    for bind in sorted(order.binds, key=lambda item: item.target):
        line += _parents(bind.target)
        line += ["--bind" if bind.writable else "--ro-bind", os.fspath(bind.source), bind.target]
    return [*line, "--remount-ro", "/"]


def _scratch(target: str, limits: Limits) -> list[str]:
    return ["--perms", "1777", "--size", str(limits.file_mb * MIB), "--tmpfs", target]


def _parents(target: str) -> list[str]:
    """Directories above a bind target, open to the subject; bubblewrap's own would not be."""
    above = reversed(Path(target).parents)
    return [
        word for path in above if str(path) not in THERE for word in ("--perms", "0755", "--dir", str(path))
    ]


def _limited(order: Order) -> list[str]:
    """The chain from the sandbox's door to the program.

    The environment is set last, by `env`, so that a variable such as LD_PRELOAD acts on the program alone.
    """
    limits = order.limits
    line = [find_tool("prlimit"), f"--as={ADDRESS_SPACE}", f"--cpu={limits.cpu_s}:{limits.cpu_s + 1}"]
    line += [f"--fsize={limits.file_mb * MIB}", f"--nproc={limits.processes}", f"--nofile={OPEN_FILES}"]
    line += ["--core=0", "--"]
    if order.fixed_addresses:
        line += [find_tool("setarch"), "-R", "--"]
    return [
        *line,
        find_tool("env"),
        "-i",
        *(f"{key}={value}" for key, value in order.env.items()),
        *order.argv,
    ]


def words(argv: Sequence[str | os.PathLike[str]]) -> tuple[str, ...]:
    """`argv` as strings."""
    return tuple(os.fspath(word) for word in argv)
