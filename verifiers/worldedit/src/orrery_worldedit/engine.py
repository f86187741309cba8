"""Runs the checks of a spec against one arm of a game and keeps what was measured.

Knows no game and gives no verdicts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from orrery_worldedit.evidence import ArmEvidence, CheckEvidence
from orrery_worldedit.spec import Check, Step, Subject, TaskSpec
from orrery_worldedit.verbs import verbs_of

MAX_DEATHS = 2
"""A server that fell over this often in one verification is not started again.

What is left counts as unreached.
"""

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
        """Start again after a death."""


def run_checks(spec: TaskSpec, game: Game, progress: Callable[[str], None] = lambda _: None) -> ArmEvidence:
    """Run every check of a spec on one arm.

    Args:
        spec: the task.
        game: a started game.
        progress: called with the id of each check before it runs.

    Returns:
        Evidence of a loaded arm; `tampered` is left to the caller, who knows when the last word is spoken.
    """
    arm = ArmEvidence(loaded=True, subjects={subject.id: game.find(subject) for subject in spec.subjects})
    deaths = 0
    for check in spec.checks:
        if deaths >= MAX_DEATHS:
            arm.checks[check.id] = CheckEvidence(
                outcome="skipped", reason=f"the server had died {deaths} times"
            )
            continue
        progress(check.id)
        arm.checks[check.id] = evidence = _run_check(check, game, arm.subjects)
        if evidence.outcome == "died":
            deaths += 1
            if deaths < MAX_DEATHS:
                game.revive()
    return arm


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
    try:
        game.prepare(check)
        for part in (check.fixture, check.trigger, check.measurement):
            run.steps(part, looping=False)
    except StepStopped as stop:
        return CheckEvidence(outcome="stopped", reason=f"{run.at}: {stop}", values=run.values)
    except GameDied as death:
        return CheckEvidence(outcome="died", reason=f"{run.at}: {death}", values=run.values)
    except NotMeasurable as lack:
        return CheckEvidence(outcome="unmeasurable", reason=f"not measurable here: {lack}", values=run.values)
    return CheckEvidence(outcome="measured", values=run.values)


def _uses(check: Check, verb: str) -> bool:
    return any(step.do == verb for _, step in check.all_steps())


class _Run:
    """The steps of one check: values bound so far, and the place reached, for messages."""

    def __init__(self, game: Game, subjects: Mapping[str, list[str]]) -> None:
        self._game = game
        self._subjects = subjects
        self._latest: dict[str, Any] = {}
        self.values: dict[str, Any] = {}
        self.at = "start"

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
        self.at = step.do
        answer = self._game.call(
            step.do, {key: self._resolve(value) for key, value in step.arguments.items()}
        )
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
