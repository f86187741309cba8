"""Where sandboxes keep their files: caches, and one directory per running process that dies with it.

<state>/skeleton/<digest>/   cached base files of the host profile
<state>/layers/<digest>/     cached results of Dockerfiles with RUN
<state>/rootfs/<image>/      unpacked images (`orrery images build`)
<state>/run/<pid>-<random>/  trials of one living process, which holds a lock on `lock` in it
"""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from orrery_core.errors import InfrastructureError

FREE_MB = 512
UNUSED_DAYS = 30


def state_dir() -> Path:
    """`$ORRERY_STATE`, else `~/.cache/orrery`; created when missing."""
    path = Path(os.environ.get("ORRERY_STATE") or Path.home() / ".cache" / "orrery").absolute()
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InfrastructureError(
            f"cannot create the state directory {path}: {error.strerror}",
            mend="set ORRERY_STATE to a writable directory",
        ) from error
    return path


def rootfs_dir(image: str) -> Path:
    """Where the unpacked root of an image lies, for the rootfs profile."""
    return state_dir() / "rootfs" / image.replace("/", "-").replace(":", "-")


def require_space(path: Path, needed_mb: int = FREE_MB) -> None:
    """Refuse to start on a disk that is as good as full.

    Raises:
        InfrastructureError: less than `needed_mb` MiB are free where `path` lies.
    """
    free_mb = shutil.disk_usage(path).free >> 20
    if free_mb < needed_mb:
        raise InfrastructureError(
            f"only {free_mb} MiB are free on the disk of {path}, a sandbox needs {needed_mb}",
            mend="free some space, or set ORRERY_STATE to a directory on another disk",
        )


def remove_tree(path: Path) -> None:
    """Delete what a sandbox left, however deep and whatever its modes (overlay work directories have mode 0).

    Raises:
        InfrastructureError: something could not be deleted.
    """
    if os.geteuid() != 0:
        subprocess.run(["chmod", "-R", "u+rwX", "--", path], capture_output=True, check=False)
    done = subprocess.run(
        ["rm", "-rf", "--one-file-system", "--", path], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise InfrastructureError(
            f"cannot delete {path}: {done.stderr.strip()[-300:]}", mend="delete it by hand"
        )


def write_file(path: Path, text: str, mode: int = 0o644) -> None:
    """Write a file that a sandbox shows, with modes that do not depend on this process's umask."""
    make_directory(path.parent)
    path.write_text(text)
    path.chmod(mode)


def make_directory(path: Path) -> None:
    """The same for a directory and the parents that are missing."""
    if not path.is_dir():
        make_directory(path.parent)
        path.mkdir()
        path.chmod(0o755)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock between processes on `path`."""
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


class RunDirectory:
    """This process's place for trials. A file lock marks it as living and ends with the process."""

    def __init__(self, state: Path) -> None:
        runs = state / "run"
        runs.mkdir(exist_ok=True, mode=0o700)
        with locked(state / "run.lock"):  # nobody may take a directory for dead before its lock is held
            _sweep(runs)
            self.path = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=runs))
            self._lock = (self.path / "lock").open("w")
            fcntl.flock(self._lock, fcntl.LOCK_EX)
        self._owner = os.getpid()
        self.tidied = False
        atexit.register(self._leave)

    def trial(self) -> Path:
        """A new, private directory for one sandbox."""
        return Path(tempfile.mkdtemp(prefix="t-", dir=self.path))

    def _leave(self) -> None:
        if os.getpid() == self._owner and self.path.exists():
            with suppress(InfrastructureError):
                remove_tree(self.path)


def expire_caches() -> None:
    """Drop cached skeletons and builds that nobody used for long; `touch` marks a use."""
    oldest = time.time() - UNUSED_DAYS * 86400
    for name in ("skeleton", "layers"):
        for path in (state_dir() / name).glob("*"):
            with suppress(FileNotFoundError):  # another process was faster
                if path.stat().st_mtime < oldest:
                    remove_tree(path)


def _sweep(runs: Path) -> None:
    """Delete the directories of dead processes."""
    for directory in runs.iterdir():
        with (directory / "lock").open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            remove_tree(directory)


_current: dict[tuple[int, Path], RunDirectory] = {}
_turn = threading.Lock()


def run_directory() -> RunDirectory:
    """The run directory of this process under the present state directory; dead ones are swept first."""
    state = state_dir()
    key = (os.getpid(), state)
    with _turn:  # trials start on several threads, and a second one would lose its lock when collected
        if key not in _current:
            _current[key] = RunDirectory(state)
        return _current[key]
