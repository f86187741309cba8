"""Finding what a mod added by what it is called."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from orrery_worldedit.games.luanti import discovery
from orrery_worldedit.spec import Subject


def subject(words: list[list[str]], without: list[str] | None = None, kind: str = "node") -> Subject:
    return Subject.model_validate({"id": "lamp", "kind": kind, "words": words, "without": without or []})


@pytest.mark.parametrize(
    ("words", "without", "text", "matches"),
    [
        ([["lantern"]], [], "cand:copper_lantern Copper Lantern", True),
        ([["lantern", "lamp"]], [], "cand:lamp", True),
        ([["copper"], ["lantern", "lamp"]], [], "cand:copper_lamp", True),
        ([["copper"], ["lantern", "lamp"]], [], "cand:lamp", False),
        ([["lantern"]], ["wall"], "cand:lantern_wall", False),
        ([["lantern"]], ["wall"], "cand:lantern_wallpaper", True),
        ([["lamp"]], [], "cand:clamp", False),
        ([["lamp"]], [], "cand:x LAMP-2", True),
        ([["2"]], [], "cand:lamp2", True),
        ([], [], "cand:anything", True),
    ],
)
def test_words(words: list[list[str]], without: list[str], text: str, matches: bool) -> None:
    assert discovery.matches(subject(words, without), text) is matches


class FakeWorld:
    """Made up: answers with a list of what a mod added."""

    def __init__(self, entries: Any) -> None:
        self.entries = entries

    def ask(self, lua: str, arg: Any = None) -> Any:
        return self.entries


ENTRIES = [
    {"kind": "node", "name": "cand:lamp", "text": "Lamp"},
    {"kind": "tool", "name": "cand:lamp_tool", "text": ""},
    {"kind": "craft", "name": "cand:oil", "text": "Lamp oil"},
    {"kind": "entity", "name": "cand:lamp_ghost", "text": ""},
    {"kind": "command", "name": "lamp", "text": ""},
    {"kind": "", "name": "cand:lamp_of_no_kind", "text": "lamp"},
]


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("node", ["cand:lamp"]),
        ("tool", ["cand:lamp_tool"]),
        ("craftitem", ["cand:oil"]),
        ("item", ["cand:lamp", "cand:lamp_tool", "cand:oil"]),
        ("entity", ["cand:lamp_ghost"]),
        ("command", ["lamp"]),
    ],
)
def test_kinds(kind: str, names: list[str]) -> None:
    world: Any = FakeWorld(ENTRIES)
    assert discovery.find(world, subject([["lamp"]], kind=kind), "cand") == names


def test_nothing_was_added_on_the_vanilla_arm() -> None:
    world: Any = FakeWorld(ENTRIES)
    assert discovery.find(world, subject([["lamp"]]), None) == []


def test_an_empty_answer_is_no_list() -> None:
    world: Any = FakeWorld({})
    assert discovery.find(world, subject([["lamp"]]), "cand") == []


@pytest.mark.e2e
def test_on_a_real_server_with_entries_of_any_shape(tmp_path: Path) -> None:
    from luanti_worlds import world, write_mod

    code = """
    core.register_node("cand:lamp", {description = "Bright lamp"})
    core.register_craftitem("cand:oil", {description = "Lamp oil"})
    core.register_chatcommand("lamp", {func = function() return true end})
    core.register_entity("cand:lamp_ghost", {})
    core.after(0, function()
        local items = core.registered_items
        rawset(items, 5, 7)
        rawset(items, "cand:lamp_a", true)
        rawset(items, true, {mod_origin = "cand", description = "lamp"})
        rawset(items, "cand:lamp_b", {mod_origin = "cand", type = {}, description = {}})
        rawset(items, "other:lamp", {mod_origin = "other", description = "lamp"})
        rawset(items, "cand:lamp_c", setmetatable({}, {__index = function() error("trap") end}))
    end)
    """
    with world(tmp_path, write_mod(tmp_path / "cand", code)) as running:
        running.run(1)
        found = {
            kind: discovery.find(running, subject([["lamp"]], kind=kind), "cand") for kind in discovery._KINDS
        }
    assert found == {
        "tool": [],
        "node": ["cand:lamp"],
        "craftitem": ["cand:oil"],
        "item": ["cand:lamp", "cand:oil"],
        "entity": ["cand:lamp_ghost"],
        "command": ["lamp"],
    }
