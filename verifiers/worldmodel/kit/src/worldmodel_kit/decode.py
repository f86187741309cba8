"""From native integers to tensors.

A game stores one row of 16-bit integers per frame (its *native columns*). A `Decode` says what they mean: which
column is the x of which slot, which bit says that a brick is there, what a slot holds that never changes. It is
written to the manifest of a data set, so that data is read without the game.

`Decode.frames` writes float32 frames. It is one compiled loop, and faster than reading the same frames from disk.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from worldmodel_kit import schema

F = schema.STATE_DIM

ALWAYS, ABOVE, BIT = 0, 1, 2


@dataclass(frozen=True)
class Ref:
    """A value: `column * scale + offset`; without a column, `offset`."""

    column: str | None
    scale: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True)
class Alive:
    """Alive where the column is above a number, or where a bit of it is set.

    Give one of `above` and `bit`.
    """

    column: str
    above: int | None = None
    bit: int | None = None

    def __post_init__(self) -> None:
        if (self.above is None) == (self.bit is None):
            raise ValueError(f"alive by column {self.column!r}: give one of above and bit")


@dataclass(frozen=True)
class Mover:
    """A slot whose position comes from columns.

    `lag` reads the position that the columns had so many frames ago: a snake's body follows its head.
    Without `velocity`, the velocity is the last change of position.
    """

    slot: int
    x: Ref
    y: Ref
    alive: Alive | None = None
    velocity: tuple[Ref, Ref] | None = None
    fields: Mapping[str, Ref] = field(default_factory=dict)
    lag: int = 0


@dataclass(frozen=True)
class Static:
    """A slot that never moves: it holds its template while it is alive."""

    slot: int
    alive: Alive | None = None


@dataclass(frozen=True)
class ActionColumn:
    """Which action slot a stored action column fills, and its factor."""

    name: str
    scale: float = 1.0


class Tables(NamedTuple):
    """A `Decode` as arrays, for compiled code."""

    movers: NDArray[np.int64]
    """[M, 9]: slot, x column, y column, lag, kind of alive, its column, its number, vx column, vy column (-1: none)."""
    factors: NDArray[np.float32]
    """[M, 8]: scale and offset of x, y, vx, vy."""
    fields: NDArray[np.int64]
    """[K, 3]: mover, state feature, column."""
    field_factors: NDArray[np.float32]
    """[K, 2]: scale and offset."""
    statics: NDArray[np.int64]
    """[S, 4]: slot, kind of alive, its column, its number."""
    template: NDArray[np.float32]
    """[N * 23]"""
    wrap: NDArray[np.bool_]
    """[2]: positions wrap around in x, in y."""
    globals_: NDArray[np.int64]
    """[K, 2]: global, column."""
    global_factors: NDArray[np.float32]
    """[K, 2]: scale and offset."""
    actions: NDArray[np.int64]
    """[A]: action slot of each stored column."""
    action_scales: NDArray[np.float32]
    """[A]"""


@dataclass(frozen=True)
class Decode:
    """What a game's native columns mean.

    Attributes:
        columns: names of the native columns.
        registry: float32 [N, 34].
        template: float32 [N, 23]: what an alive slot holds before columns are written over it.
        gameplay_mask: bool [N, 14].
        wrap: whether positions wrap around in x and in y (period 1).
        lead: rows before frame 0 that lagging movers need.
    """

    columns: tuple[str, ...]
    action_columns: tuple[ActionColumn, ...]
    registry: NDArray[np.float32]
    template: NDArray[np.float32]
    gameplay_mask: NDArray[np.bool_]
    movers: tuple[Mover, ...]
    statics: tuple[Static, ...]
    globals_: Mapping[str, Ref]
    wrap: tuple[bool, bool] = (False, False)
    lead: int = 0

    def __post_init__(self) -> None:
        slots = [mover.slot for mover in self.movers] + [static.slot for static in self.statics]
        if sorted(slots) != list(range(self.slots)):
            raise ValueError(f"slots 0 to {self.slots - 1} must each be described once, not {sorted(slots)}")
        if any(mover.lag > self.lead for mover in self.movers):
            raise ValueError(f"a mover lags by more than the {self.lead} rows before frame 0")
        if self.template.shape != (self.slots, F) or self.gameplay_mask.shape != (
            self.slots,
            schema.GAMEPLAY_DIM,
        ):
            raise ValueError("template and gameplay_mask must have one row per slot")

    @property
    def slots(self) -> int:
        """N, the number of entity slots."""
        return int(self.registry.shape[0])

    @property
    def mutable(self) -> NDArray[np.bool_]:
        """bool [N]: slots to be predicted."""
        return self.registry[:, schema.MUTABLE] > 0.5

    @cached_property
    def tables(self) -> Tables:
        """The same as arrays.

        Raises:
            ValueError: a column, field or global of an unknown name.
        """
        index = {name: i for i, name in enumerate(self.columns)}

        def column(ref: Ref | Alive) -> int:
            if ref.column is None:
                return -1
            if ref.column not in index:
                raise ValueError(f"no native column {ref.column!r}; there are {', '.join(self.columns)}")
            return index[ref.column]

        def life(alive: Alive | None) -> tuple[int, int, int]:
            if alive is None:
                return ALWAYS, 0, 0
            if alive.bit is not None:
                return BIT, column(alive), alive.bit
            assert alive.above is not None
            return ABOVE, column(alive), alive.above

        movers, factors, fields, field_factors = [], [], [], []
        for m, mover in enumerate(self.movers):
            kind, alive_column, number = life(mover.alive)
            vx, vy = mover.velocity or (Ref(None), Ref(None))
            own = mover.velocity is not None
            movers.append(
                (mover.slot, column(mover.x), column(mover.y), mover.lag, kind, alive_column, number)
                + ((column(vx), column(vy)) if own else (-2, -2))
            )
            factors.append(
                [
                    part
                    for ref in (mover.x, mover.y, vx, vy)
                    for part in (ref.scale if ref.column else 0.0, ref.offset)
                ]
            )
            for name, ref in mover.fields.items():
                fields.append((m, schema.gameplay_index(name), column(ref)))
                field_factors.append((ref.scale if ref.column else 0.0, ref.offset))
        pairs = self.globals_.items()
        return Tables(
            movers=np.array(movers, np.int64).reshape(-1, 9),
            factors=np.array(factors, np.float32).reshape(-1, 8),
            fields=np.array(fields, np.int64).reshape(-1, 3),
            field_factors=np.array(field_factors, np.float32).reshape(-1, 2),
            statics=np.array([(s.slot, *life(s.alive)) for s in self.statics], np.int64).reshape(-1, 4),
            template=np.ascontiguousarray(self.template.reshape(-1)),
            wrap=np.array(self.wrap, np.bool_),
            globals_=np.array(
                [(schema.GLOBALS.index(name), column(r)) for name, r in pairs], np.int64
            ).reshape(-1, 2),
            global_factors=np.array([(r.scale, r.offset) for _, r in pairs], np.float32).reshape(-1, 2),
            actions=np.array([schema.ACTIONS.index(a.name) for a in self.action_columns], np.int64),
            action_scales=np.array([a.scale for a in self.action_columns], np.float32),
        )

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values; `from_json` reads it back."""

        def plain(value: Any) -> Any:
            if isinstance(value, np.ndarray):
                return (
                    value.astype(np.float64).round(9).tolist() if value.dtype != np.bool_ else value.tolist()
                )
            if dataclasses.is_dataclass(value):
                return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
            if isinstance(value, Mapping):
                return {key: plain(item) for key, item in value.items()}
            if isinstance(value, tuple):
                return [plain(item) for item in value]
            return value

        out: dict[str, Any] = plain(self)
        return out

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Decode:
        """Reads what `to_json` wrote.

        Raises:
            ValueError: something is missing or of the wrong form.
        """

        def alive(item: Any) -> Alive | None:
            return None if item is None else Alive(**item)

        try:
            return cls(
                columns=tuple(data["columns"]),
                action_columns=tuple(ActionColumn(**item) for item in data["action_columns"]),
                registry=np.array(data["registry"], np.float32),
                template=np.array(data["template"], np.float32),
                gameplay_mask=np.array(data["gameplay_mask"], np.bool_),
                movers=tuple(
                    Mover(
                        slot=item["slot"],
                        x=Ref(**item["x"]),
                        y=Ref(**item["y"]),
                        alive=alive(item["alive"]),
                        velocity=item["velocity"]
                        and (Ref(**item["velocity"][0]), Ref(**item["velocity"][1])),
                        fields={name: Ref(**ref) for name, ref in item["fields"].items()},
                        lag=item["lag"],
                    )
                    for item in data["movers"]
                ),
                statics=tuple(Static(item["slot"], alive(item["alive"])) for item in data["statics"]),
                globals_={name: Ref(**ref) for name, ref in data["globals_"].items()},
                wrap=(bool(data["wrap"][0]), bool(data["wrap"][1])),
                lead=int(data["lead"]),
            )
        except (KeyError, TypeError, IndexError) as wrong:
            raise ValueError(f"the decode table of this data set is damaged: {wrong!r}") from wrong

    def frames(
        self,
        rows: NDArray[np.int16],
        first: NDArray[np.int64],
        last: NDArray[np.int64],
        start: NDArray[np.int64],
        states: NDArray[np.float32],
    ) -> None:
        """Writes windows of frames.

        Args:
            rows: int16 [R, C]: native rows of many episodes, one after the other.
            first: int64 [W]: for each window, the row of its episode's frame 0.
            last: int64 [W]: the row after its episode's last frame.
            start: int64 [W]: the frame of the episode with which the window starts.
            states: float32 [W, L, N, 23], is filled; frames after the end of the episode are zero.
        """
        windows, length = states.shape[:2]
        flat = states.reshape(windows, length, self.slots * F)
        _frames(rows, first, last, start, flat, *self.tables[:7])

    def globals_of(self, rows: NDArray[np.int16]) -> NDArray[np.float32]:
        """Globals of native rows: [..., C] to float32 [..., 17]."""
        out = np.zeros((*rows.shape[:-1], schema.GLOBAL_DIM), np.float32)
        for (target, source), (scale, offset) in zip(
            self.tables.globals_, self.tables.global_factors, strict=True
        ):
            out[..., target] = rows[..., source] * scale + offset
        return out

    def actions_of(self, actions: NDArray[np.int16]) -> NDArray[np.float32]:
        """Actions from their stored columns: [..., A] to float32 [..., 7]."""
        out = np.zeros((*actions.shape[:-1], schema.ACTION_DIM), np.float32)
        out[..., self.tables.actions] = actions * self.tables.action_scales
        return out


@numba.njit(inline="always")
def _is_alive(rows, at, kind, column, number):  # type: ignore[no-untyped-def]
    if kind == ALWAYS:
        return True
    if kind == BIT:
        return (rows[at, column] >> number) & 1 == 1
    return rows[at, column] > number


@numba.njit(inline="always")
def _value(rows, at, column, scale, offset):  # type: ignore[no-untyped-def]
    if column < 0:
        return offset
    return np.float32(rows[at, column]) * scale + offset


@numba.njit(inline="always")
def _shortest(delta, wraps):  # type: ignore[no-untyped-def]
    if wraps:
        if delta > np.float32(0.5):
            return delta - np.float32(1)
        if delta < np.float32(-0.5):
            return delta + np.float32(1)
    return delta


@numba.njit(parallel=True, cache=True, nogil=True)
def _frames(rows, first, last, start, out, movers, factors, fields, field_factors, statics, template, wrap):  # type: ignore[no-untyped-def]
    length = out.shape[1]
    size = out.shape[2]
    for w in numba.prange(out.shape[0]):
        # The current frame is kept flat and patched where something changed, then copied out as one row:
        # that is faster than writing to the slots of the output.
        frame = np.zeros(size, np.float32)
        begin = first[w] + start[w]
        for at in range(max(begin - 2, first[w]), begin + length):
            t = at - begin
            if at >= last[w]:
                if t >= 0:
                    out[w, t] = np.float32(0)
                continue
            for m in range(movers.shape[0]):
                base = movers[m, 0] * F
                was = frame[base + 2] > np.float32(0)
                if not _is_alive(rows, at, movers[m, 4], movers[m, 5], movers[m, 6]):
                    if was:
                        for j in range(base, base + F):
                            frame[j] = np.float32(0)
                    continue
                source = at - movers[m, 3]
                x = _value(rows, source, movers[m, 1], factors[m, 0], factors[m, 1])
                y = _value(rows, source, movers[m, 2], factors[m, 2], factors[m, 3])
                if was:
                    frame[base + 21] = frame[base + 19]
                    frame[base + 22] = frame[base + 20]
                    frame[base + 19] = _shortest(x - frame[base], wrap[0])
                    frame[base + 20] = _shortest(y - frame[base + 1], wrap[1])
                else:
                    for j in range(base, base + F):
                        frame[j] = template[j]
                    frame[base + 2] = np.float32(1)
                frame[base] = x
                frame[base + 1] = y
                if movers[m, 7] == -2:
                    frame[base + 3] = frame[base + 19]
                    frame[base + 4] = frame[base + 20]
                else:
                    frame[base + 3] = _value(rows, source, movers[m, 7], factors[m, 4], factors[m, 5])
                    frame[base + 4] = _value(rows, source, movers[m, 8], factors[m, 6], factors[m, 7])
            for k in range(fields.shape[0]):
                m = fields[k, 0]
                base = movers[m, 0] * F
                if frame[base + 2] > np.float32(0):
                    source = at - movers[m, 3]
                    frame[base + fields[k, 1]] = _value(
                        rows, source, fields[k, 2], field_factors[k, 0], field_factors[k, 1]
                    )
            for s in range(statics.shape[0]):
                base = statics[s, 0] * F
                now = _is_alive(rows, at, statics[s, 1], statics[s, 2], statics[s, 3])
                if now != (frame[base + 2] > np.float32(0)):
                    for j in range(base, base + F):
                        frame[j] = template[j] if now else np.float32(0)
                    frame[base + 2] = np.float32(1) if now else np.float32(0)
            if t >= 0:
                for j in range(size):
                    out[w, t, j] = frame[j]
