"""The one way out of a container whose network is limited: a proxy on the host, behind a socket made inside.

The container has no interface but its loopback. A helper inside opens the listening socket there and hands it
over through a unix socket that is bound in; from then on the host serves it, and nothing of ours is left
running inside.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import socket
import tempfile
from pathlib import Path

from orrery_core.errors import InfrastructureError

from orrery.environments.allowlist import PORT, Proxy, Rules
from orrery.environments.engine_exec import ContainerCommand
from orrery.environments.engine_service import FOLDER_PREFIX, Engine
from orrery.environments.output import Capture

INSIDE = "/run/orrery"
_HANDOVER_S = 30
_HELPER = f"""
import socket
listener = socket.create_server(("127.0.0.1", {PORT}), backlog=128)
with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as channel:
    channel.connect("{INSIDE}/handover.sock")
    socket.send_fds(channel, [b"x"], [listener.fileno()])
    channel.recv(1)
"""


class Gateway:
    """The proxy of one container. Make it before the container, `open` it after, `close` it at the end."""

    def __init__(self, rules: Rules, logger: logging.Logger) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=f"{FOLDER_PREFIX}{os.getpid()}-"))
        self.folder.chmod(0o711)  # the container's root may be an ordinary user here
        self._rules = rules
        self._logger = logger
        self._proxy: Proxy | None = None

    @property
    def bind(self) -> tuple[str, dict[str, str]]:
        return str(self.folder), {"bind": INSIDE, "mode": "ro"}

    @property
    def rules(self) -> Rules:
        return self._rules

    async def open(self, engine: Engine, container: str) -> None:
        """Takes over a socket that listens inside `container` and serves it; again after a restart.

        Raises:
            InfrastructureError: the helper could not run, mostly because the image has no python3.
        """
        if self._proxy:
            await self._proxy.close()
        listener = await self._take_listener(engine, container)
        self._proxy = Proxy(self._rules, self._logger)
        await self._proxy.serve(listener)

    def switch(self, rules: Rules) -> None:
        self._rules = rules
        if self._proxy:
            self._proxy.switch(rules)

    async def close(self) -> None:
        if self._proxy:
            await self._proxy.close()
        await asyncio.to_thread(shutil.rmtree, self.folder, ignore_errors=True)

    async def _take_listener(self, engine: Engine, container: str) -> socket.socket:
        path = self.folder / "handover.sock"
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
            door.bind(str(path))
            path.chmod(0o666)
            door.listen(1)
            door.setblocking(False)
            said = Capture()
            helper = ContainerCommand(
                engine, container, ["python3", "-I", "-c", _HELPER], user="0:0", cwd="/"
            )
            running = asyncio.create_task(helper.run(said))
            arriving = asyncio.create_task(_receive(door))
            await asyncio.wait({running, arriving}, timeout=_HANDOVER_S, return_when=asyncio.FIRST_COMPLETED)
            path.unlink()
            if arriving.done():
                await running
                return arriving.result()
            arriving.cancel()
            running.cancel()
            await asyncio.wait({running, arriving})
        raise InfrastructureError(
            f"the network proxy could not be reached from inside the container: {said.stderr.strip()[-300:]}",
            mend="an allowlist needs python3 in the image and an engine on this very machine",
        )


async def _receive(door: socket.socket) -> socket.socket:
    channel, _ = await asyncio.get_running_loop().sock_accept(door)
    with channel:
        channel.setblocking(True)
        _, handles, _, _ = await asyncio.to_thread(socket.recv_fds, channel, 1, 1)
    return socket.socket(fileno=handles[0])
