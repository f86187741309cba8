"""Game adapters; each declares the verbs it can do and measure.

An adapter module has ``Game`` (the class with the verbs), ``machine()``, ``syntax_errors()``, ``arm()`` and
``diff()``.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

FAMILIES = {"luanti": "orrery_worldedit.games.luanti.adapter"}


def adapter(family: str) -> ModuleType:
    """The adapter module of a game family, imported on demand.

    Raises:
        KeyError: no such family.
    """
    return import_module(FAMILIES[family])


def verbs_class(family: str) -> type:
    """The class whose methods are the family's verbs."""
    return adapter(family).Game  # type: ignore[no-any-return]
