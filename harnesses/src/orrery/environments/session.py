"""The runner's side of the launcher: start it, run commands through it, end what they started."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from orrery_core.errors import InfrastructureError, UserError

from orrery.environments.output import Output, Stream
from orrery.environments.processes import kill_tree, uninterrupted

LAUNCHER = Path(__file__).with_name("launcher.py")
CHUNK = 1 << 16
LEFTOVER_CHUNKS = 32
"""Most chunks still read after the command ended: its pipe holds fewer, a background writer has no end."""


@dataclass(frozen=True)
class Request:
    """One command, fully resolved."""

    argv: Sequence[str]
    cwd: str
    env: dict[str, str]
    user: str


class Session:
    """One launcher process, bound to one sandbox."""

    def __init__(self, process: asyncio.subprocess.Process, control: socket.socket) -> None:
        self._process = process
        self._control = control
        self._turn = asyncio.Lock()
        self._running: set[int] = set()
        self._draining: set[int] = set()
        self.on_runaway: Callable[[], Awaitable[None]] | None = None
        """Called when a tree could not be killed; has to end the whole sandbox."""

    @classmethod
    async def open(cls) -> Session:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-I", "-S", str(LAUNCHER), str(theirs.fileno()),
                pass_fds=(theirs.fileno(),), env={}, cwd="/", start_new_session=True,
                stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL,
            )  # fmt: skip
        ours.setblocking(False)
        return cls(process, ours)

    async def attach(self, pid: int, *, own_network: bool, single_uid: bool, cgroups: Sequence[Path]) -> None:
        """Join the sandbox whose first process is `pid`; later commands land in `cgroups`."""
        order = {
            "pid": pid,
            "own_network": own_network,
            "single_uid": single_uid,
            "cgroups": [str(path / "cgroup.procs") for path in cgroups],
        }
        self._control.send(json.dumps(order).encode())
        await self._reply()

    async def _reply(self) -> dict[str, Any]:
        data = await asyncio.get_running_loop().sock_recv(self._control, CHUNK)
        if not data:
            raise InfrastructureError("the sandbox's launcher ended unexpectedly")
        reply: dict[str, Any] = json.loads(data)
        if "error" in reply:
            raise InfrastructureError(str(reply["error"]))
        return reply

    async def _send(self, request: dict[str, Any], handles: Sequence[int]) -> int:
        """Hand a request over; returns the supervisor's pid once it runs."""
        body = os.memfd_create("request")
        try:
            with os.fdopen(os.dup(body), "wb") as file:
                file.write(json.dumps(request).encode())
            os.lseek(body, 0, os.SEEK_SET)
            async with self._turn:
                if self._control.fileno() < 0:
                    raise InfrastructureError("the sandbox has been stopped")
                try:
                    socket.send_fds(self._control, [b"x"], [body, *handles])
                except OSError as error:
                    raise InfrastructureError(f"the sandbox's launcher is gone: {error}") from error
                # A cancellation in between would leave the reply to the next request.
                return int((await uninterrupted(self._reply()))["pid"])
        finally:
            os.close(body)

    async def listen(self, port: int) -> socket.socket:
        """A TCP socket that listens on the sandbox's own loopback and is served from out here."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours, theirs:
            await self._send({"listen": port}, [theirs.fileno()])
            theirs.close()
            message, handles, _, _ = await asyncio.to_thread(socket.recv_fds, ours, CHUNK, 1)
        if not handles:
            raise InfrastructureError(f"cannot listen inside the sandbox: {message.decode() or 'no reply'}")
        server = socket.socket(fileno=handles[0])
        server.set_inheritable(False)
        server.setblocking(False)
        return server

    async def run(
        self, request: Request, output: Output, stdin: BinaryIO | None = None, cpus: Sequence[int] = ()
    ) -> int:
        """Run one command to its end, on `cpus` if given; `OrreryEnvironment._execute` has the rules."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        out, out_inside = os.pipe()
        err, err_inside = os.pipe()
        null = os.open(os.devnull, os.O_RDONLY)
        body = {
            "argv": list(request.argv),
            "cwd": request.cwd,
            "env": request.env,
            "user": request.user,
            "cpus": list(cpus),
        }
        try:
            source = stdin.fileno() if stdin else null
            supervisor = await self._send(body, [theirs.fileno(), source, out_inside, err_inside])
        except BaseException:
            ours.close()
            os.close(out)
            os.close(err)
            raise
        finally:
            theirs.close()
            for handle in (out_inside, err_inside, null):
                os.close(handle)
        self._running.add(supervisor)
        try:
            return await self._follow(ours, {"stdout": out, "stderr": err}, output)
        except BaseException:
            await uninterrupted(self._kill(supervisor))
            raise
        finally:
            self._running.discard(supervisor)
            ours.close()
            for handle in (out, err):
                self._drain(handle)

    async def _follow(self, status: socket.socket, pipes: dict[Stream, int], output: Output) -> int:
        loop = asyncio.get_running_loop()
        ended = loop.create_task(loop.sock_recv(status, CHUNK))
        pumps = [loop.create_task(_pump(handle, name, output, ended)) for name, handle in pipes.items()]
        try:
            await asyncio.gather(ended, *pumps)
        finally:
            for task in (ended, *pumps):
                task.cancel()
            await asyncio.gather(ended, *pumps, return_exceptions=True)
        # No report at all: the supervisor itself was killed, by hand, for memory or with the sandbox.
        report: dict[str, Any] = json.loads(ended.result() or b'{"exit": -9}')
        if "error" in report:
            raise (UserError if report.get("kind") == "user" else InfrastructureError)(str(report["error"]))
        code = int(report["exit"])
        return 128 - code if code < 0 else code

    async def _kill(self, supervisor: int) -> None:
        if not await asyncio.to_thread(kill_tree, supervisor):
            assert self.on_runaway is not None
            await self.on_runaway()

    def _drain(self, handle: int) -> None:
        """Keep reading what background processes write, so that they do not die of a closed pipe."""
        loop = asyncio.get_running_loop()
        os.set_blocking(handle, False)

        def discard() -> None:
            try:
                if os.read(handle, CHUNK):
                    return
            except BlockingIOError:
                return
            except OSError:
                pass
            self._undrain(handle)

        self._draining.add(handle)
        loop.add_reader(handle, discard)

    def _undrain(self, handle: int) -> None:
        self._draining.discard(handle)
        asyncio.get_running_loop().remove_reader(handle)
        os.close(handle)

    async def close(self) -> None:
        """End the launcher. The sandbox has to be dead already, or its commands would lose their parent."""
        for handle in list(self._draining):
            self._undrain(handle)
        self._control.close()
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()

    @property
    def running(self) -> frozenset[int]:
        """Supervisors of the commands that run now, as the host numbers them."""
        return frozenset(self._running)


async def _pump(handle: int, stream: Stream, output: Output, ended: asyncio.Task[bytes]) -> None:
    """Pass everything on that a pipe carries until its end, or until the command ended and it is empty."""
    loop = asyncio.get_running_loop()
    os.set_blocking(handle, False)
    wake = asyncio.Event()
    ended.add_done_callback(lambda _: wake.set())
    leftover = LEFTOVER_CHUNKS
    while leftover:
        try:
            data = os.read(handle, CHUNK)
        except BlockingIOError:
            if ended.done():
                return
            wake.clear()
            loop.add_reader(handle, wake.set)
            try:
                await wake.wait()
            finally:
                loop.remove_reader(handle)
            continue
        if not data:
            return
        leftover -= ended.done()
        await output.write(data, stream)
        await asyncio.sleep(0)
