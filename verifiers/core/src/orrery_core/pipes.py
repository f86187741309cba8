"""Judge and subject talking: one JSON object per line over a socket, every line held against a schema.

channel, end = open_pair()
with isolation.spawn(argv, stdin=end, ...) as subject:   # the subject reads and writes descriptor 0
    os.close(end)
    answer = channel.ask(Question(...), Answer)
"""

from __future__ import annotations

import json
import select
import socket
import time
from types import TracebackType
from typing import Literal, Self

from pydantic import BaseModel, ValidationError

from orrery_core.errors import OrreryError
from orrery_core.results import clean_json

LINE_MAX = 1 << 20
TIMEOUT_S = 30.0
CHUNK = 1 << 16
SHOWN = 80

Fault = Literal["closed", "timeout", "too long", "not JSON", "schema"]


class SubjectProtocolError(OrreryError):
    """The subject did not keep to the protocol: its fault, never the judge's.

    Attributes:
        fault: closed, timeout, too long, not JSON, or schema.
    """

    def __init__(self, fault: Fault, message: str) -> None:
        super().__init__(f"{fault}: {message}")
        self.fault = fault


class Channel:
    """The judge's end.

    After an error the two sides may be out of step, so the channel closes and every later call says so.

    Args:
        line_max: bytes of one line, either way.
        timeout_s: seconds for one send or receive, unless the call says otherwise.
    """

    def __init__(
        self, connection: socket.socket, *, line_max: int = LINE_MAX, timeout_s: float = TIMEOUT_S
    ) -> None:
        self._socket = connection
        self._socket.setblocking(False)
        self._line_max = line_max
        self._timeout_s = timeout_s
        self._buffer = bytearray()
        self._open = True

    def send(self, message: BaseModel, timeout_s: float | None = None) -> None:
        """Send one line.

        Raises:
            SubjectProtocolError: the subject is gone, or does not read.
            ValueError: the line would be too long or holds a number that is not finite (the judge's mistake).
        """
        plain = clean_json(message.model_dump(mode="json"))
        line = json.dumps(plain, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode() + b"\n"
        if len(line) > self._line_max:
            raise ValueError(f"a line of {len(line)} bytes is longer than {self._line_max}")
        deadline = self._deadline(timeout_s)
        rest = memoryview(line)
        while rest:
            self._ready(deadline, write=True)
            try:
                rest = rest[self._socket.send(rest) :]
            except BlockingIOError:
                continue
            except OSError as error:
                raise self._fail("closed", f"the subject closed the channel ({error.strerror})") from error

    def receive[M: BaseModel](self, model: type[M], timeout_s: float | None = None) -> M:
        """Wait for one line and return it as `model`.

        Raises:
            SubjectProtocolError: too late, too long, not JSON, against the schema, or the subject is gone.
        """
        line = self._line(self._deadline(timeout_s))
        try:
            plain = clean_json(json.loads(line))
        except (ValueError, RecursionError) as error:
            shown = line[:SHOWN].decode(errors="replace")
            raise self._fail("not JSON", f"{error} in {shown!r}") from error
        try:
            return model.model_validate(plain)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(str(part) for part in first["loc"]) or "the object"
            raise self._fail("schema", f"{model.__name__}: {where}: {first['msg']}") from error

    def ask[M: BaseModel](self, message: BaseModel, model: type[M], timeout_s: float | None = None) -> M:
        """Send `message` and wait for the answer as `model`."""
        self.send(message, timeout_s)
        return self.receive(model, timeout_s)

    def close(self) -> None:
        """Close this end; no effect the second time."""
        self._open = False
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _line(self, deadline: float) -> bytes:
        searched = 0
        while (end := self._buffer.find(b"\n", searched)) < 0:
            searched = len(self._buffer)
            if searched > self._line_max:
                raise self._fail("too long", f"a line of more than {self._line_max} bytes")
            self._ready(deadline, write=False)
            try:
                chunk = self._socket.recv(CHUNK)
            except BlockingIOError:
                continue
            except OSError as error:
                raise self._fail("closed", f"the subject closed the channel ({error.strerror})") from error
            if not chunk:
                raise self._fail("closed", "the subject closed the channel")
            self._buffer += chunk
        if end > self._line_max:
            raise self._fail("too long", f"a line of {end} bytes, more than {self._line_max}")
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return line

    def _deadline(self, timeout_s: float | None) -> float:
        if not self._open:
            raise SubjectProtocolError("closed", "the channel was closed earlier")
        return time.monotonic() + (self._timeout_s if timeout_s is None else timeout_s)

    def _ready(self, deadline: float, *, write: bool) -> None:
        poller = select.poll()
        poller.register(self._socket, select.POLLOUT if write else select.POLLIN)
        if not poller.poll(max(0.0, deadline - time.monotonic()) * 1000):
            raise self._fail("timeout", "the subject did not " + ("read" if write else "answer") + " in time")

    def _fail(self, fault: Fault, message: str) -> SubjectProtocolError:
        self.close()
        return SubjectProtocolError(fault, message)


def open_pair(*, line_max: int = LINE_MAX, timeout_s: float = TIMEOUT_S) -> tuple[Channel, int]:
    """A channel, and the subject's end: a descriptor for `spawn(stdin=...)` that the caller then closes."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    return Channel(ours, line_max=line_max, timeout_s=timeout_s), theirs.detach()
