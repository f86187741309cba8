"""The mode without namespaces: another user, limits, a system-call filter and file permissions.

Nothing can be mounted, so a bind is a symbolic link at its target for as long as the subject runs, and
what keeps the subject out of the judge's files is their mode alone: the judge writes with umask 077 from
here on, and where a closed temporary directory has to be opened for a bind, everything else in it is
closed.
"""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import secrets
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from orrery_core.errors import InfrastructureError
from orrery_core.isolation import seccomp
from orrery_core.isolation.launch import MIB, Order
from orrery_core.isolation.model import ADDRESS_SPACE, OPEN_FILES, Bind
from orrery_core.isolation.tools import SYSTEM_PATH

SUPERVISOR = Path(__file__).with_name("supervisor.py")
PRIVATE = 0o077
FREE_UIDS = range(62000, 65000)


def command(order: Order, uid: int) -> dict[str, object]:
    """What the supervisor is told about `order`."""
    limits = order.limits
    return {
        "argv": order.argv,
        "env": dict(order.env),
        "cwd": order.cwd,
        "uid": uid,
        "fixed_addresses": order.fixed_addresses,
        "filter": seccomp.build(sockets=order.network).hex(),
        "rlimits": {
            "RLIMIT_AS": (ADDRESS_SPACE, ADDRESS_SPACE),
            "RLIMIT_CPU": (limits.cpu_s, limits.cpu_s + 1),
            "RLIMIT_FSIZE": (limits.file_mb * MIB, limits.file_mb * MIB),
            "RLIMIT_NPROC": (limits.processes, limits.processes),
            "RLIMIT_NOFILE": (OPEN_FILES, OPEN_FILES),
            "RLIMIT_CORE": (0, 0),
        },
    }


def free_uid() -> int:
    """A user id of no one, drawn at random.

    The kernel counts processes (RLIMIT_NPROC) by id over all containers that do not map ids, so two verifiers
    with the same one would take each other's places.
    """
    taken = {entry.pw_uid for entry in pwd.getpwall()}
    return secrets.choice([uid for uid in FREE_UIDS if uid not in taken])


def start(
    order: Order, uid: int, *, stdin: int, output: int, status: int
) -> tuple[subprocess.Popen[bytes], Callable[[], None]]:
    """Start the supervisor of `order`; the second result takes its links away again."""
    os.umask(PRIVATE)
    links = contextlib.ExitStack()
    try:
        for bind in sorted(order.binds, key=lambda item: item.target):
            links.callback(_link(bind))
            open_way(bind, uid)
        read, write = os.pipe()
        try:
            popen = subprocess.Popen(
                [sys.executable, "-I", "-S", os.fspath(SUPERVISOR), str(read), str(status)],
                stdin=stdin,
                stdout=output,
                stderr=output,
                env={"PATH": SYSTEM_PATH} | _own_libraries(),
                pass_fds=(read, status),
            )
        finally:
            os.close(read)
        try:
            with os.fdopen(write, "w") as told:
                json.dump(command(order, uid), told)
        except BrokenPipeError as error:
            raise InfrastructureError(
                f"{sys.executable} cannot run {SUPERVISOR.name} (exit code {popen.wait()})",
                mend="run that command by hand and see what it says",
            ) from error
    except BaseException:
        links.close()
        raise
    return popen, links.close


def _own_libraries() -> dict[str, str]:
    """What an interpreter outside the system's folders may need to start at all."""
    name = "LD_LIBRARY_PATH"
    return {name: os.environ[name]} if name in os.environ else {}


def _link(bind: Bind) -> Callable[[], None]:
    """Make the target of `bind` lead to its source; the result undoes that."""
    target, source = Path(bind.target), bind.source.resolve()
    if target.exists() and target.resolve() == source:
        return lambda: None
    if target.is_symlink() and not target.exists():
        target.unlink()  # left by a judge that was killed; its work directory is gone
    if target.exists():
        raise InfrastructureError(
            f"bind target {target} exists already, and without namespaces it cannot be covered",
            mend="allow user namespaces in the container, or run one subject at a time",
        )
    made = [parent for parent in target.parents if not parent.exists()]
    try:
        for parent in reversed(made):
            parent.mkdir()
            parent.chmod(0o755)
        target.symlink_to(source)
    except OSError as error:
        raise InfrastructureError(
            f"cannot link {target} to {source}: {error.strerror}",
            mend="allow user namespaces, or make the root file system of the container writable",
        ) from error

    def undo() -> None:
        with contextlib.suppress(OSError):
            target.unlink()
            for parent in made:
                parent.rmdir()

    return undo


def open_way(bind: Bind, uid: int) -> None:
    """Let the subject reach the source of `bind`, and read it where it is read-only.

    Raises:
        InfrastructureError: a directory on the way is closed and not ours to open.
    """
    source = bind.source.resolve()
    ours = Path(tempfile.gettempdir()).resolve()
    inside = ours in source.parents
    step = source
    for parent in source.parents:
        if not _reachable(parent, uid):
            if not inside or parent == ours or ours not in parent.parents:
                raise InfrastructureError(
                    f"{parent} is closed to the subject, which needs {source}",
                    mend=f"put the work directory of the verifier below {ours}, or chmod o+x {parent}",
                )
            _close_others(parent, step, uid)
            parent.chmod(stat.S_IMODE(parent.stat().st_mode) | stat.S_IXOTH)
        step = parent
    if inside and not bind.writable:
        for path in _tree(source):
            if not path.is_symlink():
                mode = stat.S_IMODE(path.stat().st_mode)
                reach = stat.S_IXOTH if path.is_dir() or mode & stat.S_IXUSR else 0
                path.chmod(mode | stat.S_IROTH | reach)


def _reachable(folder: Path, uid: int) -> bool:
    found = folder.stat()
    owned = found.st_uid == uid and found.st_mode & stat.S_IXUSR
    return bool(owned or found.st_mode & stat.S_IXOTH)


def _close_others(folder: Path, way: Path, uid: int) -> None:
    for path in folder.iterdir():
        if path != way and not path.is_symlink() and path.stat().st_uid != uid:
            path.chmod(stat.S_IMODE(path.stat().st_mode) & ~stat.S_IRWXO)


def _tree(path: Path) -> Iterator[Path]:
    yield path
    if path.is_dir() and not path.is_symlink():
        for folder, folders, files in os.walk(path):
            yield from (Path(folder, name) for name in folders + files)
