"""Finding what a mod added by what it is called: names are never fixed unless the request fixes them."""

from __future__ import annotations

import re
from typing import Any

from orrery_worldedit.games.luanti.world import World
from orrery_worldedit.spec import Subject

_ADDED = """
local found = {}
local function add(kind, name, def)
	if type(name) ~= "string" or type(def) ~= "table" or rawget(def, "mod_origin") ~= arg then return end
	kind = kind or rawget(def, "type") or "craft"
	local text = rawget(def, "description")
	found[#found + 1] = {
		kind = type(kind) == "string" and kind or "", name = name,
		text = type(text) == "string" and string.sub(text, 1, 1000) or "",
	}
end
for name, def in next, C.registered_items do add(nil, name, def) end
for name, def in next, C.registered_entities do add("entity", name, def) end
for name, def in next, C.registered_chatcommands do add("command", name, def) end
return found
"""
_KINDS = {
    "tool": {"tool"},
    "node": {"node"},
    "craftitem": {"craft"},
    "item": {"tool", "node", "craft"},
    "entity": {"entity"},
    "command": {"command"},
}


def find(world: World, subject: Subject, mod_name: str | None) -> list[str]:
    """Names of everything of the subject's kind that the mod registered and whose words match.

    Args:
        world: a running world.
        subject: what to look for.
        mod_name: the submission's mod; None on the vanilla arm, where nothing was added.
    """
    if mod_name is None:
        return []
    entries: list[dict[str, Any]] = list(world.ask(_ADDED, mod_name) or [])
    wanted = [entry for entry in entries if entry["kind"] in _KINDS[subject.kind]]
    return sorted(e["name"] for e in wanted if matches(subject, f"{e['name']} {e['text']}"))


def matches(subject: Subject, text: str) -> bool:
    """Whether a name and description carry every group of words and none of the forbidden ones."""
    words = set(re.findall(r"[a-z]+|[0-9]+", text.lower()))
    return all(any(word in words for word in group) for group in subject.words) and not words & set(
        subject.without
    )
