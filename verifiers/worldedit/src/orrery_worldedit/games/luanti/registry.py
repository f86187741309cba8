"""Registry dumps in canonical form, and what differs between two of them.

Only dumps of the same engine and game version are comparable. A path names one value, for example
`items/default:pick_steel/tool_capabilities/groupcaps/cracky/uses`; positions in a list count from 1.

| section | entries |
|---|---|
| `items` | by name; `engine` below an item is the engine's own copy, made when it was registered |
| `defaults` | what every node, craft item, tool falls back to |
| `entities`, `commands`, `privileges`, `aliases`, `detached` | by name |
| `recipes` | by output, then `method width: grid`; `gives` and `leaves` are what crafting really does |
| `cooking`, `fuel` | by input |
| `abms`, `lbms`, `biomes`, `ores`, `decorations` | by label, name or content |
| `callbacks` | by list, then where the function comes from |
| `core_functions`, `mod_functions` | by name (and mod): where the function comes from |
| `settings`, `mapgen`, `mods`, `features`, `version` | by name |

A function's value is `fn:<mod>/<file>:<line>`, for definitions with the plain values it closes over.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

Entry = Any
Section = dict[str, Entry]

_PER_RUN_SETTINGS = {"port", "prometheus_listener_address", "secure.trusted_mods"}
_DEFAULTS = ("nodedef_default", "craftitemdef_default", "tooldef_default", "noneitemdef_default")
_AS_THEY_ARE = (
    "entities",
    "commands",
    "privileges",
    "aliases",
    "detached",
    "cooking",
    "fuel",
    "core_functions",
    "mod_functions",
    "mapgen",
    "mods",
    "features",
    "version",
)

# A recipe or alias is named after what it makes, not after who made it.
_NAMED_BY_MOD = ("items", "entities", "lbms")


@dataclass(frozen=True)
class Change:
    """One difference. An entry that is new has no `before`, one that is gone has no `after`."""

    path: str
    before: Any = None
    after: Any = None


@dataclass(frozen=True)
class Addition:
    """A whole entry that the vanilla registry lacks.

    Attributes:
        section: such as `items`.
        name: of the entry, without the section.
        origin: the mod that registered it; empty where nothing tells.
    """

    section: str
    name: str
    origin: str


def canonical(raw: dict[str, Any]) -> dict[str, Section]:
    """Bring the probe's dump into the form above: keyed by content, without what differs from run to run."""
    found: dict[str, Section] = {name: _section(raw.get(name)) for name in _AS_THEY_ARE}
    copies = _section(raw.get("engine"))
    found["items"] = {
        name: {**entry, "engine": copies.get(name)} if isinstance(entry, dict) else entry
        for name, entry in _section(raw.get("items")).items()
    }
    found["defaults"] = {name: raw.get(name) for name in _DEFAULTS}
    found["recipes"] = {
        output: _keyed(_entries(recipes), _recipe_key, _recipe_result)
        for output, recipes in _section(raw.get("recipes")).items()
    }
    found["callbacks"] = {
        name: _callback_list(functions) for name, functions in _section(raw.get("callbacks")).items()
    }
    for name, key in _KEYS.items():
        found[name] = _keyed(_entries(raw.get(name)), key)
    settings = _section(raw.get("settings"))
    found["settings"] = {key: settings[key] for key in settings if key not in _PER_RUN_SETTINGS}
    return found


def diff(vanilla: dict[str, Any], candidate: dict[str, Any]) -> list[Change]:
    """Every difference, sorted by path; a new or missing entry is one change, not one per field of it."""
    return list(_differences("", vanilla, candidate))


def additions(changes: Iterable[Change]) -> list[Addition]:
    """The changes that are whole new entries, with the mod they come from."""
    found = []
    for change in changes:
        section, _, name = change.path.partition("/")
        depth = 2 if section in ("recipes", "callbacks", "mod_functions") else 1
        if change.before is None and name and _levels(section, name) <= depth:
            found.append(Addition(section, name, origin(section, name, change.after)))
    return found


def origin(section: str, name: str, entry: Entry) -> str:
    """The mod that registered an entry, by its `mod_origin`, its function or its name's prefix."""
    if isinstance(entry, dict) and isinstance(entry.get("mod_origin"), str):
        return str(entry["mod_origin"])
    for text in (entry, name):
        found = re.search(r"fn:([A-Za-z0-9_]+)/", text) if isinstance(text, str) else None
        if found:
            return found.group(1)
    prefix = re.match(r"([a-z0-9_]+):", name) if section in _NAMED_BY_MOD else None
    return prefix.group(1) if prefix else ""


def _levels(section: str, name: str) -> int:
    # Where functions come from has slashes of its own.
    return 1 + name.partition("/fn:")[0].count("/") + ("/fn:" in name)


# -- differences


def _differences(path: str, before: Any, after: Any) -> Iterator[Change]:
    if isinstance(before, dict | list) and isinstance(after, dict | list):
        old, new = _indexed(before), _indexed(after)
        for key in sorted(old.keys() | new.keys()):
            below = f"{path}/{key}" if path else key
            if key not in old or key not in new:
                yield Change(below, old.get(key), new.get(key))
            else:
                yield from _differences(below, old[key], new[key])
    elif before != after or isinstance(before, bool) != isinstance(after, bool):
        yield Change(path, before, after)


def _indexed(value: dict[str, Any] | list[Any]) -> dict[str, Any]:
    """A list as a map from positions: Lua does not tell an empty list from an empty map."""
    if isinstance(value, dict):
        return value
    return {str(position): entry for position, entry in enumerate(value, 1)}


# -- keys


def _section(value: Any) -> Section:
    """A section of the dump. An oversized one is a text, which has to show as a difference."""
    return _indexed(value) if isinstance(value, dict | list) else {"": value}


def _entries(value: Any) -> list[Entry]:
    return list(_section(value).values())


def _same(entry: Section) -> Entry:
    return entry


def _keyed(
    entries: list[Entry], key: Callable[[Section], str], value: Callable[[Section], Entry] = _same
) -> Section:
    """Entries by key; those that share one are numbered in the order of their contents."""
    found: Section = {}
    for entry in sorted(entries, key=_text):
        name = key(entry) if isinstance(entry, dict) else _text(entry)
        unique, count = name, 1
        while unique in found:
            count += 1
            unique = f"{name} #{count}"
        found[unique] = value(entry) if isinstance(entry, dict) else entry
    return found


def _text(entry: Entry) -> str:
    return entry if isinstance(entry, str) else json.dumps(entry, sort_keys=True)


def _listed(value: Any) -> str:
    """A name, or several, as a definition gives them."""
    if isinstance(value, dict | list):
        return ",".join(_text(part) for part in _indexed(value).values())
    return "" if value is None else _text(value)


def _abm_key(abm: Section) -> str:
    label = _listed(abm.get("label")) or _listed(abm.get("action"))
    return f"{_listed(abm.get('mod_origin'))}: {label}"


def _lbm_key(lbm: Section) -> str:
    return _listed(lbm.get("name"))


def _biome_key(biome: Section) -> str:
    return _listed(biome.get("name"))


def _ore_key(ore: Section) -> str:
    if ore.get("name"):
        return _listed(ore["name"])
    heights = f"{_listed(ore.get('y_min'))}..{_listed(ore.get('y_max'))}"
    return f"{_listed(ore.get('ore'))} in {_listed(ore.get('wherein'))} {heights}"


def _decoration_key(decoration: Section) -> str:
    what = decoration.get("name") or decoration.get("decoration") or decoration.get("schematic")
    return _listed(what)


_KEYS: dict[str, Callable[[Section], str]] = {
    "abms": _abm_key,
    "lbms": _lbm_key,
    "biomes": _biome_key,
    "ores": _ore_key,
    "decorations": _decoration_key,
}


def _recipe_key(recipe: Section) -> str:
    items = recipe.get("items")
    slots = _indexed(items) if isinstance(items, dict | list) else {}
    last = max((int(slot) for slot in slots if slot.isdigit()), default=0)
    grid = ", ".join(_listed(slots.get(str(slot))) or "-" for slot in range(1, last + 1))
    return f"{_listed(recipe.get('method'))} {_listed(recipe.get('width'))}: {grid}"


def _recipe_result(recipe: Section) -> Entry:
    return {key: recipe.get(key) for key in ("output", "gives", "leaves")}


def _callback_list(functions: Any) -> Entry:
    if isinstance(
        functions, dict
    ):  # registered_on_player_hpchanges has two lists in it, or the list is empty
        return {name: _callback_list(inner) for name, inner in functions.items()}
    return _keyed(_entries(functions), _text)
