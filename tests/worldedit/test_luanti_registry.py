"""Registry dumps: canonical form, differences, additions."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from luanti_worlds import vanilla, world, write_mod
from orrery_worldedit.games.luanti.registry import Addition, Change, additions, canonical, diff

RAW: dict[str, Any] = {
    "items": {
        "default:pick": {
            "uses": 20,
            "groups": {},
            "tiles": ["a.png", "b.png"],
            "on_use": "fn:default/x.lua:3",
        }
    },
    "engine": {"default:pick": {"stack_max": 1}},
    "abms": [{"label": "Grow", "mod_origin": "default", "interval": 2}],
    "ores": [
        {"ore": "default:coal", "wherein": "default:stone", "y_min": -100, "y_max": 0, "scarcity": 512},
        {"ore": "default:coal", "wherein": "default:stone", "y_min": -100, "y_max": 0, "scarcity": 8},
    ],
    "callbacks": {
        "registered_globalsteps": ["fn:default/a.lua:1", "fn:default/a.lua:1"],
        "registered_on_player_hpchanges": {"loggers": ["fn:evaluator/events.lua:5"], "modifiers": {}},
    },
    "recipes": {
        "default:pick": [
            {
                "method": "normal",
                "width": 2,
                "items": {"1": "default:a", "4": "group:b"},
                "output": "default:pick",
            }
        ]
    },
    "settings": {"port": "1234", "time_speed": "72"},
}


def changed(edit) -> list[Change]:
    other = copy.deepcopy(RAW)
    edit(other)
    return diff(canonical(RAW), canonical(other))


def test_keys_come_from_contents() -> None:
    form = canonical(RAW)
    assert form["items"]["default:pick"]["engine"] == {"stack_max": 1}
    assert list(form["abms"]) == ["default: Grow"]
    assert list(form["ores"]) == [
        "default:coal in default:stone -100..0",
        "default:coal in default:stone -100..0 #2",
    ]
    assert list(form["callbacks"]["registered_globalsteps"]) == [
        "fn:default/a.lua:1",
        "fn:default/a.lua:1 #2",
    ]
    assert list(form["recipes"]["default:pick"]) == ["normal 2: default:a, -, -, group:b"]
    assert form["settings"] == {"time_speed": "72"}


def test_order_of_lists_without_one_does_not_matter() -> None:
    other = copy.deepcopy(RAW)
    other["ores"].reverse()
    assert diff(canonical(RAW), canonical(other)) == []


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        (lambda raw: raw["items"]["default:pick"].update(uses=40), Change("items/default:pick/uses", 20, 40)),
        (
            lambda raw: raw["items"]["default:pick"]["tiles"].__setitem__(1, "c.png"),
            Change("items/default:pick/tiles/2", "b.png", "c.png"),
        ),
        (
            lambda raw: raw["items"]["default:pick"]["tiles"].append("c.png"),
            Change("items/default:pick/tiles/3", None, "c.png"),
        ),
        (
            lambda raw: raw["items"]["default:pick"].update(groups=[1]),
            Change("items/default:pick/groups/1", None, 1),
        ),
        (
            lambda raw: raw["items"]["default:pick"].update(uses=True),
            Change("items/default:pick/uses", 20, True),
        ),
        (
            lambda raw: raw["items"]["default:pick"].update(tiles="a.png"),
            Change("items/default:pick/tiles", ["a.png", "b.png"], "a.png"),
        ),
        (
            lambda raw: raw["engine"]["default:pick"].update(stack_max=99),
            Change("items/default:pick/engine/stack_max", 1, 99),
        ),
        (
            lambda raw: raw["abms"].clear(),
            Change("abms/default: Grow", {"label": "Grow", "mod_origin": "default", "interval": 2}, None),
        ),
        (
            lambda raw: raw["callbacks"]["registered_globalsteps"].append("fn:cand/init.lua:9"),
            Change(
                "callbacks/registered_globalsteps/fn:cand/init.lua:9",
                None,
                "fn:cand/init.lua:9",
            ),
        ),
        (lambda raw: raw["settings"].update(time_speed="0"), Change("settings/time_speed", "72", "0")),
    ],
)
def test_one_difference_is_one_change(edit, expected: Change) -> None:
    assert changed(edit) == [expected]


def test_true_is_not_one() -> None:
    assert diff({"a": {"b": 1}}, {"a": {"b": True}}) == [Change("a/b", 1, True)]


@pytest.mark.parametrize("hostile", ["<table of 9999999 entries>", ["<too many>"], [[]], {"x": []}, 7, None])
def test_an_unreadable_section_is_a_difference_and_no_crash(hostile: Any) -> None:
    for section in RAW:
        assert changed(lambda raw, section=section: raw.update({section: hostile}))


def test_additions_name_their_mod() -> None:
    def edit(raw: dict[str, Any]) -> None:
        raw["items"]["cand:sword"] = {"mod_origin": "cand"}
        raw["items"]["default:pick"]["_new"] = 1
        raw["abms"].append({"label": "Wither", "mod_origin": "cand"})
        raw["callbacks"]["registered_globalsteps"].append("fn:cand/init.lua:9")
        raw["recipes"]["cand:sword"] = []
        raw["recipes"]["default:pick"].append({"method": "normal", "width": 1, "items": ["default:a"]})
        raw.setdefault("fuel", {})["default:pick"] = {"time": 3}

    assert additions(changed(edit)) == [
        Addition("abms", "cand: Wither", "cand"),
        Addition("callbacks", "registered_globalsteps/fn:cand/init.lua:9", "cand"),
        Addition("fuel", "default:pick", ""),
        Addition("items", "cand:sword", "cand"),
        Addition("recipes", "cand:sword", ""),
        Addition("recipes", "default:pick/normal 1: default:a", ""),
    ]


# -- the real thing


@pytest.mark.e2e
def test_the_vanilla_registry_is_the_same_every_time(tmp_path: Path) -> None:
    with world(tmp_path) as running:
        again = running.dump()
        assert running.tamper() == []
    assert json.dumps(again) == json.dumps(vanilla()[0])
    sizes = {name: len(section) for name, section in again.items()}
    assert (
        sizes["items"] == 530 and sizes["recipes"] == 337 and sizes["cooking"] == 19 and sizes["fuel"] == 111
    )
    assert sizes["abms"] == 9 and sizes["biomes"] == 43 and sizes["decorations"] == 57 and sizes["ores"] == 33


@pytest.mark.e2e
def test_another_seed_changes_only_the_seed(tmp_path: Path) -> None:
    with world(tmp_path, seed=7) as running:
        paths = [change.path for change in diff(vanilla()[0], running.dump())]
    assert paths == ["mapgen/seed", "settings/fixed_map_seed"]


EDITS = """
core.override_item("default:apple", {on_use = core.item_eat(4)})
core.registered_items["default:sword_steel"].groups = {sword = 2}
core.register_craftitem("cand:gem", {description = "Gem"})
core.register_craft({output = "cand:gem 2", recipe = {{"default:dirt", "group:wood"}}})
core.register_craft({output = "default:stick 9", recipe = {{"group:wood"}}})
core.register_craft({output = "default:dirt", recipe = {{"bucket:bucket_water"}},
	replacements = {{"bucket:bucket_water", "bucket:bucket_empty"}}})
core.register_craft({type = "cooking", output = "default:stone", recipe = "default:dirt"})
core.register_craft({type = "fuel", recipe = "default:coal_lump", burntime = 80})
core.register_globalstep(function() end)
core.register_chatcommand("hi", {func = function() return true end})
core.register_on_player_hpchange(function(_, change) return change end, true)
core.register_alias("gem", "cand:gem")
core.unregister_biome("grassland")
function default.grow_tree() end
core.settings:set("time_speed", "1000")
"""


@pytest.mark.e2e
def test_what_a_mod_changes_has_a_path(tmp_path: Path) -> None:
    with world(tmp_path, write_mod(tmp_path / "mod", EDITS)) as running:
        found = {change.path: change for change in diff(vanilla()[0], running.dump())}
        assert running.vanilla_names() >= {"default:stone", "__builtin:item", "help"}
        assert "cand:gem" not in running.vanilla_names()
    eat = found["items/default:apple/on_use"]
    assert eat.before.endswith("(hp_change=2)") and eat.after.endswith("(hp_change=4)")
    assert found["items/default:sword_steel/groups/sword"] == Change(
        "items/default:sword_steel/groups/sword", 1, 2
    )
    assert found["items/cand:gem"].before is None
    assert found["items/cand:gem"].after["engine"]["known"] is True
    assert found["recipes/cand:gem"].after["normal 2: default:dirt, group:wood"]["gives"] == "cand:gem 2"
    # The recipe that was there before still stands in the list, but no longer gives what it says.
    assert found["recipes/default:stick/normal 1: group:wood/gives"].after == "default:stick 9"
    bucket = found["recipes/default:dirt"].after["normal 1: bucket:bucket_water"]
    assert bucket["leaves"] == ["bucket:bucket_empty"]
    assert found["cooking/default:dirt"].after == {"item": "default:stone", "time": 3, "leaves": {}}
    assert found["fuel/default:coal_lump/time"] == Change("fuel/default:coal_lump/time", 40, 80)
    assert found["biomes/grassland"].after is None
    assert found["aliases/gem"].after == "cand:gem"
    assert found["commands/hi"].after["mod_origin"] == "cand"
    assert found["mod_functions/default/grow_tree"].after.startswith("fn:cand/init.lua:")
    assert found["settings/time_speed"].after == "1000"
    assert found["mods/cand"].after is True
    lists = [path for path in found if path.startswith("callbacks/")]
    assert [path.partition("/fn:")[0] for path in sorted(lists)] == [
        "callbacks/registered_globalsteps",
        "callbacks/registered_on_player_hpchanges/modifiers",
    ]
