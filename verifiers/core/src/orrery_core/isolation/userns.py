"""A user namespace that keeps every id, so that root inside it can set up and then drop to the subject."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

from orrery_core.errors import InfrastructureError
from orrery_core.isolation.tools import find_tool

HOLDER = "echo ready; read _"


@contextlib.contextmanager
def user_namespace() -> Iterator[str]:
    """Yield the path of a new user namespace that maps each id of this one to itself.

    One namespace per subject, because the kernel counts processes (RLIMIT_NPROC) per user and namespace.

    Raises:
        InfrastructureError: the kernel or the container does not allow it.
    """
    line = [find_tool("unshare"), "--user", "--", find_tool("sh"), "-c", HOLDER]
    holder = subprocess.Popen(
        line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={}
    )
    with holder:
        assert holder.stdin and holder.stdout and holder.stderr
        try:
            if not holder.stdout.readline():
                raise InfrastructureError(f"no user namespace: {holder.stderr.read().decode().strip()}")
            _map_ids(holder.pid)
            yield f"/proc/{holder.pid}/ns/user"
        finally:
            holder.stdin.close()


def _map_ids(pid: int) -> None:
    for name in ("uid_map", "gid_map"):
        rows = (row.split() for row in Path(f"/proc/self/{name}").read_text().splitlines())
        same = "".join(f"{inside} {inside} {length}\n" for inside, _, length in rows)
        try:
            Path(f"/proc/{pid}/{name}").write_text(same)
        except OSError as error:
            raise InfrastructureError(f"cannot write {name} of a user namespace: {error}") from error
