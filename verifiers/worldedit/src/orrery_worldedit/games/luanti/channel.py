"""Requests to the probe and events from it: one JSON object per line in two files outside the world.

The server's process can write the event file, so what is read here is untrusted until it has been validated.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, JsonValue, TypeAdapter, ValidationError

MAX_LINE = 64 << 20  # bytes; a whole registry dump is one line of about 1 MB
MAX_TOTAL = 512 << 20  # bytes over one server run


class ChannelError(Exception):
    """What the event file holds is not the probe's protocol."""


class Event(BaseModel):
    """Something the probe saw.

    Attributes:
        seq: 1, 2, 3, … within one server run.
        step: game step in which it happened; 0 while mods load.
        kind: such as `dig`, `join`, `hp`.
        data: what belongs to that kind.
    """

    model_config = ConfigDict(frozen=True)

    seq: int
    step: int
    kind: str
    data: dict[str, JsonValue]


class Reply(BaseModel):
    """The answer to one request; `result` is the value, or the error's text when `ok` is false."""

    model_config = ConfigDict(frozen=True)

    re: int
    step: int
    ok: bool
    result: JsonValue = None


class Request(BaseModel):
    """A piece of Lua for the probe's private environment, or one of its own routines."""

    id: int
    op: Literal["eval", "dump", "tamper"]
    code: str = ""
    arg: JsonValue = None


_MESSAGE: TypeAdapter[Event | Reply] = TypeAdapter(Event | Reply)


class Channel:
    """The judge's end. The probe opens the same two files once, when it loads.

    Args:
        folder: holds `cmd` (judge to probe) and `evt` (probe to judge); both start empty.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._requests = 0
        self._offset = 0
        self._rest = b""
        for name in ("cmd", "evt"):
            (folder / name).write_bytes(b"")
        self._cmd = (folder / "cmd").open("ab", buffering=0)
        self._evt = os.open(folder / "evt", os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)

    def send(self, op: Literal["eval", "dump", "tamper"], code: str = "", arg: JsonValue = None) -> int:
        """Queue a request; the probe takes it in its next step. Returns the id its reply carries."""
        self._requests += 1
        request = Request(id=self._requests, op=op, code=code, arg=arg)
        self._cmd.write(json.dumps(request.model_dump()).encode() + b"\n")
        return self._requests

    def read(self) -> list[Event | Reply]:
        """Everything written since the last call; an unfinished last line waits for its end."""
        size = os.fstat(self._evt).st_size
        if size > MAX_TOTAL:
            raise ChannelError(f"the probe's output grew to {size} bytes")
        data = self._rest + os.pread(self._evt, max(0, size - self._offset), self._offset)
        self._offset = max(size, self._offset)
        *lines, self._rest = data.split(b"\n")
        if max(map(len, [*lines, self._rest])) > MAX_LINE:
            raise ChannelError("a line of the probe's output is too long")
        return [_parse(line) for line in lines if line]

    def close(self) -> None:
        self._cmd.close()
        os.close(self._evt)


class Transcript:
    """What the probe has said over all runs of the server on one world.

    Attributes:
        events: numbered and dated through all runs.
        replies: by request, until somebody takes them.
        mods: the mods that this run has loaded; None until it has.
    """

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.replies: dict[int, Reply] = {}
        self.mods: list[str] | None = None
        self._events_before = 0
        self._steps_before = 0

    def new_run(self, steps_before: int, events_before: int) -> None:
        """The server starts again and counts from zero, after so many steps and events of earlier runs."""
        self._events_before, self._steps_before = events_before, steps_before
        del self.events[events_before:]
        self.replies.clear()
        self.mods = None

    def take(self, messages: list[Event | Reply]) -> None:
        """Add what was read.

        Raises:
            ChannelError: an event is missing or doubled.
        """
        for message in messages:
            if isinstance(message, Reply):
                self.replies[message.re] = message
                continue
            due = len(self.events) - self._events_before + 1
            if message.seq != due:
                raise ChannelError(f"event {message.seq} came where {due} was due")
            if message.kind == "mods_loaded":
                names = message.data.get("mods")
                self.mods = [str(name) for name in names] if isinstance(names, list) else []
            when = {"seq": len(self.events) + 1, "step": message.step + self._steps_before}
            self.events.append(message.model_copy(update=when))


def _parse(line: bytes) -> Event | Reply:
    try:
        return _MESSAGE.validate_python(json.loads(printable(line)))
    except (ValueError, ValidationError, RecursionError) as error:
        raise ChannelError(f"not a line of the probe: {line[:200]!r}") from error


def printable(line: bytes) -> str:
    r"""Decode a line of JSON; a byte that is not UTF-8 becomes the four characters `\xNN`.

    The probe escapes every backslash, so an odd byte never stands inside another escape.
    """
    text = line.decode("utf-8", "surrogateescape")
    return re.sub("[\udc80-\udcff]", lambda m: f"\\\\x{ord(m.group()) - 0xDC00:02x}", text)
