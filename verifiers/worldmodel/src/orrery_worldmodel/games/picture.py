"""Pictures of frames, apart from the physics: pixels are set, nothing is smoothed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from worldmodel_kit import schema

Colour = tuple[int, int, int]

NIGHT: Colour = (18, 20, 30)
WHITE: Colour = (245, 245, 240)
GREY: Colour = (110, 116, 130)
BLUE: Colour = (86, 156, 240)
RED: Colour = (232, 92, 80)
GREEN: Colour = (104, 196, 108)
YELLOW: Colour = (244, 204, 84)
ORANGE: Colour = (240, 148, 70)
BROWN: Colour = (146, 98, 62)
PURPLE: Colour = (168, 116, 220)
TEAL: Colour = (70, 180, 180)


class Canvas:
    """An image of `width` x `height` pixels that stands for the whole field."""

    def __init__(self, width: int, height: int, background: Colour) -> None:
        self.width = width
        self.height = height
        self.image: NDArray[np.uint8] = np.full((height, width, 3), background, np.uint8)

    def box(self, x: float, y: float, half_x: float, half_y: float, colour: Colour) -> None:
        """Fills a box; centre and half extents in fields. A box is at least one pixel."""
        left = round((x - half_x) * self.width)
        top = round((y - half_y) * self.height)
        right = max(left + 1, round((x + half_x) * self.width))
        bottom = max(top + 1, round((y + half_y) * self.height))
        self.image[max(0, top) : max(0, bottom), max(0, left) : max(0, right)] = colour

    def disc(self, x: float, y: float, radius: float, colour: Colour) -> None:
        """Fills a disc; the radius in widths of the field."""
        rows, columns = np.ogrid[: self.height, : self.width]
        pixels = max(0.8, radius * self.width)
        inside = (columns + 0.5 - x * self.width) ** 2 + (rows + 0.5 - y * self.height) ** 2 <= pixels**2
        self.image[inside] = colour

    def slot(self, registry: NDArray[np.float32], state: NDArray[np.float32], colour: Colour) -> None:
        """Draws a slot by its collider, if it is alive."""
        if state[schema.ALIVE] <= 0.5:
            return
        x, y = float(state[schema.X]), float(state[schema.Y])
        if registry[schema.SHAPES.index("circle")] > 0.5:
            self.disc(x, y, float(registry[schema.RADIUS]), colour)
        else:
            half_x, half_y = registry[schema.HALF_EXTENT]
            self.box(x, y, float(half_x), float(half_y), colour)

    def bar(self, place: int, value: float, colour: Colour) -> None:
        """A gauge in the upper margin: place 0 on the left, 1 on the right."""
        half = self.width // 2
        length = round(min(max(float(value), 0.0), 1.0) * (half - 2))
        start = place * half + 1
        self.image[0, start : start + length] = colour
