"""How long digging takes: the client decides, from the definitions it was sent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from .definitions import GroupCap, ItemDef, NodeDef, ToolCaps

_IMMEDIATE = {2: 0.5, 3: 0.0}


@dataclass(frozen=True)
class DigTime:
    """`uses`: how many such digs wear the tool out, 0 for never; `group`: the node group that decided."""

    seconds: float
    uses: int
    group: str


@dataclass(frozen=True)
class Stack:
    """An item string taken apart."""

    name: str = ""
    count: int = 0
    wear: int = 0
    meta: dict[str, str] = field(default_factory=dict)


def parse_stack(text: str) -> Stack:
    """`name count wear "metadata"`, as it stands in inventories; an empty string is an empty stack."""
    name, _, rest = text.partition(" ")
    if not name:
        return Stack()
    head, quote, tail = rest.partition('"')
    numbers = [int(word) for word in head.split() if word.isdigit()]
    count = numbers[0] if numbers else 1
    wear = numbers[1] if len(numbers) > 1 else 0
    return Stack(name, count, wear, _metadata(quote + tail))


def _metadata(text: str) -> dict[str, str]:
    try:
        value = json.loads(text) if text else ""
    except ValueError:
        return {}
    if not isinstance(value, str) or not value.startswith("\x01"):
        return {"": value} if isinstance(value, str) and value else {}
    pairs = (entry.partition("\x02") for entry in value[1:].split("\x03"))
    return {key: content for key, found, content in pairs if found}


def tool_caps(items: Mapping[str, ItemDef], item: str, hand: str = "") -> ToolCaps:
    """Capabilities of an item, by its metadata or definition; of the hand if it has none of its own."""
    for text in (item, hand):
        stack = parse_stack(text)
        definition = items.get(stack.name) if stack.name else None
        if own := _caps_from_json(stack.meta.get("tool_capabilities", "")):
            return own
        if definition and definition.tool_capabilities:
            return definition.tool_capabilities
    bare = items.get("")
    return (bare.tool_capabilities if bare else None) or ToolCaps()


def _caps_from_json(text: str) -> ToolCaps | None:
    try:
        data = json.loads(text) if text else None
        if not isinstance(data, dict):
            return None
        caps = {name: _group_cap(cap) for name, cap in (data.get("groupcaps") or {}).items()}
        damage = {name: int(value) for name, value in (data.get("damage_groups") or {}).items()}
        return ToolCaps(
            float(data.get("full_punch_interval", 1.4)),
            int(data.get("max_drop_level", 1)),
            caps,
            damage,
            int(data.get("punch_attack_uses", 0)),
        )
    except (ValueError, TypeError, AttributeError):
        return None


def _group_cap(data: dict[str, object]) -> GroupCap:
    times = data.get("times") or []
    pairs = times.items() if isinstance(times, dict) else enumerate(times)  # type: ignore[arg-type]
    numbers = {int(rating): float(value) for rating, value in pairs if value is not None}
    return GroupCap(int(str(data.get("uses", 20))), int(str(data.get("maxlevel", 1))), numbers)


def dig_time(node: NodeDef | None, items: Mapping[str, ItemDef], item: str, hand: str = "") -> DigTime | None:
    """What a client computes for digging `node`; the bare hand is tried when the item cannot dig it."""
    if node is None or not node.diggable:
        return None
    return _dig_with(node, tool_caps(items, item, hand)) or _dig_with(node, tool_caps(items, "", hand))


def _dig_with(node: NodeDef, caps: ToolCaps) -> DigTime | None:
    immediate = _IMMEDIATE.get(node.groups.get("dig_immediate", 0))
    if immediate is not None:
        return DigTime(immediate, 0, "dig_immediate")
    level = node.groups.get("level", 0)
    best: DigTime | None = None
    for group, cap in caps.groupcaps.items():
        above = cap.maxlevel - level
        seconds = cap.times.get(node.groups.get(group, 0))
        if above < 0 or seconds is None:
            continue
        if above > 1:
            seconds /= above
        if best is None or seconds < best.seconds:
            best = DigTime(round(seconds, 6), cap.uses * 3 ** min(above, 20) if cap.uses > 0 else 0, group)
    return best
