"""What a subject may use and see."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

SUBJECT_UID = 65532
"""User and group of the subject in its own namespaces."""

ADDRESS_SPACE = 512 << 30
"""Bytes of address space of one process. Not a limit on memory (managed runtimes reserve hundreds of GiB and
use none of it) but on page tables, which no resident size counts."""

OPEN_FILES = 4096


@dataclass(frozen=True)
class Limits:
    """Limits on one subject, all of its processes together unless said otherwise.

    Args:
        wall_s: seconds from start to the kill.
        cpu_s: processor seconds; also the limit of each single process.
        memory_mb: resident MiB summed over the processes (shared pages count once per process).
        file_mb: MiB of one file, of the private /tmp, and of all writable binds together.
        processes: processes and threads.
        output_mb: MiB of standard output and error together.
    """

    wall_s: float
    cpu_s: int
    memory_mb: int
    file_mb: int
    processes: int
    output_mb: int

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value <= 0:
                raise ValueError(f"limit {name} must be positive, not {value}")


@dataclass(frozen=True)
class Bind:
    """A file or directory of the judge that the subject sees at `target`, read-only unless `writable`."""

    source: Path
    target: str
    writable: bool = False

    def __post_init__(self) -> None:
        target = PurePosixPath(self.target)
        if not target.is_absolute() or ".." in target.parts or target == PurePosixPath("/"):
            raise ValueError(f"bind target {self.target!r} must be an absolute path below /")
