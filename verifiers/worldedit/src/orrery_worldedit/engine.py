"""Runs the checks of a spec against one arm of a game and keeps what was measured.

Knows no game and gives no verdicts.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any, Protocol

from orrery_core.errors import InfrastructureError
from orrery_core.results import clean_text

from orrery_worldedit.evidence import ArmEvidence, CheckEvidence
from orrery_worldedit.spec import Check, Step, Subject, TaskSpec
from orrery_worldedit.verbs import verbs_of

MAX_DEATHS = 2
"""A server that fell over this often in one verification is not started again.

What is left counts as unreached.
"""

MAX_DEPTH = 40
"""Deepest nesting of an answer."""
MAX_ANSWERS = 8 << 20
"""Characters of all answers of one check, written as JSON."""

_REFERENCE = re.compile(r"\$([a-z0-9_]+)((?:\.[a-z0-9_]+)*)")


class StepStopped(Exception):
    """A step cannot be done in this world (no such subject, nothing to click, the player is dead).

    A fact, not a fault.
    """


class GameDied(Exception):
    """The game server ended, hung or went silent.

    With the submission inside, that is the submission's failure.
    """


class NotMeasurable(Exception):
    """The adapter lacks a capability that the step needs."""


class Game(Protocol):
    """One arm of a verification: a live game with or without the submission."""

    capabilities: frozenset[str]
    hostile: bool
    """Whether the submission runs inside.

    What goes wrong then counts against it, an answer that makes no sense included: otherwise a submission
    could make its own trial unmeasurable. Without it, the same is the evaluator's own fault.
    """

    def prepare(self, check: Check) -> None:
        """Bring world and players into the state every check starts from.

        A new server when the check asks for one.
        """

    def call(self, verb: str, arguments: dict[str, Any]) -> Any:
        """Do or measure one thing; the answer is JSON data.

        Raises:
            StepStopped: it cannot be done in this world.
            GameDied: the server ended or went silent.
            NotMeasurable: the adapter cannot do this at all.
        """

    def find(self, subject: Subject) -> list[str]:
        """Names of everything the mod added that matches."""

    def revive(self) -> None:
        """Start again after a death.

        Raises:
            GameDied: it does not come up again.
        """


def run_checks(spec: TaskSpec, game: Game) -> ArmEvidence:
    """Run every check of a spec on one arm.

    Args:
        spec: the task.
        game: a started game.

    Returns:
        Evidence of a loaded arm; `tampered` is left to the caller, who knows when the last word is spoken.
    """
    arm = ArmEvidence(loaded=True)
    deaths, over = 0, ""
    try:
        arm.subjects = {subject.id: _find(game, subject) for subject in spec.subjects}
    except GameDied as death:
        over = f"the server had died: {death}"
        arm.checks[spec.checks[0].id] = CheckEvidence(outcome="died", reason=f"before any check: {death}")
    for check in spec.checks:
        if over:
            arm.checks.setdefault(check.id, CheckEvidence(outcome="skipped", reason=over))
            continue
        arm.checks[check.id] = evidence = _run_check(check, game, arm.subjects)
        if evidence.outcome == "died":
            deaths += 1
            over = f"the server had died {deaths} times" if deaths >= MAX_DEATHS else _revive(game)
    return arm


def _revive(game: Game) -> str:
    """Start the game again; why that failed, empty when it did not."""
    try:
        game.revive()
    except InfrastructureError:
        raise
    except GameDied as death:
        return f"the server had died and does not start again: {death}"
    except Exception as fault:
        if not game.hostile:
            raise
        return f"the server had died and cannot be started again ({_words(fault)})"
    return ""


def _find(game: Game, subject: Subject) -> list[str]:
    try:
        return game.find(subject)
    except StepStopped:
        return []
    except (GameDied, InfrastructureError):
        raise
    except Exception:
        if not game.hostile:
            raise
        return []


def _run_check(check: Check, game: Game, subjects: Mapping[str, list[str]]) -> CheckEvidence:
    missing = (
        {verb.capability for name, verb in verbs_of(type(game)).items() if _uses(check, name)}
        - game.capabilities
        - {""}
    )
    if missing:
        return CheckEvidence(
            outcome="unmeasurable", reason=f"not measurable here: needs {', '.join(sorted(missing))}"
        )
    run = _Run(game, subjects)
    outcome, reason = "measured", ""
    try:
        game.prepare(check)
        for part in (check.fixture, check.trigger, check.measurement):
            run.steps(part, looping=False)
    except StepStopped as stop:
        # The vanilla game always gets as far as the first step.
        outcome = "stopped" if run.begun or game.hostile else "unmeasurable"
        reason = f"{run.at}: {stop}"
    except GameDied as death:
        outcome, reason = "died", f"{run.at}: {death}"
    except NotMeasurable as lack:
        outcome, reason = "unmeasurable", f"not measurable here: {lack}"
    except InfrastructureError:
        raise
    except Exception as fault:
        outcome = "stopped" if game.hostile else "unmeasurable"
        reason = f"{run.at}: the game's answer makes no sense ({_words(fault)})"
    return CheckEvidence.model_validate({"outcome": outcome, "reason": _line(reason), "values": run.values})


def _line(text: str) -> str:
    """Text that a mod may have written, fit for a terminal and a report."""
    return "".join(char if char.isprintable() else " " for char in str(clean_text(text)))


def _words(fault: Exception) -> str:
    return f"{type(fault).__name__}: {fault}"[:300]


def plain_data(value: Any, depth: int = 0) -> Any:
    """An answer as plain JSON data; numbers that JSON does not know become texts such as "nan".

    Raises:
        ValueError: it is no data, or nested too deep.
    """
    if depth > MAX_DEPTH:
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return clean_text(value)
    if isinstance(value, Mapping):
        return {clean_text(str(key)): plain_data(part, depth + 1) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain_data(part, depth + 1) for part in value]
    raise ValueError(f"{type(value).__name__} is no data")


def _uses(check: Check, verb: str) -> bool:
    return any(step.do == verb for _, step in check.all_steps())


class _Run:
    """The steps of one check: values bound so far, and the place reached, for messages."""

    def __init__(self, game: Game, subjects: Mapping[str, list[str]]) -> None:
        self._game = game
        self._subjects = subjects
        self._latest: dict[str, Any] = {}
        self.values: dict[str, Any] = {}
        self.at = "getting ready"
        self.begun = False
        self._room = MAX_ANSWERS

    def steps(self, steps: list[Step], looping: bool) -> None:
        for step in steps:
            if step.steps is None:
                self._verb(step, looping)
                continue
            rounds = step.values if step.values is not None else list(range(step.repeat or 0))
            for value in rounds:
                if step.each:
                    self._latest[step.each] = value
                self.steps(step.steps, looping=True)

    def _verb(self, step: Step, looping: bool) -> None:
        assert step.do is not None
        self.at, self.begun = step.do, True
        arguments = {key: self._resolve(value) for key, value in step.arguments.items()}
        answer = plain_data(self._game.call(step.do, arguments))
        self._room -= len(json.dumps(answer))
        if self._room < 0:
            raise ValueError(f"more than {MAX_ANSWERS} characters in all")
        if step.bind:
            self._latest[step.bind] = answer
            if looping:
                self.values.setdefault(step.bind, []).append(answer)
            else:
                self.values[step.bind] = answer

    def _resolve(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._resolve(part) for part in value]
        if isinstance(value, dict):
            return {key: self._resolve(part) for key, part in value.items()}
        if not isinstance(value, str) or "$" not in value:
            return value
        whole = _REFERENCE.fullmatch(value)
        if whole:
            return self._lookup(whole)
        return _REFERENCE.sub(lambda match: str(self._lookup(match)), value)

    def _lookup(self, match: re.Match[str]) -> Any:
        name, path = match[1], match[2].split(".")[1:]
        if name in self._latest:
            value = self._latest[name]
        else:
            found = self._subjects.get(name, [])
            if len(found) != 1:
                what = (
                    "nothing the mod added matches"
                    if not found
                    else f"ambiguous, all of these match: {', '.join(found)}"
                )
                raise StepStopped(f'subject "{name}": {what}')
            value = found[0]
        for key in path:
            if not isinstance(value, Mapping) or key not in value:
                raise StepStopped(f"{match[0]}: no such part in {value!r}"[:300])
            value = value[key]
        return value
