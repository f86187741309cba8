"""Wire format of Luanti's network protocol: primitive values, datagrams and the reliable layer.

Everything here is pure bookkeeping: no socket and no clock of its own. Input comes from a server that runs
submitted code, so every buffer is bounded and a malformed packet raises `WireError` or is counted as a fault.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field

PROTOCOL_ID = 0x4F457403
PROTOCOL_MIN, PROTOCOL_MAX = 37, 41
SERIALIZATION = 28  # the last block format with zlib; every supported server still writes it
NODE = 10.0  # network units per node

CONTROL, ORIGINAL, SPLIT, RELIABLE = range(4)
ACK, SET_PEER_ID, PING, DISCONNECT = range(4)
CHANNELS = 3
FIRST_SEQUENCE = 65500

RESEND_S = 0.5
PING_S = 5.0
CHUNK = 480  # bytes of a split body; keeps datagrams under the servers' 512-byte limit
MAX_BODY = 500

MAX_BUFFERED = 64 << 20  # bytes held back per connection for reordering and reassembly
MAX_WINDOW = 0x8000  # sequence numbers ahead of the expected one that count as new
MAX_SPLITS = 256  # unfinished split messages per channel
MAX_FAULTS = 1000
MAX_INFLATED = 32 << 20

Vec = tuple[float, float, float]
NodePos = tuple[int, int, int]

_U8, _S8 = struct.Struct(">B"), struct.Struct(">b")
_U16, _S16 = struct.Struct(">H"), struct.Struct(">h")
_U32, _S32 = struct.Struct(">I"), struct.Struct(">i")
_U64, _F32 = struct.Struct(">Q"), struct.Struct(">f")
_V2F, _V3F, _V3S16 = struct.Struct(">ff"), struct.Struct(">fff"), struct.Struct(">hhh")
_V2S16, _V2S32 = struct.Struct(">hh"), struct.Struct(">ii")


class WireError(ValueError):
    """A packet that does not follow the protocol."""


class Reader:
    """Reads big-endian values from `data`, starting at `pos`; raises `WireError` past the end."""

    __slots__ = ("data", "pos")

    def __init__(self, data: bytes, pos: int = 0) -> None:
        self.data = data
        self.pos = pos

    def _unpack(self, form: struct.Struct) -> tuple[float, ...]:
        try:
            values = form.unpack_from(self.data, self.pos)
        except struct.error:
            raise WireError(f"needs {form.size} bytes at {self.pos}, has {self.left}") from None
        self.pos += form.size
        return values

    @property
    def left(self) -> int:
        return len(self.data) - self.pos

    def u8(self) -> int:
        if self.pos >= len(self.data):
            raise WireError(f"needs a byte at {self.pos}, has none")
        self.pos += 1
        return self.data[self.pos - 1]

    def flag(self) -> bool:
        return self.u8() != 0

    def s8(self) -> int:
        return int(self._unpack(_S8)[0])

    def u16(self) -> int:
        return int(self._unpack(_U16)[0])

    def s16(self) -> int:
        return int(self._unpack(_S16)[0])

    def u32(self) -> int:
        return int(self._unpack(_U32)[0])

    def s32(self) -> int:
        return int(self._unpack(_S32)[0])

    def u64(self) -> int:
        return int(self._unpack(_U64)[0])

    def f32(self) -> float:
        return self._unpack(_F32)[0]

    def v2f(self) -> tuple[float, float]:
        x, y = self._unpack(_V2F)
        return x, y

    def v3f(self) -> Vec:
        x, y, z = self._unpack(_V3F)
        return x, y, z

    def point(self) -> Vec:
        """A position or velocity in network units, returned in nodes."""
        x, y, z = self._unpack(_V3F)
        return x / NODE, y / NODE, z / NODE

    def v3s16(self) -> NodePos:
        x, y, z = self._unpack(_V3S16)
        return int(x), int(y), int(z)

    def v2s16(self) -> tuple[int, int]:
        x, y = self._unpack(_V2S16)
        return int(x), int(y)

    def v2s32(self) -> tuple[int, int]:
        x, y = self._unpack(_V2S32)
        return int(x), int(y)

    def take(self, count: int) -> bytes:
        if count > self.left:
            raise WireError(f"needs {count} bytes at {self.pos}, has {self.left}")
        self.pos += count
        return self.data[self.pos - count : self.pos]

    def rest(self) -> bytes:
        return self.take(self.left)

    def bytes16(self) -> bytes:
        return self.take(self.u16())

    def bytes32(self) -> bytes:
        return self.take(self.u32())

    def str16(self) -> str:
        return self.take(self.u16()).decode("utf-8", "replace")

    def str32(self) -> str:
        return self.take(self.u32()).decode("utf-8", "replace")

    def wide(self) -> str:
        return self.take(2 * self.u16()).decode("utf-16-be", "replace")


def u8(value: int) -> bytes:
    return _U8.pack(value)


def u16(value: int) -> bytes:
    return _U16.pack(value)


def u32(value: int) -> bytes:
    return _U32.pack(value)


def v3s16(pos: NodePos) -> bytes:
    return _V3S16.pack(*pos)


def str16(value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return u16(len(data)) + data


def str32(value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return u32(len(data)) + data


def wide(value: str) -> bytes:
    data = value.encode("utf-16-be")
    return u16(len(data) // 2) + data


def inflate(data: bytes, limit: int = MAX_INFLATED) -> tuple[bytes, bytes]:
    """One zlib stream from the front of `data`: its content and the bytes behind it."""
    stream = zlib.decompressobj()
    try:
        out = stream.decompress(data, limit)
    except zlib.error as error:
        raise WireError(f"zlib: {error}") from None
    if not stream.eof:
        full = bool(stream.unconsumed_tail)
        raise WireError(f"zlib: {'more than ' + str(limit) + ' bytes' if full else 'stream is cut off'}")
    return out, stream.unused_data


@dataclass
class _Pending:
    packet: bytes
    sent_at: float


@dataclass
class _Split:
    count: int
    parts: dict[int, bytes] = field(default_factory=dict)


@dataclass
class _Channel:
    next_out: int = FIRST_SEQUENCE
    next_split: int = FIRST_SEQUENCE
    expected: int = FIRST_SEQUENCE
    unacked: dict[int, _Pending] = field(default_factory=dict)
    early: dict[int, bytes] = field(default_factory=dict)
    splits: dict[int, _Split] = field(default_factory=dict)


class Connection:
    """The reliable layer of one peer: acknowledges, reorders, reassembles and resends.

    `transmit` sends one datagram. The caller passes its clock (seconds) to every method that needs one.
    """

    def __init__(self, transmit: Callable[[bytes], None]) -> None:
        self._transmit = transmit
        self._channels = [_Channel() for _ in range(CHANNELS)]
        self._buffered = 0
        self._pinged_at = 0.0
        self.peer_id = 0
        self.closed = False
        self.faults: list[str] = []
        self.datagrams_in = 0
        self.datagrams_out = 0

    @property
    def idle(self) -> bool:
        """Whether everything that was sent reliably has been acknowledged."""
        return not any(channel.unacked for channel in self._channels)

    def send(self, body: bytes, channel: int, now: float, reliable: bool = True) -> None:
        """Send one command. Long bodies are split and always reliable."""
        if len(body) > MAX_BODY:
            state = self._channels[channel]
            parts = [body[i : i + CHUNK] for i in range(0, len(body), CHUNK)]
            if len(parts) > 0xFFFF:
                raise WireError(f"a body of {len(body)} bytes does not fit in one split message")
            number, state.next_split = state.next_split, (state.next_split + 1) & 0xFFFF
            for index, part in enumerate(parts):
                head = struct.pack(">BHHH", SPLIT, number, len(parts), index)
                self._send_reliable(channel, head + part, now)
        elif reliable:
            self._send_reliable(channel, bytes([ORIGINAL]) + body, now)
        else:
            self._send_raw(channel, bytes([ORIGINAL]) + body)

    def disconnect(self) -> None:
        self._send_raw(0, bytes([CONTROL, DISCONNECT]))
        self.closed = True

    def receive(self, datagram: bytes) -> list[bytes]:
        """Handle one datagram; returns the commands that are now complete, in order."""
        self.datagrams_in += 1
        commands: list[bytes] = []
        try:
            reader = Reader(datagram)
            if reader.u32() != PROTOCOL_ID:
                raise WireError("not a packet of this protocol")
            reader.u16()
            channel = reader.u8()
            if channel >= CHANNELS:
                raise WireError(f"channel {channel}")
            self._packet(channel, reader.rest(), commands)
        except WireError as error:
            self._fault(str(error))
        return commands

    def upkeep(self, now: float) -> None:
        """Resend what was not acknowledged in time and keep the connection alive."""
        for number, channel in enumerate(self._channels):
            for pending in channel.unacked.values():
                if now - pending.sent_at > RESEND_S:
                    pending.sent_at = now
                    self._send_raw(number, pending.packet)
        if self.peer_id and now - self._pinged_at > PING_S:
            self._pinged_at = now
            self._send_reliable(0, bytes([CONTROL, PING]), now)

    def _send_raw(self, channel: int, packet: bytes) -> None:
        self.datagrams_out += 1
        self._transmit(struct.pack(">IHB", PROTOCOL_ID, self.peer_id, channel) + packet)

    def _send_reliable(self, channel: int, packet: bytes, now: float) -> None:
        state = self._channels[channel]
        number, state.next_out = state.next_out, (state.next_out + 1) & 0xFFFF
        wrapped = struct.pack(">BH", RELIABLE, number) + packet
        state.unacked[number] = _Pending(wrapped, now)
        self._send_raw(channel, wrapped)

    def _fault(self, text: str) -> None:
        if len(self.faults) < MAX_FAULTS:
            self.faults.append(text)

    def _packet(self, channel: int, packet: bytes, commands: list[bytes]) -> None:
        if packet[:1] == bytes([RELIABLE]):
            self._reliable(channel, packet, commands)
        else:
            self._plain(channel, packet, commands)

    def _reliable(self, channel: int, packet: bytes, commands: list[bytes]) -> None:
        state = self._channels[channel]
        number = Reader(packet, 1).u16()
        ahead = (number - state.expected) & 0xFFFF
        if ahead and ahead < MAX_WINDOW and number not in state.early:
            if self._buffered + len(packet) > MAX_BUFFERED:
                self._fault("reorder buffer is full")
                return  # without an acknowledgement the server sends it again later
            state.early[number] = packet[3:]
            self._buffered += len(packet)
        self._send_raw(channel, struct.pack(">BBH", CONTROL, ACK, number))
        if ahead:
            return
        inner: bytes | None = packet[3:]
        while inner is not None:
            state.expected = (state.expected + 1) & 0xFFFF
            try:
                self._plain(channel, inner, commands)
            except WireError as error:
                self._fault(str(error))  # the packets behind it are still in order
            inner = state.early.pop(state.expected, None)
            if inner is not None:
                self._buffered -= len(inner) + 3

    def _plain(self, channel: int, packet: bytes, commands: list[bytes]) -> None:
        reader = Reader(packet)
        kind = reader.u8()
        if kind == ORIGINAL:
            commands.append(reader.rest())
        elif kind == CONTROL:
            self._control(channel, reader)
        elif kind == SPLIT:
            self._split(channel, reader, commands)
        else:
            raise WireError(f"packet type {kind} inside a datagram")

    def _control(self, channel: int, reader: Reader) -> None:
        kind = reader.u8()
        if kind == ACK:
            self._channels[channel].unacked.pop(reader.u16(), None)
        elif kind == SET_PEER_ID:
            self.peer_id = reader.u16()
        elif kind == DISCONNECT:
            self.closed = True

    def _split(self, channel: int, reader: Reader, commands: list[bytes]) -> None:
        splits = self._channels[channel].splits
        number, count, index = reader.u16(), reader.u16(), reader.u16()
        if index >= count:
            raise WireError(f"part {index} of a message in {count} parts")
        part = reader.rest()
        if number not in splits and len(splits) >= MAX_SPLITS:
            self._drop_split(splits, next(iter(splits)))
        split = splits.setdefault(number, _Split(count))
        if split.count != count:
            self._drop_split(splits, number)
            raise WireError(f"message {number} changed from {split.count} to {count} parts")
        if index in split.parts:
            return
        if self._buffered + len(part) > MAX_BUFFERED:
            self._drop_split(splits, number)
            raise WireError("reassembly buffer is full")
        split.parts[index] = part
        self._buffered += len(part)
        if len(split.parts) == count:
            commands.append(b"".join(split.parts[i] for i in range(count)))
            self._drop_split(splits, number)

    def _drop_split(self, splits: dict[int, _Split], number: int) -> None:
        self._buffered -= sum(map(len, splits.pop(number).parts.values()))
