"""Commands inside a container: streamed output, and an end that reaches every process they started.

The engine's API can start a command but not end it, and the SDK reads the stream with a blocking socket whose
HTTP parser may swallow the first bytes. So the stream is read here, on the event loop: one connection per
command.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import struct
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO

from docker.errors import APIError

from orrery.environments.engine_service import Engine
from orrery.environments.output import Capture, Output, Stream
from orrery.environments.processes import uninterrupted

MARK = "ORRERY_EXEC"
_STREAMS: dict[int, Stream] = {0: "stdout", 1: "stdout", 2: "stderr"}
_CHUNK = 1 << 18
_ATTEMPTS = 8

# Kills the processes of one command until a look finds none. They are: those with its mark in their
# environment; what descends from them or shares a session with them; and, because a child may clear its
# environment, leave the session and lose its parent, also what started after the command and belongs to no
# other command of ours. Plain sh and grep, so that any image will do. Fields of stat: 1 state, 2 parent, 4
# session, 20 start time.
_KILL = r"""
mark=$1 own=$$ since=
for round in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
  ours=" " others=" "
  for file in $(grep -lszxF "$mark" /proc/[0-9]*/environ); do
    pid=${file#/proc/}
    ours="$ours${pid%/environ} "
  done
  for file in $(grep -lsz "^ORRERY_EXEC=" /proc/[0-9]*/environ); do
    pid=${file#/proc/} pid=${pid%/environ}
    case "$ours" in *" $pid "*) ;; *) others="$others$pid " ;; esac
  done
  grown=1
  while [ $grown = 1 ]; do
    grown=0 unknown=" "
    for folder in /proc/[0-9]*; do
      pid=${folder#/proc/}
      if [ $pid = 1 ] || [ $pid = $own ]; then continue; fi
      IFS= read -r line 2>/dev/null <$folder/stat || continue
      set -- ${line##*) }
      case "$1" in [ZX]) continue ;; esac
      case "$ours" in *" $pid "*)
        if [ -z "$since" ] || [ ${20} -lt $since ]; then since=${20}; fi
        continue ;;
      esac
      case "$others" in *" $pid "*) continue ;; esac
      case "$ours" in *" $2 "* | *" $4 "*) ours="$ours$pid "; grown=1; continue ;; esac
      case "$others" in *" $2 "* | *" $4 "*) others="$others$pid "; grown=1; continue ;; esac
      if [ -n "$since" ] && [ ${20} -ge $since ]; then unknown="$unknown$pid "; fi
    done
  done
  [ "$ours$unknown" = "  " ] && exit 0
  kill -KILL $ours $unknown 2>/dev/null
done
exit 1
"""


class CommandRefused(RuntimeError):
    """The engine could not start the command: an unknown user, a missing folder, a container that is gone."""


@dataclass
class ContainerCommand:
    """One command in a container, to be run once.

    Attributes:
        user: name, uid or `uid:gid`; empty for the image's own.
        cwd: folder inside; None for the image's own.
        privileged: with every capability, for our own housekeeping only.
        last_resort: has to end every process of the container; called when this command's cannot be killed.
    """

    engine: Engine
    container: str
    argv: Sequence[str]
    user: str = ""
    cwd: str | None = None
    env: Mapping[str, str] | None = None
    privileged: bool = False
    last_resort: Callable[[], Awaitable[None]] | None = None

    def __post_init__(self) -> None:
        self._mark = uuid.uuid4().hex

    async def run(self, output: Output, stdin: BinaryIO | None = None) -> int:
        """Runs to the end and returns the exit code.

        When this is cancelled, or `output` raises, every process that the command started is killed first;
        what a command that ended by itself left in the background lives on.

        Raises:
            CommandRefused: the engine could not start it, or its container went away.
        """
        guarded = _Guarded(output)
        exec_id: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        stream = asyncio.create_task(self._stream(guarded, stdin, exec_id))
        try:
            await asyncio.wait({stream, guarded.failure}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await uninterrupted(self._end(stream))
            raise
        if guarded.failure.done():
            await uninterrupted(self._end(stream))
            await guarded.failure
        await stream
        return await self._exit_code(await exec_id)

    async def _stream(self, output: Output, stdin: BinaryIO | None, exec_id: asyncio.Future[str]) -> None:
        """Creates and starts the command, and passes its output on until the stream ends."""
        try:
            created = await self.engine.call(
                self.engine.client.api.exec_create,
                self.container,
                list(self.argv),
                stdin=stdin is not None,
                environment={**(self.env or {}), MARK: self._mark},
                workdir=self.cwd,
                user=self.user,
                privileged=self.privileged,
            )
        except APIError as error:
            raise CommandRefused(f"the engine refused a command: {error.explanation or error}") from error
        exec_id.set_result(created["Id"])
        reader, writer = await asyncio.open_unix_connection(str(self.engine.socket))
        try:
            writer.write(_start_request(created["Id"], self.engine.client.api.api_version))
            await _expect_stream(reader)
            feeder = asyncio.create_task(_feed(writer, stdin))
            try:
                await _read_frames(reader, output)
            finally:
                feeder.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await feeder
        finally:
            writer.close()

    async def _exit_code(self, exec_id: str) -> int:
        try:
            state = await self.engine.call(self.engine.client.api.exec_inspect, exec_id)
        except APIError as error:
            raise CommandRefused(f"the engine lost a command: {error.explanation or error}") from error
        code = state.get("ExitCode")
        if code is None or code < 0:
            raise CommandRefused("the engine lost a command: its container was stopped")
        return int(code)

    async def _end(self, stream: asyncio.Task[None]) -> None:
        """Kills until a look after the end of the stream finds nothing: a command may just be starting."""
        for _ in range(_ATTEMPTS):
            over = stream.done()
            try:
                clean = await self._kill()
            except CommandRefused:  # no container, no processes
                stream.cancel()
                return
            if clean and over:
                stream.cancelled() or stream.exception()  # its outcome no longer matters
                return
            await asyncio.wait({stream}, timeout=1)
        stream.cancel()
        if self.last_resort:
            await self.last_resort()

    async def _kill(self) -> bool:
        killer = ContainerCommand(
            self.engine,
            self.container,
            ["/bin/sh", "-c", _KILL, "sh", f"{MARK}={self._mark}"],
            user="0:0",
            cwd="/",
            privileged=True,  # reading another user's environment needs the ptrace capability
        )
        return await killer.run(Capture()) == 0


class _Guarded:
    """An output that goes on swallowing after it failed, so that the end of the stream stays visible."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self.failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def write(self, data: bytes, stream: Stream) -> None:
        if self.failure.done():
            return
        try:
            await self._output.write(data, stream)
        except Exception as error:
            self.failure.set_exception(error)


def _start_request(exec_id: str, version: str) -> bytes:
    body = json.dumps({"Detach": False, "Tty": False})
    lines = (
        f"POST /v{version}/exec/{exec_id}/start HTTP/1.1",
        "Host: engine",
        "Content-Type: application/json",
        "Connection: Upgrade",
        "Upgrade: tcp",
        f"Content-Length: {len(body)}",
        "",
        body,
    )
    return "\r\n".join(lines).encode()


async def _expect_stream(reader: asyncio.StreamReader) -> None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin1")
    except asyncio.IncompleteReadError as error:
        raise CommandRefused("the engine closed the connection of a command") from error
    status = head.split(" ", 2)[1]
    if status not in ("101", "200"):
        body = await reader.read(4096)
        raise CommandRefused(
            f"the engine refused a command ({status}): {body.decode(errors='replace').strip()}"
        )


async def _read_frames(reader: asyncio.StreamReader, output: Output) -> None:
    """The engine's framing: one byte of stream number, three of padding, four of length, then the bytes."""
    while True:
        try:
            head = await reader.readexactly(8)
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        if head[0] not in _STREAMS:  # Podman reports a late refusal as bare JSON
            text = (head + await reader.read(4096)).decode(errors="replace").strip()
            raise CommandRefused(f"the engine refused a command: {text}")
        remaining = struct.unpack(">I", head[4:])[0]
        while remaining:
            data = await reader.read(min(remaining, _CHUNK))
            if not data:
                return
            remaining -= len(data)
            await output.write(data, _STREAMS[head[0]])


async def _feed(writer: asyncio.StreamWriter, source: BinaryIO | None) -> None:
    if source is None:
        return
    with contextlib.suppress(ConnectionError):  # a command may stop reading early
        while data := await asyncio.to_thread(source.read, _CHUNK):
            writer.write(data)
            await writer.drain()
        writer.write_eof()
