"""Forms as a server describes them, taken apart so that a check can find a widget by what a player reads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

MAX_WIDGETS = 10_000

# Where each element keeps its parts: name, label, value. A missing part is None.
_PARTS: dict[str, tuple[int | None, int | None, int | None]] = {
    "button": (2, 3, None),
    "button_exit": (2, 3, None),
    "button_url": (2, 3, 4),
    "button_url_exit": (2, 3, 4),
    "image_button": (3, 4, 2),
    "image_button_exit": (3, 4, 2),
    "item_image_button": (3, 4, 2),
    "field": (2, 3, 4),
    "pwdfield": (2, 3, None),
    "textarea": (2, 3, 4),
    "checkbox": (1, 2, 3),
    "dropdown": (2, None, 3),
    "textlist": (2, None, 3),
    "table": (2, None, 3),
    "tabheader": (1, None, 2),
    "scrollbar": (3, None, 4),
    "label": (None, 1, None),
    "vertlabel": (None, 1, None),
    "hypertext": (2, None, 3),
    "image": (None, None, 2),
    "animated_image": (2, None, 3),
    "item_image": (None, None, 2),
    "model": (2, None, 3),
    "background": (None, None, 2),
    "background9": (None, None, 2),
    "box": (None, None, 2),
    "tooltip": (0, 1, None),
}
_PLACED = frozenset(_PARTS) - {"tooltip"} | {"list", "container", "scroll_container"}
_CHOICES = frozenset({"dropdown", "textlist", "table", "tabheader"})
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_ESCAPES = re.compile(r"\x1b\([^)]*\)|\x1b[A-Za-z]")
_UNESCAPE = re.compile(r"\\(.)", re.DOTALL)


@dataclass(frozen=True)
class Widget:
    """One element of a form.

    Attributes:
        type: the element's word, such as `button`, `field`, `list`.
        name: the key under which an answer carries it, empty for what cannot be answered.
        label: the text a player reads on or beside it, without colours.
        value: what it shows: a field's text, an image's texture, the chosen entry.
        pos: position with the containers around it added, or None.
        choices: entries of dropdowns, lists, tables and tabs.
        inventory: inventory location and list name of a `list`, and its first index.
        parts: every part as written, unescaped.
    """

    type: str
    name: str = ""
    label: str = ""
    value: str = ""
    pos: tuple[float, float] | None = None
    choices: tuple[str, ...] = ()
    inventory: tuple[str, str, int] | None = None
    parts: tuple[str, ...] = ()


def plain_text(text: str) -> str:
    """Text without colour and translation marks, as a player reads it."""
    return _ESCAPES.sub("", text)


def parse_formspec(text: str) -> list[Widget]:
    """The elements of a form in order. Malformed elements are kept with what could be read."""
    widgets: list[Widget] = []
    origin: list[tuple[float, float]] = [(0.0, 0.0)]
    for word, raw in _elements(text):
        if len(widgets) >= MAX_WIDGETS:
            break
        parts = _split(raw, ";")
        if word in ("container_end", "scroll_container_end"):
            if len(origin) > 1:
                origin.pop()
            continue
        where = parts[2] if word == "list" and len(parts) > 2 else parts[0]
        pos = _position(where, origin[-1]) if word in _PLACED else None
        widgets.append(_widget(word, parts, pos))
        if word in ("container", "scroll_container"):
            origin.append(pos or origin[-1])
    return widgets


def find_widgets(
    widgets: list[Widget], *, type: str | None = None, label: str | None = None, name: str | None = None
) -> list[Widget]:
    """Widgets of a type (`button` includes `image_button`), by exact name, or with `label` in their label."""
    return [
        widget
        for widget in widgets
        if (type is None or type in widget.type.split("_"))
        and (name is None or widget.name == name)
        and (label is None or label.casefold() in widget.label.casefold())
    ]


def _elements(text: str) -> Iterator[tuple[str, str]]:
    """Words with the raw text between their brackets; a backslash protects the next character."""
    start, word, pos = 0, "", 0
    inside = False
    while pos < len(text):
        char = text[pos]
        if char == "\\":
            pos += 2
            continue
        if char == "[" and not inside:
            word, start, inside = text[start:pos].strip(), pos + 1, True
        elif char == "]" and inside:
            yield word, text[start:pos]
            start, inside = pos + 1, False
        pos += 1


def _split(raw: str, separator: str) -> list[str]:
    """Split at unescaped separators; the parts keep their escapes."""
    parts, start, pos = [], 0, 0
    while pos < len(raw):
        if raw[pos] == "\\":
            pos += 2
            continue
        if raw[pos] == separator:
            parts.append(raw[start:pos])
            start = pos + 1
        pos += 1
    return [*parts, raw[start:]]


def _unescape(text: str) -> str:
    return _UNESCAPE.sub(r"\1", text)


def _position(raw: str, origin: tuple[float, float]) -> tuple[float, float] | None:
    numbers = [part.strip() for part in raw.split(",")]
    if len(numbers) < 2 or not all(_NUMBER.fullmatch(number) for number in numbers[:2]):
        return None
    return float(numbers[0]) + origin[0], float(numbers[1]) + origin[1]


def _is_size(text: str) -> bool:
    return all(_NUMBER.fullmatch(number.strip()) for number in text.split(","))


def _places(word: str, parts: tuple[str, ...]) -> tuple[int | None, int | None, int | None]:
    """Where this element keeps its name, label and value."""
    name, label, value = _PARTS.get(word, (None, None, None))
    if word == "field" and len(parts) == 3:  # without position and size it is the whole form
        return 0, 1, 2
    if word == "tabheader" and len(parts) > 3 and _is_size(parts[1]):  # a size before the name
        return 2, None, 3
    if word == "tooltip" and len(parts) > 2:  # for an area instead of an element
        return None, 2, None
    return name, label, value


def _widget(word: str, raw: list[str], pos: tuple[float, float] | None) -> Widget:
    parts = tuple(_unescape(part) for part in raw)
    places = _places(word, parts)
    name, label, value = (parts[i] if i is not None and i < len(parts) else "" for i in places)
    choices: tuple[str, ...] = ()
    if word in _CHOICES and places[2] is not None and places[2] < len(raw):
        choices = tuple(plain_text(_unescape(entry)) for entry in _split(raw[places[2]], ","))
        value = _chosen(parts[places[2] + 1 : places[2] + 2], choices)
    inventory = _inventory(parts) if word == "list" else None
    return Widget(word, name, plain_text(label), value, pos, choices, inventory, parts)


def _chosen(selected: tuple[str, ...], choices: tuple[str, ...]) -> str:
    """The entry that a selection number, counted from 1, stands for."""
    number = int(selected[0]) if selected and selected[0].strip().isdecimal() else 0
    return choices[number - 1] if 0 < number <= len(choices) else ""


def _inventory(parts: tuple[str, ...]) -> tuple[str, str, int] | None:
    if len(parts) < 4:
        return None
    first = int(parts[4]) if len(parts) > 4 and parts[4].strip().isdecimal() else 0
    return parts[0], parts[1], first
