"""What a tree of processes uses, read from /proc."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PAGE = os.sysconf("SC_PAGE_SIZE")
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Usage:
    """Resident bytes, processor seconds (also of ended processes) and tasks of a tree."""

    memory: int
    cpu_s: float
    tasks: int


def descendants(root: int) -> list[int]:
    """`root` and every process below it, parents first; those that end meanwhile may be missing."""
    found = [root]
    for pid in found:
        found.extend(_children(pid))
    return found


def _children(pid: int) -> Iterator[int]:
    try:
        threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208
    except OSError:
        return
    for thread in threads:
        try:
            text = Path(f"/proc/{pid}/task/{thread}/children").read_text()
        except OSError:
            continue
        yield from map(int, text.split())


def usage(root: int) -> Usage:
    """Sum over `root` and its descendants."""
    memory = ticks = tasks = 0
    for pid in descendants(root):
        try:
            text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
        except OSError:
            continue
        # The name of the program may hold spaces and brackets; the numbers start after the last bracket,
        # at field 3.
        fields = text[text.rindex(")") + 2 :].split()
        ticks += sum(int(value) for value in fields[11:15])
        tasks += int(fields[17])
        memory += int(fields[21]) * PAGE
    return Usage(memory=memory, cpu_s=ticks / TICKS, tasks=tasks)


def stored(folders: tuple[Path, ...], entries_max: int) -> tuple[int, int]:
    """Bytes on disk and number of entries below `folders`, links not followed; stops after `entries_max`.

    A path too long to be opened, which the subject can make from a shorter root, counts as too many entries.
    """
    size = entries = 0
    waiting = [os.fspath(folder) for folder in folders]
    while waiting and entries <= entries_max:
        try:
            with os.scandir(waiting.pop()) as listing:
                for entry in listing:
                    entries += 1
                    if entries > entries_max:
                        break
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    else:
                        size += entry.stat(follow_symlinks=False).st_blocks * 512
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            if error.errno != errno.ENAMETOOLONG:
                raise
            entries = entries_max + 1
    return size, entries
