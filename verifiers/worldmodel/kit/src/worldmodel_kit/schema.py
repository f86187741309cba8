"""Every index of the tensors, named once.

A frame of a game with N entity slots is

- `registry` float32 [N, 34]: what a slot is; constant in an episode;
- `states` float32 [T, N, 23]: where it is and how it does; all zeros while the slot is dead;
- `actions` float32 [T, 7]: what is done at frame t and leads to frame t + 1; zeros at the last frame;
- `globals` float32 [T, 17]: scores, lives and counters;
- `terminals` bool [T]: the game is over at this frame;
- masks: `mutable` bool [N] (to be predicted), `gameplay_mask` bool [N, 14] (fields that mean something).

Positions are in [0, 1] from the left and from the top; velocities in the same units per frame.
"""

from __future__ import annotations

from typing import Final

GAMES: Final = ("asteroids", "breakout", "frogger", "kong", "platformer", "pong", "racer", "snake")
BASES: Final = ("dreamer", "ar_transformer", "d3pm", "maskgit")

HISTORY: Final = 8
"""True frames that a model is given."""
STEPS: Final = 20
"""Frames that it predicts after them."""
HORIZONS: Final = (1, 10, 20)
HORIZON_WEIGHTS: Final = (0.1, 0.2, 0.7)
WINDOW: Final = HISTORY + STEPS

# ---- registry

REGISTRY_DIM: Final = 34
SHAPES: Final = ("box", "circle", "segment", "point")
SHAPE: Final = slice(0, 4)
RADIUS: Final = 4
HALF_EXTENT: Final = slice(5, 7)
LAYER: Final = slice(7, 25)
TRIGGER: Final = 25
MUTABLE: Final = 26
SCALE: Final = slice(27, 29)
MATERIAL: Final = slice(29, 34)
MATERIALS: Final = ("mass", "restitution", "friction", "linear_damping", "angular_damping")
LAYERS: Final = (
    "player", "opponent", "ball", "wall", "brick", "food", "body", "asteroid", "bullet",
    "car", "log", "home", "ladder", "girder", "barrel", "platform", "coin", "goal",
)  # fmt: skip

# ---- states

STATE_DIM: Final = 23
X: Final = 0
Y: Final = 1
POSITION: Final = slice(0, 2)
ALIVE: Final = 2
VELOCITY: Final = slice(3, 5)
GAMEPLAY_START: Final = 5
GAMEPLAY: Final = slice(5, 19)
DELTA_1: Final = slice(19, 21)
"""Position now minus position one frame ago (x, y); the shortest image where the game wraps around.

Zero unless the slot was alive in both frames."""
DELTA_2: Final = slice(21, 23)
"""The same between one and two frames ago."""

GAMEPLAY_FIELDS: Final = (
    "age", "col", "direction", "hp", "lane_type", "on_ground", "piece_type", "reached",
    "rotation", "row", "segment_index", "size_class", "tagged", "tagged_count",
)  # fmt: skip
GAMEPLAY_DIM: Final = 14
GAMEPLAY_CLASSES: Final = (32, 16, 4, 16, 5, 2, 7, 2, 4, 16, 48, 3, 2, 16)
"""Codes of each field for models of discrete tokens."""
GAMEPLAY_UNIT: Final = frozenset({"age", "hp"})
"""Fields with values in [0, 1]; the others are integers."""

# ---- actions and globals

ACTION_DIM: Final = 7
ACTIONS: Final = ("action", "direction", "jump", "move_x", "move_y", "paddle_l_dy", "paddle_r_dy")

GLOBAL_DIM: Final = 17
GLOBALS: Final = (
    "score", "score_left", "score_right", "lives", "level", "length", "bricks_left", "homes_filled",
    "time_left", "wave", "rocks_left", "lap", "rank", "coins", "progress", "cooldown", "frame",
)  # fmt: skip
"""Scaled to about [0, 1]; the manifest of a game says which are in use and by what they were divided."""

# ---- token grids of the discrete models

GRID: Final = {
    "asteroids": (200, 200),
    "breakout": (160, 200),
    "frogger": (256, 224),
    "kong": (160, 120),
    "platformer": (160, 120),
    "pong": (160, 120),
    "racer": (200, 200),
    "snake": (20, 20),
}
"""Bins of x and y."""


def gameplay_index(name: str) -> int:
    """The state feature that holds a gameplay field.

    Raises:
        ValueError: there is no field of that name.
    """
    return GAMEPLAY_START + GAMEPLAY_FIELDS.index(name)
