"""Process trees as the host sees them, and how to end one for certain."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import time
from collections import defaultdict
from collections.abc import Awaitable
from contextlib import suppress
from pathlib import Path

WAITED = 256
"""Processes waited for at a time; each takes a file descriptor of ours."""

ROUNDS = 200
"""A tree that still grows after so many rounds is a fork bomb; the caller ends its whole sandbox."""


async def uninterrupted[T](work: Awaitable[T]) -> T:
    """Finish `work` even while being cancelled; the cancellation is raised afterwards."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = error
        except BaseException:  # noqa: S110  raised again by task.result()
            pass
    if cancelled:
        raise cancelled
    return task.result()


def descendants(root: int) -> set[int]:
    """All living processes below `root`, without itself; zombies do not count."""
    children: dict[int, list[int]] = defaultdict(list)
    alive: set[int] = set()
    for entry in os.listdir("/proc"):  # noqa: PTH208  called often
        if not entry.isdigit():
            continue
        try:
            fields = Path("/proc", entry, "stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            continue
        children[int(fields[1])].append(int(entry))
        if fields[0] not in (b"Z", b"X"):
            alive.add(int(entry))
    found: set[int] = set()
    waiting = [root]
    while waiting:
        for child in children[waiting.pop()]:
            if child not in found:
                found.add(child)
                waiting.append(child)
    return found & alive


def kill_tree(root: int, deadline_s: float = 60) -> bool:
    """Kill everything below `root`, then `root`; returns whether nothing is left.

    All are stopped before the first is killed: a shell must not go on to its next line because the program
    that it waited for has died. `root` has to reap orphans (the launcher's supervisors do), so that no
    descendant can leave the tree; for the same reason it dies last.
    """
    end = time.monotonic() + deadline_s
    _send({root}, signal.SIGSTOP)
    stopped: set[int] = set()
    for _ in range(ROUNDS):
        below = descendants(root)
        if not below:
            _kill_and_wait({root}, end)
            return True
        if time.monotonic() > end:
            break
        if below - stopped:
            _send(below - stopped, signal.SIGSTOP)
            stopped |= below
        else:
            _kill_and_wait(below, end)
    _send({root}, signal.SIGKILL)
    return False


def _send(pids: set[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _kill_and_wait(pids: set[int], end: float) -> None:
    """Kill all and wait for the end of some; whoever is left shows up in the caller's next round."""
    poll = select.poll()
    handles: set[int] = set()
    try:
        for pid in sorted(pids)[:WAITED]:
            with suppress(OSError):
                handles.add(handle := os.pidfd_open(pid))
                poll.register(handle, select.POLLIN)
        _send(pids, signal.SIGKILL)
        waiting = set(handles)
        while waiting and (left := end - time.monotonic()) > 0:
            for handle, _ in poll.poll(left * 1000):
                poll.unregister(handle)
                waiting.discard(handle)
    finally:
        for handle in handles:
            os.close(handle)
