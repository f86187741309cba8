"""The one source of a world-editing task.

``spec.toml`` as pydantic models, with errors that name file, field and mend.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from orrery_core.errors import UserError
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from orrery_worldedit import expression, games, verbs

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=64)]
Genre = Literal["combat", "movement", "entities", "crafting", "worldgen", "progression", "multisystem"]


class Strict(BaseModel):
    """A model that refuses unknown fields, so that a misspelt one is an error and not silence."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)


class Step(BaseModel):
    """One line of a fixture, trigger or measurement.

    Either a verb (``do`` and its arguments, ``as`` to keep the answer), or a loop: ``each``/``in`` over
    values or ``repeat``
    a number of times over ``steps``; answers bound inside a loop become lists, one entry a round.
    """

    model_config = ConfigDict(extra="allow", populate_by_name=True)

    do: str | None = None
    bind: Name | None = Field(None, alias="as")
    each: Name | None = None
    values: list[Any] | None = Field(None, alias="in")
    repeat: Annotated[int, Field(ge=1, le=2000)] | None = None
    steps: list[Step] | None = None

    @property
    def arguments(self) -> dict[str, Any]:
        """The verb's arguments as written."""
        return dict(self.model_extra or {})

    @property
    def is_loop(self) -> bool:
        return self.steps is not None

    @model_validator(mode="after")
    def _one_form(self) -> Step:
        if self.is_loop:
            if self.do or self.bind or self.arguments:
                raise ValueError("a loop has only each/in or repeat, and steps")
            if (self.repeat is None) == (self.each is None) or (self.each is None) != (self.values is None):
                raise ValueError("a loop needs either `repeat = N` or `each = name` with `in = [...]`")
        elif not self.do:
            raise ValueError("a step needs `do = verb` or a loop with `steps`")
        elif self.each or self.values is not None or self.repeat:
            raise ValueError("each, in and repeat belong to a loop: put the verb into its `steps`")
        return self


class Check(Strict):
    """One hidden criterion: the seven behaviour fields as words, and the five parts that run as data."""

    id: Name
    stage: Literal["state", "behaviour", "regression"]
    requirement: Annotated[int, Field(ge=1)]
    """Which of the task's requirements (1-based) this criterion tests."""
    actor: str = "player"
    action: str
    subject: str
    provenance: str = "given by the fixture"
    context: str = ""
    timing: str = "at once"
    outcome: str
    players: list[Name] = ["alice"]
    """Who takes part; players are joined before the fixture and reset to full health and empty hands."""
    fresh: bool = False
    """Start a new server for this check, for claims about a whole world or its restart."""
    fixture: list[Step] = []
    trigger: list[Step] = []
    measurement: list[Step] = []
    gates: list[str] = []
    """Expressions that must hold for the measurement to mean anything; false = `unreached`."""
    acceptance: Annotated[list[str], Field(min_length=1)]
    vanilla: Literal["fail", "pass"] | None = None
    """What the unmodified game must give; by default `pass` for regressions and `fail` for everything else.
    """

    @property
    def expected_vanilla(self) -> str:
        return self.vanilla or ("pass" if self.stage == "regression" else "fail")

    def all_steps(self) -> Iterator[tuple[str, Step]]:
        """Every verb step with its place, loops unrolled one level after another."""
        for part in ("fixture", "trigger", "measurement"):
            yield from _walk(getattr(self, part), part)


class Subject(Strict):
    """Content the mod adds, found at run time by what it is called; exactly one match is required."""

    id: Name
    kind: Literal["tool", "node", "craftitem", "item", "entity", "command"]
    words: list[list[str]]
    """All groups must match; a group matches when one of its words is in the name or description."""
    without: list[str] = []
    """None of these words may occur."""


class Preservation(Strict):
    """What the mod may change in the game's registries.

    Everything else is compared exhaustively with vanilla.
    """

    allow: list[str] = []
    """Globs over paths of the registry diff, `**` for any depth."""
    new: list[Literal["items", "entities", "recipes", "cooking", "fuel", "commands", "privileges"]] = []
    """Registries that may grow by content of the mod itself."""


class Mod(Strict):
    """The immutable metadata of the scaffold."""

    name: Name
    depends: list[Name] = ["default"]
    optional_depends: list[Name] = []


class Mutant(Strict):
    """A plausible mistake.

    `mutants/<id>/` overlays the reference solution and must fail the criterion named here.
    """

    id: Name
    mistake: str
    criterion: str


class TaskSpec(Strict):
    """A whole task."""

    schema_version: Literal[1]
    id: Annotated[str, Field(pattern=r"^l[1-4]_[a-z0-9_]+$")]
    version: Annotated[str, Field(pattern=r"^\d+\.\d+$")] = "1.0"
    family: Literal["luanti"]
    level: Annotated[int, Field(ge=1, le=4)]
    genre: Genre
    title: str
    status: Literal["proven", "unproven"] = "proven"
    seed: int = 42
    request: str
    requirements: Annotated[list[str], Field(min_length=1)]
    mod: Mod
    preservation: Preservation = Preservation()
    subjects: list[Subject] = []
    checks: Annotated[list[Check], Field(min_length=1)]
    mutants: list[Mutant] = []

    @model_validator(mode="after")
    def _consistent(self) -> TaskSpec:
        found = list(_inconsistencies(self))
        if found:
            raise ValueError("; ".join(found))
        return self

    @property
    def criteria(self) -> list[str]:
        """Ids of everything that is judged, in report order."""
        return [*STANDARD_CRITERIA, *(check.id for check in self.checks)]

    def without_solutions(self) -> TaskSpec:
        """The part that the verifier image needs: no mutants."""
        return self.model_copy(update={"mutants": []})


STANDARD_CRITERIA = ("built", "loaded", "survives", "registry_preserved", "untampered")
"""Criteria every task has.

Package and syntax, loading, no crash in any check, exhaustive registry diff, tamper list.
"""


def load_spec(path: Path) -> TaskSpec:
    """Read ``spec.toml`` or its rendered form ``spec.json``.

    Raises:
        UserError: missing, malformed or inconsistent; every problem is listed with its field.
    """
    try:
        text = path.read_bytes().decode()
    except OSError as problem:
        raise UserError(
            f"{path}: cannot be read ({problem.strerror})", "give a task directory that has a spec.toml"
        ) from None
    except UnicodeDecodeError as problem:
        raise UserError(f"{path}: not UTF-8 at byte {problem.start}", "save the file as UTF-8") from None
    try:
        if path.suffix == ".json":
            return TaskSpec.model_validate_json(text)
        return TaskSpec.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as problem:
        raise UserError(f"{path}: not TOML: {problem}", "mend the line named here") from None
    except ValidationError as problem:
        lines = [
            f"{path}: {_field(error['loc'])}{error['msg'].removeprefix('Value error, ')}"
            for error in problem.errors()
        ]
        raise UserError(
            "\n".join(lines), "mend the fields named here; CONTRIBUTING.md describes each"
        ) from None


def _field(location: tuple[int | str, ...]) -> str:
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).lstrip(".")
    return f"{text}: " if text else ""


_TAKEN = expression.RESERVED | expression.FUNCTIONS.keys()


def _walk(steps: list[Step], place: str) -> Iterator[tuple[str, Step]]:
    for index, step in enumerate(steps):
        if step.steps is not None:
            yield from _walk(step.steps, f"{place}[{index}].steps")
        else:
            yield f"{place}[{index}]", step


def _inconsistencies(spec: TaskSpec) -> Iterator[str]:
    adapter = games.verbs_class(spec.family)
    if not spec.id.startswith(f"l{spec.level}_"):
        yield f'id "{spec.id}" does not start with its level l{spec.level}_'
    ids = spec.criteria
    yield from (f'checks: id "{name}" is used twice' for name in sorted({n for n in ids if ids.count(n) > 1}))
    tested = {check.requirement for check in spec.checks}
    for number in range(1, len(spec.requirements) + 1):
        if number not in tested:
            yield f"requirements[{number - 1}] is tested by no check; drop it or add one"
    subjects = {subject.id for subject in spec.subjects}
    for index, check in enumerate(spec.checks):
        place = f'checks[{index}] ("{check.id}")'
        if check.requirement > len(spec.requirements):
            yield f"{place}.requirement: there are only {len(spec.requirements)} requirements"
        yield from _step_problems(check, place, adapter, subjects)
        yield from _expression_problems(check, place, subjects)
    for index, mutant in enumerate(spec.mutants):
        if mutant.criterion not in ids:
            meant = verbs.suggestion(mutant.criterion, ids)
            yield f'mutants[{index}].criterion: "{mutant.criterion}" is no criterion{meant}'


def _step_problems(check: Check, place: str, adapter: type, subjects: set[str]) -> Iterator[str]:
    declared = verbs.verbs_of(adapter)
    known = subjects | _loop_names(check)
    for where, step in check.all_steps():
        assert step.do is not None
        for problem in verbs.problems(adapter, step.do, step.arguments):
            yield f"{place}.{where}: {problem}"
        for reference in re.findall(r"\$([a-z0-9_]+)", str(step.arguments)):
            if reference not in known:
                meant = verbs.suggestion(reference, sorted(known))
                yield f"{place}.{where}: ${reference} is neither a subject nor bound before{meant}"
        for key, value in step.arguments.items():
            if (
                key in ("player", "target", "attacker", "like")
                and not verbs.is_reference(value)
                and value not in check.players
            ):
                yield f'{place}.{where}: player "{value}" is not in players = {check.players}'
        if step.bind:
            if step.bind in _TAKEN or step.bind in subjects:
                yield f'{place}.{where}: as = "{step.bind}" has another meaning; choose another name'
            known.add(step.bind)
        kind = declared[step.do].kind if step.do in declared else None
        if where.startswith("fixture") and kind is verbs.Kind.ACT and step.do not in ("wait",):
            yield f'{place}.{where}: "{step.do}" is an act of a player; acts belong into the trigger'


def _loop_names(check: Check) -> set[str]:
    found: set[str] = set()

    def visit(steps: list[Step]) -> None:
        for step in steps:
            if step.each:
                found.add(step.each)
            visit(step.steps or [])

    for part in (check.fixture, check.trigger, check.measurement):
        visit(part)
    return found


def _expression_problems(check: Check, place: str, subjects: set[str]) -> Iterator[str]:
    bound = subjects | {step.bind for _, step in check.all_steps() if step.bind}
    for part in ("gates", "acceptance"):
        for index, text in enumerate(getattr(check, part)):
            try:
                missing = expression.names(text) - bound
            except expression.ExpressionError as problem:
                yield f"{place}.{part}[{index}]: {problem}"
                continue
            for name in sorted(missing):
                meant = verbs.suggestion(name, sorted(bound))
                yield f'{place}.{part}[{index}]: "{name}" is measured by no step{meant}'
