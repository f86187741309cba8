"""What every game has: state, one compiled `play`, a decode table, policies, a picture.

A game's state is an int64 array. Its first three entries are the same in every game: how many numbers the environment
has drawn, how many the policy has drawn, and whether the game is over. Environment and policy draw from streams of
their own, so a recorded game replays exactly without its policy, and can go on from any frame with another future.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray
from worldmodel_kit.decode import Decode

from orrery_worldmodel.games.rng import stream

ENV_DRAWS, POLICY_DRAWS, OVER = 0, 1, 2
"""Entries of every state."""
OWN = 3
"""The first entry that is a game's own."""

RECORDED, RANDOM, HEURISTIC, LEARNED = 0, 1, 2, 3
"""Policies. RECORDED takes the actions that are in the action array already."""
POLICIES = ("recorded", "random", "heuristic", "learned")


CASES = 40
"""Cases of each probe."""


@dataclass(frozen=True)
class Probe:
    """A scenario that shows one rule: a set start, set actions, and a witness that the rule is seen.

    Attributes:
        make: case number 0 .. 39 to (state int64 [S], actions int16 [T, A]); cases differ. T is at least 28, and the
            rule shows after the first 8 frames.
        witness: rows int16 [lead + T, C] of the played case to whether the rule is seen in it.
    """

    name: str
    rule: str
    make: Callable[[int], tuple[NDArray[np.int64], NDArray[np.int16]]]
    witness: Callable[[NDArray[np.int16]], bool]

    def play(
        self, game: Game, case: int
    ) -> tuple[NDArray[np.int16], NDArray[np.int16], NDArray[np.int64], int]:
        """Actions, rows, last state and number of frames of a case. The environment's draws are keyed by the case."""
        state, acts = self.make(case)
        actions, rows = game.buffers(1, len(acts))
        actions[0] = acts
        key = np.uint64(stream(np.uint64(0x5CE9A210), np.int64(case)))
        n = game.play(state, key, RECORDED, np.uint64(0), game.weights, len(acts), actions[0], rows[0])
        return actions[0], rows[0], state, int(n)


@dataclass(frozen=True)
class Game:
    """A game.

    Attributes:
        version: grows with every change that can move a frame.
        state_size: S, entries of the state.
        limit: frames after which an episode is cut.
        play: `play(state, key, policy, policy_key, weights, limit, actions, rows) -> frames`, compiled. It writes the
            row of the given state first, then acts, and so on; `actions[t]` (int16 [A]) leads from row t to row t + 1,
            `rows` is int16 [lead + limit, C]. It ends after `limit` rows or with the row in which the game is over,
            leaves the state of the last row, and the last action zero. `weights` int32 [P] are those of the learned
            policy, empty for the others.
        reset: `reset(state, key)`, compiled: writes a first state.
        draw: `draw(states, globals) -> uint8 [H, W, 3]`: the picture of one frame (float32 [N, 23] and [17]).
        mix: share of each policy in the ordinary splits.
        probes: scenarios, at least eight.
        coverage: named columns whose distribution shows how far the games go.
    """

    name: str
    version: int
    decode: Decode
    state_size: int
    limit: int
    play: Callable[..., int]
    reset: Callable[..., None]
    draw: Callable[[NDArray[np.float32], NDArray[np.float32]], NDArray[np.uint8]]
    mix: dict[int, float] = field(default_factory=lambda: {RANDOM: 0.2, HEURISTIC: 0.8})
    probes: tuple[Probe, ...] = ()
    coverage: tuple[str, ...] = ()
    weights: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))

    def state(self, key: int) -> NDArray[np.int64]:
        """The first state of the episode with this environment key."""
        out = np.zeros(self.state_size, np.int64)
        self.reset(out, np.uint64(key))
        return out

    def buffers(self, episodes: int, limit: int | None = None) -> tuple[NDArray[np.int16], NDArray[np.int16]]:
        """Actions int16 [E, T, A] and rows int16 [E, lead + T, C], zeroed."""
        frames = self.limit if limit is None else limit
        return (
            np.zeros((episodes, frames, len(self.decode.action_columns)), np.int16),
            np.zeros((episodes, self.decode.lead + frames, len(self.decode.columns)), np.int16),
        )


@functools.cache
def batch_of(name: str) -> Any:
    """The compiled `batch` of a game, see `make_batch`; one for each process."""
    from orrery_worldmodel.games import load

    game = load(name)
    return make_batch(game.play, game.reset)


@dataclass
class Episodes:
    """Played episodes: rows int16 [E, lead + T, C], actions int16 [E, T, A], frames int64 [E], states int64 [E, S]."""

    rows: NDArray[np.int16]
    actions: NDArray[np.int16]
    frames: NDArray[np.int64]
    states: NDArray[np.int64]

    @property
    def over(self) -> NDArray[np.bool_]:
        """bool [E]: the game ended; otherwise the episode was cut."""
        return np.not_equal(self.states[:, OVER], 0)


def make_batch(play: Any, reset: Any) -> Any:
    """Compiles `play` over many episodes, in parallel.

    The result is `batch(seed, first, policies, weights, states, rows, actions, frames)`: episode `first + e` has the
    streams of its number, so neither the number of threads nor the size of a batch changes anything. `states` int64
    [E, S] is filled with the last states.
    """

    @numba.njit(parallel=True, nogil=True)
    def batch(seed, first, policies, weights, states, rows, actions, frames):  # type: ignore[no-untyped-def]
        for i in numba.prange(rows.shape[0]):
            e = np.int64(i)
            key = stream(seed, np.int64(2) * (first + e))
            policy_key = stream(seed, np.int64(2) * (first + e) + np.int64(1))
            reset(states[e], key)
            frames[e] = play(
                states[e], key, policies[e], policy_key, weights, actions.shape[1], actions[e], rows[e]
            )

    return batch


def simulate(
    game: Game,
    seed: int,
    episodes: int,
    policy: int | NDArray[np.int64],
    *,
    first: int = 0,
    limit: int | None = None,
) -> Episodes:
    """Plays `episodes` episodes from number `first` on.

    Args:
        seed: key of all streams, 0 .. 2**64 - 1.
        policy: one for all, or int64 [E].
        limit: frames after which an episode is cut; the game's own by default.
    """
    actions, rows = game.buffers(episodes, limit)
    played = Episodes(
        rows, actions, np.zeros(episodes, np.int64), np.zeros((episodes, game.state_size), np.int64)
    )
    policies = np.full(episodes, policy, np.int64) if isinstance(policy, int) else policy
    batch_of(game.name)(
        np.uint64(seed), np.int64(first), policies, game.weights, played.states, rows, actions, played.frames
    )
    return played
