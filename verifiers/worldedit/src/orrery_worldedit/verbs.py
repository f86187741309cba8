"""Verbs: what a check can tell a game to do or measure.

An adapter is a class whose methods carry :func:`verb`. The signature is the schema: parameter names and
types are checked
when a spec is loaded, so that a misspelt verb or a wrong argument never reaches a game.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Annotated, Any, TypeVar, get_type_hints

from pydantic import Field, TypeAdapter, ValidationError

Position = Annotated[list[float], Field(min_length=3, max_length=3)]
"""[x, y, z] in nodes, relative to the arena: [0, 0, 0] is the free place above its middle, +z is ahead."""


class Kind(StrEnum):
    """What a verb is for; a fixture must not contain acts, a measurement must not change the world."""

    FIXTURE = "fixture"
    ACT = "act"
    MEASURE = "measure"


@dataclass(frozen=True)
class Verb:
    """One declared verb: its kind, its parameters (name -> type, required) and its first doc line."""

    name: str
    kind: Kind
    parameters: Mapping[str, tuple[TypeAdapter[Any], bool]]
    doc: str
    capability: str


F = TypeVar("F", bound=Callable[..., Any])


def verb(kind: Kind, capability: str = "") -> Callable[[F], F]:
    """Declare a method of an adapter as a verb.

    Args:
        kind: what the verb is for.
        capability: what the adapter must be able to do for it; empty when every adapter of the class can.
    """

    def mark(function: F) -> F:
        function.__dict__["_verb"] = (kind, capability)
        return function

    return mark


@cache
def verbs_of(adapter: type) -> dict[str, Verb]:
    """All verbs an adapter class declares, by name."""
    found = {}
    for name, method in inspect.getmembers(adapter, inspect.isfunction):
        if "_verb" not in method.__dict__:
            continue
        kind, capability = method.__dict__["_verb"]
        hints = get_type_hints(method, include_extras=True)
        parameters = {
            p.name: (TypeAdapter(hints[p.name]), p.default is inspect.Parameter.empty)
            for p in list(inspect.signature(method).parameters.values())[1:]
        }
        doc = (inspect.getdoc(method) or "").partition("\n")[0]
        found[name] = Verb(name, kind, parameters, doc, capability)
    return found


def is_reference(value: object) -> bool:
    """Whether an argument is ``$name``: a subject or an earlier value, put in when the step runs."""
    return isinstance(value, str) and value.startswith("$")


def problems(adapter: type, name: str, arguments: Mapping[str, Any]) -> list[str]:
    """What is wrong with a step, in words; empty when it is sound."""
    verbs = verbs_of(adapter)
    if name not in verbs:
        return [f'verb "{name}" is unknown{suggestion(name, verbs)}']
    parameters = verbs[name].parameters
    found = [
        f'verb "{name}" has no argument "{key}"{suggestion(key, parameters)}'
        for key in arguments
        if key not in parameters
    ]
    found += [
        f'verb "{name}" needs "{key}"'
        for key, (_, required) in parameters.items()
        if required and key not in arguments
    ]
    for key, value in arguments.items():
        if key in parameters and not is_reference(value) and not _has_references(value):
            try:
                parameters[key][0].validate_python(value, strict=True)
            except ValidationError as error:
                found.append(f'verb "{name}", argument "{key}": {error.errors()[0]["msg"]}')
    return found


def suggestion(word: str, known: Mapping[str, Any] | list[str]) -> str:
    """`; did you mean "dig"?`, or nothing when no known word is near."""
    close = difflib.get_close_matches(word, list(known), n=1)
    return f'; did you mean "{close[0]}"?' if close else ""


def _has_references(value: Any) -> bool:
    if isinstance(value, list):
        return any(_has_references(part) for part in value)
    if isinstance(value, dict):
        return any(_has_references(part) for part in value.values())
    return is_reference(value)
