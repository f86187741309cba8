"""Rows of the registry."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from worldmodel_kit import schema


def registry_row(
    shape: str,
    layer: str,
    *,
    radius: float = 0.0,
    half: tuple[float, float] = (0.0, 0.0),
    mutable: bool = False,
    trigger: bool = False,
    mass: float = 1.0,
    restitution: float = 0.0,
    friction: float = 0.0,
) -> NDArray[np.float32]:
    """What a slot is, float32 [34].

    Args:
        radius: of a circle, in widths of the field.
        half: half extents of a box, in widths and heights of the field.
        mutable: to be predicted.
        trigger: touched, but no obstacle.
    """
    row = np.zeros(schema.REGISTRY_DIM, np.float32)
    row[schema.SHAPE.start + schema.SHAPES.index(shape)] = 1
    row[schema.RADIUS] = radius
    row[schema.HALF_EXTENT] = half
    row[schema.LAYER.start + schema.LAYERS.index(layer)] = 1
    row[schema.TRIGGER] = trigger
    row[schema.MUTABLE] = mutable
    row[schema.SCALE] = 1
    row[schema.MATERIAL] = (mass if mutable else 0.0, restitution, friction, 0, 0)
    return row
