"""One running sandbox: bubblewrap, its launcher and its limits, opened and closed together."""

from __future__ import annotations

import asyncio
import logging
import os
from typing import BinaryIO

from orrery.environments.boot import Boot, View, boot
from orrery.environments.limits import ControlGroups, Limits, affinity, make_groups, watch_memory
from orrery.environments.output import Capture, Output
from orrery.environments.session import Request, Session

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
BASE_ENV = {"PATH": PATH, "LANG": "C.UTF-8", "TERM": "dumb", "HOSTNAME": "sandbox"}


class RunningSandbox:
    """Processes stay until `close`, which ends all of them at once."""

    def __init__(self, logger: logging.Logger, limits: Limits) -> None:
        self._logger = logger
        self._limits = limits
        self.single_uid = os.geteuid() != 0
        self._boot: Boot | None = None
        self._session: Session | None = None
        self._groups: ControlGroups | None = None
        self._watcher: asyncio.Task[None] | None = None
        self._cpus: list[int] = []

    @property
    def session(self) -> Session:
        assert self._session is not None, "the sandbox is not open"
        return self._session

    @property
    def limits_kind(self) -> str:
        """How the limits are held: `cgroup1`, `cgroup2`, or `watchdog` (which polls and so is weaker)."""
        return self._groups.kind if self._groups else "watchdog"

    async def open(self, name: str, view: View, *, share_network: bool) -> None:
        """Boot; `name` must be unique among the sandboxes of this machine.

        Raises:
            InfrastructureError: the machine does not allow it.
        """
        try:
            await self._open(name, view, share_network)
        except BaseException:
            await self.close()
            raise

    async def _open(self, name: str, view: View, share_network: bool) -> None:
        self._groups = make_groups(name, self._limits)
        self._session = await Session.open()  # its interpreter starts while bubblewrap mounts
        self._boot = await boot(view, share_network=share_network, single_uid=self.single_uid)
        paths = self._groups.paths if self._groups else ()
        for path in paths:
            (path / "cgroup.procs").write_text(str(self._boot.pid))
        if not self._groups:
            self._cpus = affinity(self._limits.cpus)
            if self._limits.memory_mb:
                self._watcher = asyncio.create_task(
                    watch_memory(self._limits.memory_mb, self._roots, self._logger)
                )
        await self._session.attach(
            self._boot.pid, own_network=not share_network, single_uid=self.single_uid, cgroups=paths
        )
        self._session.on_runaway = self._boot.kill

    def _roots(self) -> list[int]:
        return [self._boot.pid if self._boot else 0, *self.session.running]

    async def run(self, request: Request, output: Output, stdin: BinaryIO | None = None) -> int:
        return await self.session.run(request, output, stdin, self._cpus)

    async def shell(self, script: str, stdin: BinaryIO | None = None) -> tuple[int, str]:
        """Run a line of our own as root; returns exit code and what it printed."""
        output = Capture()
        code = await self.run(Request(("/bin/sh", "-c", script), "/", BASE_ENV, "root"), output, stdin)
        return code, output.stdout + output.stderr

    async def close(self) -> None:
        """End everything inside; idempotent."""
        if self._watcher:
            self._watcher.cancel()
        if self._boot:
            await self._boot.kill()
        if self._session:
            await self._session.close()
        if self._groups:
            await self._groups.remove()
            self._groups = None
