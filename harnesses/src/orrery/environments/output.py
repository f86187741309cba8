"""Where the output of a command goes: kept in memory or written to a file, both with a bound."""

from __future__ import annotations

import codecs
from collections import deque
from collections.abc import Awaitable, Callable
from typing import BinaryIO, Literal, Protocol

Stream = Literal["stdout", "stderr"]
Callback = Callable[[str, Stream], Awaitable[None]]

KEPT_BYTES = 16 << 20
"""Most bytes kept of one stream of one command; the middle of anything longer is left out."""


class Output(Protocol):
    """Takes the chunks of a running command in the order in which they came."""

    async def write(self, data: bytes, stream: Stream) -> None: ...


class HeadTail:
    """The first and the last half of `limit` bytes, so that neither a cause nor an outcome is lost."""

    def __init__(self, limit: int = KEPT_BYTES) -> None:
        self._half = limit // 2
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_bytes = 0
        self.dropped = 0

    def add(self, data: bytes) -> None:
        room = self._half - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if not data:
            return
        self._tail.append(data)
        self._tail_bytes += len(data)
        while self._tail_bytes - len(self._tail[0]) >= self._half:
            gone = self._tail.popleft()
            self._tail_bytes -= len(gone)
            self.dropped += len(gone)

    def text(self) -> str:
        tail = b"".join(self._tail)
        surplus = max(0, len(tail) - self._half)
        dropped = self.dropped + surplus
        if not dropped:
            return (bytes(self._head) + tail).decode(errors="replace")
        marker = f"\n[orrery: {dropped} bytes left out]\n"
        return self._head.decode(errors="replace") + marker + tail[surplus:].decode(errors="replace")


class Capture:
    """Keeps both streams in bounds and passes each chunk on as text."""

    def __init__(self, callback: Callback | None = None, limit: int = KEPT_BYTES) -> None:
        self._callback = callback
        self._kept = {"stdout": HeadTail(limit), "stderr": HeadTail(limit)}
        decoder = codecs.getincrementaldecoder("utf-8")
        self._decoders = {name: decoder(errors="replace") for name in self._kept}

    async def write(self, data: bytes, stream: Stream) -> None:
        self._kept[stream].add(data)
        if self._callback and (text := self._decoders[stream].decode(data)):
            await self._callback(text, stream)

    @property
    def stdout(self) -> str:
        return self._kept["stdout"].text()

    @property
    def stderr(self) -> str:
        return self._kept["stderr"].text()


class TooLarge(Exception):
    """A command wrote more than a transfer may carry."""


class FileOutput:
    """Standard output into an open file, standard error kept in bounds.

    Raises:
        TooLarge: from `write`, once the file would grow beyond `limit` bytes.
    """

    def __init__(self, file: BinaryIO, limit: int) -> None:
        self._file = file
        self._room = limit
        self._limit = limit
        self._errors = HeadTail(64 << 10)

    async def write(self, data: bytes, stream: Stream) -> None:
        if stream == "stderr":
            self._errors.add(data)
            return
        self._room -= len(data)
        if self._room < 0:
            raise TooLarge(f"more than {self._limit} bytes")
        self._file.write(data)

    @property
    def stderr(self) -> str:
        return self._errors.text()
