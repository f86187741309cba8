"""Verbs: the signature is the schema."""

from __future__ import annotations

import pytest
from orrery_worldedit import games, verbs
from orrery_worldedit.verbs import Kind, Position, problems, suggestion, verb, verbs_of


class Toy:
    """A made-up adapter with two verbs."""

    @verb(Kind.ACT, capability="hands")
    def dig(self, player: str, at: Position, seconds: float = 1.0) -> None:
        """Dig. And more."""

    @verb(Kind.MEASURE)
    def light(self, at: Position) -> int:
        """Light level."""
        return 0

    def helper(self) -> None:
        """No verb."""


def test_what_an_adapter_declares() -> None:
    found = verbs_of(Toy)
    assert set(found) == {"dig", "light"}
    assert found["dig"].kind is Kind.ACT and found["dig"].capability == "hands"
    assert found["light"].doc == "Light level."
    assert [(name, required) for name, (_, required) in found["dig"].parameters.items()] == [
        ("player", True),
        ("at", True),
        ("seconds", False),
    ]


@pytest.mark.parametrize(
    ("name", "arguments", "found"),
    [
        ("dig", {"player": "a", "at": [0, 1.5, 2]}, []),
        ("dig", {"player": "$who", "at": ["$x", 0, 0], "seconds": "$time"}, []),
        ("dgi", {}, ['verb "dgi" is unknown; did you mean "dig"?']),
        ("helper", {}, ['verb "helper" is unknown']),
        ("__init__", {}, ['verb "__init__" is unknown']),
        ("light", {}, ['verb "light" needs "at"']),
        ("light", {"at": [0, 0, 0], "time": 1}, ['verb "light" has no argument "time"']),
        ("light", {"at": [0, 0, 0, 0]}, None),
        ("light", {"at": [0, 0, True]}, None),
        ("dig", {"player": 5, "at": [0, 0, 0]}, None),
        ("dig", {"player": "a", "at": [0, 0, 0], "seconds": "1"}, None),
    ],
)
def test_problems_of_a_step(name: str, arguments: dict[str, object], found: list[str] | None) -> None:
    given = problems(Toy, name, arguments)
    if found is None:
        assert len(given) == 1 and "argument" in given[0]
    else:
        assert given == found


def test_suggestions() -> None:
    assert suggestion("hudd", ["hud", "hp"]) == '; did you mean "hud"?'
    assert suggestion("zzz", ["hud", "hp"]) == ""


@pytest.mark.parametrize("family", games.FAMILIES)
def test_every_verb_of_every_game_is_documented_and_typed(family: str) -> None:
    declared = verbs_of(games.verbs_class(family))
    assert len(declared) > 20
    assert all(found.doc for found in declared.values())
    capabilities = {found.capability for found in declared.values()} - {""}
    assert capabilities <= games.verbs_class(family).capabilities


def test_references() -> None:
    assert verbs.is_reference("$x") and not verbs.is_reference("x") and not verbs.is_reference(5)
