"""The eight games."""

from __future__ import annotations

import importlib

from worldmodel_kit import schema

from orrery_worldmodel.games.base import Game


def load(name: str) -> Game:
    """A game by its name. Loading compiles it, unless that was done before.

    Raises:
        ValueError: there is no such game.
    """
    if name not in schema.GAMES:
        raise ValueError(f"no game {name!r}; there are {', '.join(schema.GAMES)}")
    game: Game = importlib.import_module(f"orrery_worldmodel.games.{name}").GAME
    return game
