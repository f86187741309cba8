"""Which registry changes a task allows."""

from __future__ import annotations

import pytest
from orrery_worldedit.evidence import Change
from orrery_worldedit.preservation import MACHINERY, matches, offending
from orrery_worldedit.spec import Preservation


@pytest.mark.parametrize(
    ("glob", "path", "covered"),
    [
        ("items/default:apple", "items/default:apple", True),
        ("items/default:apple", "items/default:apple/groups/food", True),
        ("items/default:apple", "items/default:apple2", False),
        ("items/default:apple", "xitems/default:apple", False),
        ("items/*/groups", "items/default:apple/groups/food", True),
        ("items/*/groups", "items/default:apple/engine/groups", False),
        ("items/**/groups", "items/default:apple/engine/groups", True),
        ("items/default:pick_*", "items/default:pick_steel/x", True),
        ("items/default:pick_*", "items/default:axe_steel", False),
        ("items/default.apple", "items/default:apple", False),
        ("items/default:apple*", "items/default:apple/x", True),
        ("items/**", "recipes/items/x", False),
        ("items/[a]", "items/a", False),
        ("items/a", "items/a\n/b", False),
        ("", "items", False),
    ],
)
def test_globs(glob: str, path: str, covered: bool) -> None:
    assert matches(glob, path) is covered


def offends(path: str, before: object, after: object, **rules: object) -> bool:
    change = Change(path=path, before=before, after=after)
    return offending([change], Preservation.model_validate(rules), "cand") == [change]


OWN = {"mod_origin": "cand", "label": "grow"}


@pytest.mark.parametrize("section", MACHINERY)
def test_machinery_may_grow_but_not_shrink_or_change(section: str) -> None:
    assert not offends(f"{section}/cand", None, OWN)
    assert offends(f"{section}/default", OWN, None)
    assert offends(f"{section}/default", OWN, {"label": "other"})


@pytest.mark.parametrize(
    ("path", "after"),
    [
        ("abms/default: Lava cooling/nodenames/3", "default:dirt"),
        ("abms/default: Lava cooling/neighbors", {"1": "default:dirt"}),
        ("lbms/default:upgrade_signs/nodenames/9", "default:dirt"),
        ("detached/creative_trash/allow_put", "fn:cand/init.lua:1"),
        ("abms", {"mod_origin": "other"}),
    ],
)
def test_what_is_added_to_an_entry_of_the_game_offends(path: str, after: object) -> None:
    assert offends(path, None, after)


@pytest.mark.parametrize(
    ("section", "path"),
    [
        ("items", "items/cand:lamp"),
        ("items", "items/:cand:lamp"),
        ("entities", "entities/cand:ghost"),
        ("recipes", "recipes/cand:lamp/shaped 3: a, b"),
        ("cooking", "cooking/cand:ore"),
        ("fuel", "fuel/cand:coal"),
        ("commands", "commands/mana"),
        ("privileges", "privileges/wizard"),
    ],
)
def test_own_content_where_the_task_lets_a_registry_grow(section: str, path: str) -> None:
    assert not offends(path, None, OWN, new=[section])
    assert offends(path, None, OWN)
    assert offends(path, {}, {"other": 1}, new=[section])
    assert offends(path, {}, None, new=[section])


@pytest.mark.parametrize(
    ("section", "path"),
    [
        ("items", "items/other:lamp"),
        ("items", "items/candle:lamp"),
        ("items", "items/default:lamp"),
        ("entities", "entities/__builtin:ghost"),
        ("recipes", "recipes/default:chest/shapeless 0: default:dirt"),
        ("cooking", "cooking/default:dirt"),
        ("fuel", "fuel/default:dirt"),
        ("items", "items"),
        ("recipes", "recipes/"),
        ("commands", "commands/help/more"),
        ("privileges", "privileges/interact/more"),
        ("privileges", "privileges"),
    ],
)
def test_content_under_another_name_is_never_ones_own(section: str, path: str) -> None:
    assert offends(path, None, {}, new=[section])


def test_an_allowed_change_of_vanilla_content() -> None:
    assert not offends("items/default:apple/stack_max", 99, 5, allow=["items/default:apple/stack_max"])
    assert offends("items/default:apple/groups/food", 1, 2, allow=["items/default:apple/stack_max"])


def test_everything_else_offends() -> None:
    for section in (
        "settings",
        "mapgen",
        "biomes",
        "ores",
        "decorations",
        "core_functions",
        "defaults",
        "(more)",
    ):
        assert offends(f"{section}/x", None, 1)


def test_offending_changes_keep_their_order() -> None:
    changes = [Change(path="items/b", before=1), Change(path="callbacks/x"), Change(path="items/a", before=1)]
    assert [c.path for c in offending(changes, Preservation(), "cand")] == ["items/b", "items/a"]
