"""`mod.conf` as the engine reads it, so that what the package gate accepts is what the engine then uses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

_SPACE = " \t\n\r\v\f"
"""What C's isspace knows, and nothing of Unicode's."""
_MULTILINE = '"""'


def read_conf(path: Path) -> dict[str, str]:
    """See `parse_conf`. No line-end translation: the engine makes none."""
    return parse_conf(path.read_bytes().decode("utf-8", "replace"))


def parse_conf(text: str) -> dict[str, str]:
    """The text values of a configuration.

    The engine's rules: lines end at a line feed; the last value of a key counts; a value that is just three
    quotes begins a text that ends at a line of just three quotes, white space included; a value `{` begins
    a group up to a line `}`, which is no text, so that its key has none.
    """
    found: dict[str, str] = {}
    lines = iter(text.split("\n"))
    for line in lines:
        line = line.strip(_SPACE)
        key, equals, value = (part.strip(_SPACE) for part in line.partition("="))
        if not equals or line.startswith("#"):
            continue
        if value == "{":
            if _skip_group(lines):
                found.pop(key, None)
        elif value == _MULTILINE:
            found[key] = _multiline(lines)
        else:
            found[key] = value
    return found


def name_list(value: str) -> list[str]:
    """Names of a comma-separated value; the engine drops all white space in it."""
    return [name for name in "".join(c for c in value if c not in _SPACE).split(",") if name]


def _multiline(lines: Iterator[str]) -> str:
    body = []
    for line in lines:
        if line == _MULTILINE:
            break
        body.append(line)
    return "\n".join(body)


def _skip_group(lines: Iterator[str]) -> bool:
    """Read on to the end of a group; False when the text ends first, and the engine forgets the group."""
    for line in lines:
        line = line.strip(_SPACE)
        _, equals, value = (part.strip(_SPACE) for part in line.partition("="))
        if line == "}":
            return True
        if line.startswith("#") or not equals:
            continue
        if value == "{" and not _skip_group(lines):
            return False
        if value == _MULTILINE:
            _multiline(lines)
    return False
