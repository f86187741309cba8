"""Pong: two paddles, a ball that goes faster with every hit, first to eleven.

The field is 20,480 x 15,360 units (128 units are a pixel of 160 x 120). After a point the ball is away for a while and
is served again towards the side that lost.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray
from worldmodel_kit import schema
from worldmodel_kit.decode import ActionColumn, Alive, Decode, Mover, Ref, Static

from orrery_worldmodel.games import picture
from orrery_worldmodel.games.base import (
    ENV_DRAWS,
    HEURISTIC,
    OVER,
    OWN,
    POLICY_DRAWS,
    RANDOM,
    RECORDED,
    Game,
    Probe,
)
from orrery_worldmodel.games.rng import below
from orrery_worldmodel.games.slots import registry_row

W, H = 20480, 15360
PADDLE_HW, PADDLE_HH = 266, 1275
BALL_R = 430
WALL_HH = 61
LEFT_X, RIGHT_X = 1024, W - 1024
TOP, BOTTOM = 2 * WALL_HH + BALL_R, H - 2 * WALL_HH - BALL_R
PADDLE_TOP, PADDLE_BOTTOM = 2 * WALL_HH + PADDLE_HH, H - 2 * WALL_HH - PADDLE_HH
PADDLE_SPEED = 240
SERVE_PAUSE = 12
MAX_VX = 420
POINTS = 11
AIM = 38
"""Units by which the heuristic aims off, times a held number of -100 .. 100."""
LEFT_FACE, RIGHT_FACE = LEFT_X + PADDLE_HW + BALL_R, RIGHT_X - PADDLE_HW - BALL_R

LY, RY, BX, BY, BVX, BVY, PAUSE, SCORE_L, SCORE_R, HELD_L, HELD_R, HOLD, SIZE = range(OWN, OWN + 13)

COLUMNS = ("ly", "ry", "bx", "by", "bvx", "bvy", "pause", "score_l", "score_r")


@numba.njit(cache=True)
def reset(state, key):  # type: ignore[no-untyped-def]
    """The first state of an episode."""
    state[:] = 0
    state[LY] = H // 2
    state[RY] = H // 2
    state[PAUSE] = SERVE_PAUSE
    state[BVX] = 1 if below(key, 0, 2) == 0 else -1
    state[ENV_DRAWS] = 1


@numba.njit(inline="always")
def _clamp(value, low, high):  # type: ignore[no-untyped-def]
    return min(max(value, low), high)


@numba.njit(cache=True, nogil=True)
def play(state, key, policy, policy_key, weights, limit, actions, rows):  # type: ignore[no-untyped-def]
    """See `Game.play`."""
    draws, policy_draws, over = state[ENV_DRAWS], state[POLICY_DRAWS], state[OVER]
    ly, ry, bx, by, vx, vy = state[LY], state[RY], state[BX], state[BY], state[BVX], state[BVY]
    pause, score_l, score_r = state[PAUSE], state[SCORE_L], state[SCORE_R]
    held_l, held_r, hold = state[HELD_L], state[HELD_R], state[HOLD]
    t = np.int64(0)
    while True:
        rows[t, 0] = ly
        rows[t, 1] = ry
        rows[t, 2] = bx
        rows[t, 3] = by
        rows[t, 4] = vx
        rows[t, 5] = vy
        rows[t, 6] = pause
        rows[t, 7] = score_l
        rows[t, 8] = score_r
        t += 1
        if over != 0 or t >= limit:
            actions[t - 1, 0] = 0
            actions[t - 1, 1] = 0
            break

        # ---- policy
        if policy != RECORDED:
            if hold == 0:
                hold = 6 + below(policy_key, policy_draws, 20)
                held_l = below(policy_key, policy_draws + 1, 201) - 100
                held_r = below(policy_key, policy_draws + 2, 201) - 100
                policy_draws += 3
            hold -= 1
            if policy == RANDOM:
                actions[t - 1, 0] = held_l
                actions[t - 1, 1] = held_r
            elif policy == HEURISTIC:
                # Each side follows the ball with an aim that changes with the held number, and rests when it leaves.
                aim_l = by + held_l * AIM if vx < 0 and pause == 0 else H // 2
                aim_r = by + held_r * AIM if vx > 0 and pause == 0 else H // 2
                actions[t - 1, 0] = _clamp((aim_l - ly) // 3, -100, 100)
                actions[t - 1, 1] = _clamp((aim_r - ry) // 3, -100, 100)

        # ---- dynamics
        ly = _clamp(ly + actions[t - 1, 0] * PADDLE_SPEED // 100, PADDLE_TOP, PADDLE_BOTTOM)
        ry = _clamp(ry + actions[t - 1, 1] * PADDLE_SPEED // 100, PADDLE_TOP, PADDLE_BOTTOM)
        if pause > 0:
            pause -= 1
            if pause == 0:
                bx = W // 2
                by = np.int64(H // 4) + below(key, draws, H // 2)
                vy = below(key, draws + 1, 361) - 180
                vx = vx * (170 + below(key, draws + 2, 60))
                draws += 3
            continue
        was = bx
        bx += vx
        by += vy
        if by < TOP:
            by = 2 * TOP - by
            vy = -vy
        elif by > BOTTOM:
            by = 2 * BOTTOM - by
            vy = -vy
        if vx < 0 and was >= LEFT_FACE and bx < LEFT_FACE and abs(by - ly) <= PADDLE_HH + BALL_R:
            bx = 2 * LEFT_FACE - bx
            vx = min(-vx + 12, MAX_VX)
            vy = _clamp(vy + (by - ly) // 10, -360, 360)
        elif vx > 0 and was <= RIGHT_FACE and bx > RIGHT_FACE and abs(by - ry) <= PADDLE_HH + BALL_R:
            bx = 2 * RIGHT_FACE - bx
            vx = -min(vx + 12, MAX_VX)
            vy = _clamp(vy + (by - ry) // 10, -360, 360)
        if bx < 0 or bx > W:
            if bx < 0:
                score_r += 1
                vx = np.int64(-1)
            else:
                score_l += 1
                vx = np.int64(1)
            bx = np.int64(0)
            by = np.int64(0)
            vy = np.int64(0)
            pause = np.int64(SERVE_PAUSE)
            if score_l >= POINTS or score_r >= POINTS:
                over = np.int64(1)
    state[ENV_DRAWS], state[POLICY_DRAWS], state[OVER] = draws, policy_draws, over
    state[LY], state[RY], state[BX], state[BY], state[BVX], state[BVY] = ly, ry, bx, by, vx, vy
    state[PAUSE], state[SCORE_L], state[SCORE_R] = pause, score_l, score_r
    state[HELD_L], state[HELD_R], state[HOLD] = held_l, held_r, hold
    return t


def _decode() -> Decode:
    n = 5
    registry = np.zeros((n, schema.REGISTRY_DIM), np.float32)
    for slot, layer in ((0, "player"), (1, "opponent")):
        half = (PADDLE_HW / W, PADDLE_HH / H)
        registry[slot] = registry_row("box", layer, half=half, mutable=True, restitution=1.0)
    registry[2] = registry_row("circle", "ball", radius=BALL_R / W, mutable=True, restitution=1.0)
    registry[3:5] = registry_row("box", "wall", half=(0.5, WALL_HH / H), restitution=1.0)
    template = np.zeros((n, schema.STATE_DIM), np.float32)
    template[3, :3] = (0.5, WALL_HH / H, 1)
    template[4, :3] = (0.5, 1 - WALL_HH / H, 1)
    x, y = 1 / W, 1 / H
    return Decode(
        columns=COLUMNS,
        action_columns=(ActionColumn("paddle_l_dy", 0.01), ActionColumn("paddle_r_dy", 0.01)),
        registry=registry,
        template=template,
        gameplay_mask=np.zeros((n, schema.GAMEPLAY_DIM), np.bool_),
        movers=(
            Mover(0, Ref(None, offset=LEFT_X / W), Ref("ly", y)),
            Mover(1, Ref(None, offset=RIGHT_X / W), Ref("ry", y)),
            Mover(2, Ref("bx", x), Ref("by", y), Alive("bx", above=0), (Ref("bvx", x), Ref("bvy", y))),
        ),
        statics=(Static(3), Static(4)),
        globals_={"score_left": Ref("score_l", 1 / POINTS), "score_right": Ref("score_r", 1 / POINTS)},
    )


def draw(states: NDArray[np.float32], globals_: NDArray[np.float32]) -> NDArray[np.uint8]:
    """The picture of one frame, 160 x 120."""
    canvas = picture.Canvas(160, 120, picture.NIGHT)
    for slot, colour in (
        (3, picture.GREY),
        (4, picture.GREY),
        (0, picture.BLUE),
        (1, picture.RED),
        (2, picture.WHITE),
    ):
        canvas.slot(DECODE.registry[slot], states[slot], colour)
    canvas.bar(0, globals_[schema.GLOBALS.index("score_left")], picture.BLUE)
    canvas.bar(1, globals_[schema.GLOBALS.index("score_right")], picture.RED)
    return canvas.image


def _serve(case: int, **own: int) -> tuple[NDArray[np.int64], NDArray[np.int16]]:
    """A state with the ball in play, and paddles that stand still."""
    state = np.zeros(SIZE, np.int64)
    state[[LY, RY]] = H // 2
    for name, value in own.items():
        state[globals()[name.upper()]] = value
    return state, np.zeros((48, 2), np.int16)


def _paddle_contact(case: int) -> tuple[NDArray[np.int64], NDArray[np.int16]]:
    offset = -1100 + 55 * case
    return _serve(case, bx=LEFT_FACE + 20 * 260 + case, by=H // 2 + offset, bvx=-260, bvy=0)


def _bounced(rows: NDArray[np.int16]) -> bool:
    return bool((np.sign(rows[1:, 4]) * np.sign(rows[:-1, 4]) < 0).any() and not rows[:, 6].any())


PROBES: tuple[Probe, ...] = (
    Probe(
        "paddle_contact",
        "the ball meets the left paddle at another height in each case",
        _paddle_contact,
        _bounced,
    ),
)
DECODE = _decode()
GAME = Game(
    name="pong",
    version=1,
    decode=DECODE,
    state_size=SIZE,
    limit=4000,
    play=play,
    reset=reset,
    draw=draw,
    mix={RANDOM: 0.5, HEURISTIC: 0.5},
    probes=PROBES,
    coverage=("score_l", "score_r"),
)
