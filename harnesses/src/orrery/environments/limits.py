"""Limits on memory, CPUs and processes of a sandbox: control groups as root, else affinity and a watchdog.

No address-space limit is ever set: it breaks the JVM, .NET and Node, which reserve far more than they use.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import math
import os
import signal
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from orrery.environments.processes import descendants

PROCESSES = 4096
WATCH_S = 0.25
CPU_PERIOD_US = 100_000
PREFIX = "orrery-"

_next_cpu = itertools.count()


@dataclass(frozen=True)
class Limits:
    memory_mb: int | None
    cpus: float | None


@dataclass(frozen=True)
class ControlGroups:
    """Directories that every process of the sandbox joins. `kind` is part of the mode."""

    kind: str
    paths: tuple[Path, ...]

    async def remove(self) -> None:
        """Delete the groups; their processes have been killed but may take a moment to be gone."""
        for path in self.paths:
            for _ in range(250):
                try:
                    path.rmdir()
                except FileNotFoundError:
                    break
                except OSError:  # the kernel offers no event for version 1
                    await asyncio.sleep(0.02)
                else:
                    break


def make_groups(name: str, limits: Limits, mounts: str | None = None) -> ControlGroups | None:
    """Create control groups that enforce `limits`, or None where this process may not.

    Args:
        name: unique, with the pid of the runner in front; the groups are called `orrery-<name>`.
        mounts: the text of /proc/self/mounts, for tests.
    """
    if os.geteuid() != 0:
        return None
    version1, version2 = _hierarchies(Path("/proc/self/mounts").read_text() if mounts is None else mounts)
    wanted = {"pids"} | ({"memory"} if limits.memory_mb else set()) | ({"cpu"} if limits.cpus else set())
    if wanted <= version1.keys():
        return _make("cgroup1", [version1[controller] for controller in sorted(wanted)], name, limits)
    if version2 and _enable(version2, wanted):
        return _make("cgroup2", [version2], name, limits)
    return None


def _hierarchies(mounts: str) -> tuple[dict[str, Path], Path | None]:
    version1: dict[str, Path] = {}
    version2: Path | None = None
    for line in mounts.splitlines():
        _, place, kind, options, *_ = line.split()
        if kind == "cgroup":
            version1 |= {
                name: Path(place) for name in options.split(",") if name in ("memory", "cpu", "pids")
            }
        elif kind == "cgroup2":
            version2 = Path(place)
    return version1, version2


def _enable(root: Path, wanted: set[str]) -> bool:
    """Make sure that children of a version 2 hierarchy's root can use the controllers."""
    control = root / "cgroup.subtree_control"
    with suppress(OSError):
        missing = wanted - set(control.read_text().split())
        if missing:
            control.write_text(" ".join(f"+{name}" for name in sorted(missing)))
        return True
    return False


def _settings(limits: Limits) -> dict[str, tuple[str, bool]]:
    """File name -> (value, whether it must hold) for both versions; files of the other version are absent."""
    memory = str((limits.memory_mb or 0) << 20)
    quota = str(int((limits.cpus or 0) * CPU_PERIOD_US))
    settings = {"pids.max": (str(PROCESSES), True)}
    if limits.memory_mb:
        settings |= {
            "memory.limit_in_bytes": (memory, True),
            "memory.memsw.limit_in_bytes": (memory, False),
            "memory.max": (memory, True),
            "memory.swap.max": ("0", False),
        }
    if limits.cpus:
        settings |= {
            "cpu.cfs_period_us": (str(CPU_PERIOD_US), True),
            "cpu.cfs_quota_us": (quota, True),
            "cpu.max": (f"{quota} {CPU_PERIOD_US}", True),
        }
    return settings


def _make(kind: str, parents: Iterable[Path], name: str, limits: Limits) -> ControlGroups | None:
    made: list[Path] = []
    written: set[str] = set()
    try:
        for parent in dict.fromkeys(parents):
            group = parent / f"{PREFIX}{name}"
            group.mkdir()
            made.append(group)
            for file, (value, needed) in _settings(limits).items():
                if not (group / file).exists():
                    continue
                try:
                    (group / file).write_text(value)
                except OSError:
                    if needed:
                        raise
                written.add(file.partition(".")[0])
    except OSError:
        written.clear()
    wanted = {file.partition(".")[0] for file, (_, needed) in _settings(limits).items() if needed}
    if wanted <= written:
        return ControlGroups(kind, tuple(made))
    for group in made:
        with suppress(OSError):
            group.rmdir()
    return None


def sweep_groups() -> None:
    """Delete the groups of dead runners; the processes in them died with their runner."""
    version1, version2 = _hierarchies(Path("/proc/self/mounts").read_text())
    for place in {*version1.values(), *([version2] if version2 else [])}:
        for group in place.glob(f"{PREFIX}*-*"):
            owner = group.name.removeprefix(PREFIX).partition("-")[0]
            if not Path("/proc", owner).exists():
                with suppress(OSError):
                    group.rmdir()


def affinity(cpus: float | None) -> list[int]:
    """The CPUs to pin a sandbox to, spread over the machine; empty for no pinning."""
    usable = sorted(os.sched_getaffinity(0))
    if not cpus or math.ceil(cpus) >= len(usable):
        return []
    count = math.ceil(cpus)
    first = next(_next_cpu) * count
    return [usable[(first + offset) % len(usable)] for offset in range(count)]


def resident_kb(pid: int) -> int:
    """Anonymous and shared memory of one process, in KiB; 0 when it is gone."""
    with suppress(OSError):
        text = Path(f"/proc/{pid}/status").read_text()
        rows = (line.split() for line in text.splitlines())
        return sum(int(row[1]) for row in rows if row and row[0] in ("RssAnon:", "RssShmem:"))
    return 0


async def watch_memory(limit_mb: int, roots: Callable[[], Iterable[int]], logger: logging.Logger) -> None:
    """Kill the largest process below `roots` whenever all use more than `limit_mb`; runs for ever."""
    while True:
        await asyncio.sleep(WATCH_S)
        victim = await asyncio.to_thread(_over_limit, limit_mb, list(roots()))
        if victim:
            with suppress(ProcessLookupError):
                os.kill(victim, signal.SIGKILL)
            logger.warning("memory limit of %d MiB passed: killed process %d", limit_mb, victim)


def _over_limit(limit_mb: int, roots: Iterable[int]) -> int | None:
    used = {pid: resident_kb(pid) for root in roots for pid in descendants(root)}
    if sum(used.values()) <= limit_mb << 10:
        return None
    return max(used, key=lambda pid: used[pid])
