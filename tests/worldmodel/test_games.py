"""The games: the same frames on every machine, exact replay, other futures, tensors that keep their promises."""

from __future__ import annotations

import hashlib
import importlib.util
import json

import numba
import numpy as np
import pytest
from orrery_worldmodel.games import load
from orrery_worldmodel.games.base import CASES, HEURISTIC, OVER, RANDOM, RECORDED, Episodes, Game, simulate
from orrery_worldmodel.games.rng import below
from worldmodel_kit import schema
from worldmodel_kit.decode import Decode

SLOTS = {
    "snake": 48,
    "pong": 5,
    "breakout": 52,
    "asteroids": 20,
    "frogger": 28,
    "kong": 16,
    "platformer": 24,
    "racer": 6,
}
# One hash for each game and version, over 48 episodes of both policies. A change that moves a frame must change the
# game's version as well: data, scores and reports are compared by it.
GOLDEN = {("pong", 1): "dbaaffa6d8bba72f"}

EPISODES = 48


@pytest.fixture(scope="module", params=sorted(name for name, _ in GOLDEN))
def game(request: pytest.FixtureRequest) -> Game:
    return load(request.param)


@pytest.fixture(scope="module")
def played(game: Game) -> Episodes:
    policies = np.arange(EPISODES, dtype=np.int64) % 2 + RANDOM
    return simulate(game, 11, EPISODES, policies)


def flat(game: Game, played: Episodes) -> tuple[np.ndarray, np.ndarray]:
    """Rows one episode after the other, and the row of each episode's frame 0."""
    lead = game.decode.lead
    rows = np.concatenate([played.rows[e, : lead + n] for e, n in enumerate(played.frames)])
    return rows, np.cumsum(np.concatenate([[0], played.frames[:-1] + lead])) + lead


def tensors(game: Game, played: Episodes, episode: int) -> np.ndarray:
    rows, first = flat(game, played)
    n = int(played.frames[episode])
    states = np.zeros((1, n, game.decode.slots, schema.STATE_DIM), np.float32)
    start = first[episode : episode + 1]
    game.decode.frames(rows, start, start + n, np.zeros(1, np.int64), states)
    return states[0]


def test_golden_hash(game: Game, played: Episodes) -> None:
    digest = hashlib.sha256()
    for e, n in enumerate(played.frames):
        digest.update(played.rows[e, : game.decode.lead + n].astype("<i2").tobytes())
        digest.update(played.actions[e, :n].astype("<i2").tobytes())
    assert digest.hexdigest()[:16] == GOLDEN[game.name, game.version]


def test_slots_and_schema(game: Game) -> None:
    decode = game.decode
    assert decode.slots == SLOTS[game.name]
    assert decode.registry.shape == (decode.slots, schema.REGISTRY_DIM)
    assert decode.mutable.any()
    assert (decode.registry[:, schema.SHAPE].sum(1) == 1).all()
    assert (decode.registry[:, schema.LAYER].sum(1) == 1).all()
    # A mutable slot is one that columns move or remove.
    changing = {m.slot for m in decode.movers} | {s.slot for s in decode.statics if s.alive is not None}
    assert set(np.flatnonzero(decode.mutable)) <= changing


def test_threads_and_batches_change_nothing(game: Game, played: Episodes) -> None:
    threads = numba.get_num_threads()
    try:
        numba.set_num_threads(1)
        policies = np.arange(EPISODES, dtype=np.int64) % 2 + RANDOM
        part = simulate(game, 11, 5, policies[20:25], first=20)
    finally:
        numba.set_num_threads(threads)
    for e, n in enumerate(part.frames):
        assert n == played.frames[20 + e]
        assert (part.rows[e, : game.decode.lead + n] == played.rows[20 + e, : game.decode.lead + n]).all()
        assert (part.actions[e, :n] == played.actions[20 + e, :n]).all()


def test_another_seed_is_another_game(game: Game, played: Episodes) -> None:
    other = simulate(game, 12, 2, RANDOM)
    n = min(int(other.frames[0]), int(played.frames[0]))
    assert (other.rows[0, :n] != played.rows[0, :n]).any()


def replay(game: Game, played: Episodes, key: int, episode: int, cut: int) -> np.ndarray:
    """Plays the recorded actions of an episode up to a frame, then goes on from the state that was left."""
    from orrery_worldmodel.games.rng import stream

    env = np.uint64(stream(np.uint64(key), np.int64(2 * episode)))
    n, lead = int(played.frames[episode]), game.decode.lead
    state = game.state(int(env))
    actions, rows = game.buffers(1, n)
    actions[0] = played.actions[episode, :n]
    head = game.play(state, env, RECORDED, np.uint64(0), game.weights, cut, actions[0], rows[0])
    assert head == cut
    rest, tail_rows = game.buffers(1, n - cut + 1)
    rest[0] = played.actions[episode, cut - 1 : n]
    tail = game.play(state, env, RECORDED, np.uint64(0), game.weights, n - cut + 1, rest[0], tail_rows[0])
    assert tail == n - cut + 1
    return np.concatenate([rows[0, : lead + cut], tail_rows[0, lead + 1 : lead + tail]])


@pytest.mark.parametrize("episode", [0, 1])
def test_replay_without_the_policy_is_exact_from_any_frame(
    game: Game, played: Episodes, episode: int
) -> None:
    n = int(played.frames[episode])
    for cut in (2, n // 3, n - 1):
        assert (replay(game, played, 11, episode, cut) == played.rows[episode, : game.decode.lead + n]).all()


def test_values_keep_their_ranges(game: Game, played: Episodes) -> None:
    mask = game.decode.gameplay_mask
    for episode in (0, 1, 2, 3):
        states = tensors(game, played, episode)
        alive = states[..., schema.ALIVE] > 0.5
        assert np.isin(states[..., schema.ALIVE], (0, 1)).all()
        assert not states[~alive].any(), "a dead slot holds zeros only"
        positions = states[..., schema.POSITION][alive]
        assert positions.min() >= -0.1 and positions.max() <= 1.1
        assert np.abs(states[..., schema.DELTA_1]).max() <= 0.25, (
            "a slot is dead for a frame before it is born elsewhere"
        )
        gameplay = states[..., schema.GAMEPLAY]
        assert not gameplay[:, ~mask].any()
        for k, classes in enumerate(schema.GAMEPLAY_CLASSES):
            value = gameplay[..., k]
            top = 1 if schema.GAMEPLAY_FIELDS[k] in schema.GAMEPLAY_UNIT else classes - 1
            assert value.min() >= 0 and value.max() <= top, schema.GAMEPLAY_FIELDS[k]
        globals_ = game.decode.globals_of(played.rows[episode, : int(played.frames[episode])])
        assert globals_.min() >= 0 and globals_.max() <= 1.5


def test_deltas_are_the_changes_of_position(game: Game, played: Episodes) -> None:
    states = tensors(game, played, 1)
    alive = states[..., schema.ALIVE] > 0.5
    moved = states[1:, :, schema.POSITION] - states[:-1, :, schema.POSITION]
    for axis in (0, 1):
        if game.decode.wrap[axis]:
            moved[..., axis] -= np.round(moved[..., axis])
    moved[~(alive[1:] & alive[:-1])] = 0
    assert np.allclose(states[1:, :, schema.DELTA_1], moved, atol=1e-6)
    assert np.allclose(
        states[2:, :, schema.DELTA_2][alive[2:] & alive[1:-1]], moved[:-1][alive[2:] & alive[1:-1]], atol=1e-6
    )


def test_windows_are_cuts_of_the_episode(game: Game, played: Episodes) -> None:
    rows, first = flat(game, played)
    whole = tensors(game, played, 2)
    n = len(whole)
    starts = np.array([0, 1, 2, n // 2, n - 5])
    out = np.full((5, 9, game.decode.slots, schema.STATE_DIM), 9, np.float32)
    game.decode.frames(rows, np.repeat(first[2], 5), np.repeat(first[2] + n, 5), starts, out)
    for window, start in zip(out, starts, strict=True):
        inside = min(9, n - start)
        assert np.allclose(window[:inside], whole[start : start + inside], atol=1e-7)
        assert not window[inside:].any(), "frames after the end are zero"


def test_the_decode_table_survives_the_manifest(game: Game, played: Episodes) -> None:
    again = Decode.from_json(json.loads(json.dumps(game.decode.to_json())))
    rows, first = flat(game, played)
    out = np.zeros((2, 1, 30, game.decode.slots, schema.STATE_DIM), np.float32)
    for i, decode in enumerate((game.decode, again)):
        decode.frames(rows, first[:1], first[:1] + played.frames[:1], np.zeros(1, np.int64), out[i])
    assert (out[0] == out[1]).all()


def test_games_end_and_actions_matter(game: Game, played: Episodes) -> None:
    assert played.over.any(), "some episode ends by the rules"
    assert (played.frames[played.over] < game.limit).all()
    assert (played.states[played.frames == game.limit][:, OVER] >= 0).all()
    heuristic = simulate(game, 5, 1, HEURISTIC, limit=60)
    random = simulate(game, 5, 1, RANDOM, limit=60)
    assert (random.rows != heuristic.rows).any()


def test_the_last_action_is_zero(game: Game, played: Episodes) -> None:
    for e, n in enumerate(played.frames):
        assert not played.actions[e, n - 1].any()


def test_pictures(game: Game, played: Episodes) -> None:
    states = tensors(game, played, 1)
    globals_ = game.decode.globals_of(played.rows[1, game.decode.lead :])
    first = game.draw(states[10], globals_[10])
    later = game.draw(states[40], globals_[40])
    assert first.dtype == np.uint8 and first.ndim == 3
    assert (first != later).any()
    assert len(np.unique(first.reshape(-1, 3), axis=0)) >= 3


def test_every_probe_shows_its_rule(game: Game) -> None:
    assert len({probe.name for probe in game.probes}) == len(game.probes)
    for probe in game.probes:
        cases = [probe.play(game, case) for case in range(CASES)]
        for case, (_, rows, _, n) in enumerate(cases):
            assert n >= schema.WINDOW, f"{probe.name} case {case} is over after {n} frames"
            assert probe.witness(rows[: game.decode.lead + n]), (
                f"{probe.name} case {case} does not show: {probe.rule}"
            )
        assert len({rows.tobytes() for _, rows, _, _ in cases}) == CASES, f"{probe.name} repeats a case"


def test_random_numbers() -> None:
    key = np.uint64(3)
    numbers = np.array([below(key, np.int64(i), np.int64(10)) for i in range(5000)])
    counts = np.bincount(numbers, minlength=10)
    assert counts.min() > 400 and counts.max() < 600
    assert numbers[:5].tolist() == [below(key, np.int64(i), np.int64(10)) for i in range(5)]


def test_simulators_need_no_torch() -> None:
    assert importlib.util.find_spec("torch") is None, (
        "this interpreter must not have torch: nothing here may need it"
    )
