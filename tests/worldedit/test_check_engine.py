"""The engine on a made-up game (no server runs here): what is asked, in which order, and how it ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from orrery_core.errors import InfrastructureError
from orrery_worldedit import engine
from orrery_worldedit.engine import GameDied, NotMeasurable, StepStopped, plain_data, run_checks
from orrery_worldedit.evidence import ArmEvidence
from orrery_worldedit.spec import Check, Subject, TaskSpec
from orrery_worldedit.verbs import Kind, Position, verb
from tasks_for_tests import check, spec


class FakeGame:
    """Made up for these tests: answers come from a table, and everything asked is written down."""

    capabilities: frozenset[str] = frozenset()

    def __init__(self, answers: Mapping[str, Any] | None = None, *, hostile: bool = True) -> None:
        self.hostile = hostile
        self.answers = dict(answers or {})
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.prepared: list[str] = []
        self.revived = 0
        self.found: dict[str, list[str]] = {}

    @verb(Kind.MEASURE)
    def node(self, at: Position) -> str:
        """Declared so that capabilities can be asked for."""
        return ""

    @verb(Kind.MEASURE, capability="light")
    def light(self, at: Position) -> int:
        """Needs what this game lacks."""
        return 0

    def prepare(self, check: Check) -> None:
        self.prepared.append(check.id)
        self._answer("prepare")

    def call(self, verb: str, arguments: dict[str, Any]) -> Any:
        self.asked.append((verb, arguments))
        return self._answer(verb)

    def find(self, subject: Subject) -> list[str]:
        self._answer("find")
        return self.found.get(subject.id, [])

    def revive(self) -> None:
        self.revived += 1
        self._answer("revive")

    def _answer(self, name: str) -> Any:
        answer = self.answers.get(name)
        if isinstance(answer, BaseException):
            raise answer
        return answer() if callable(answer) else answer


def counter() -> Callable[[], int]:
    numbers = iter(range(1, 1000))
    return lambda: next(numbers)


def task(*checks: dict[str, Any], **changes: Any) -> TaskSpec:
    """Checks whose steps are not held against any game's verbs."""
    whole = spec(**changes)
    parsed = [Check.model_validate(found) for found in checks or (check(),)]
    return whole.model_copy(update={"checks": parsed})


def run(game: FakeGame, *checks: dict[str, Any], **changes: Any) -> ArmEvidence:
    return run_checks(task(*checks, **changes), game)


def test_parts_run_in_order_and_answers_are_bound() -> None:
    game = FakeGame({"measure": counter()})
    arm = run(
        game,
        check(
            fixture=[{"do": "place", "at": [1, 2, 3]}],
            trigger=[{"do": "measure", "as": "first"}],
            measurement=[{"do": "measure", "as": "second"}, {"do": "measure"}],
        ),
    )
    assert [name for name, _ in game.asked] == ["place", "measure", "measure", "measure"]
    assert game.asked[0][1] == {"at": [1, 2, 3]}
    assert game.prepared == ["there"]
    assert arm.checks["there"].outcome == "measured"
    assert arm.checks["there"].values == {"first": 1, "second": 2}


def test_loops_make_lists_and_remember_the_last_value() -> None:
    game = FakeGame({"measure": counter()})
    loop = {
        "each": "where",
        "in": [[0, 0, 0], [1, 0, 0]],
        "steps": [
            {"do": "measure", "at": "$where", "as": "seen"},
            {"repeat": 2, "steps": [{"do": "show", "value": "$seen", "text": "number $seen!"}]},
        ],
    }
    arm = run(game, check(trigger=[loop], measurement=[{"do": "show", "value": "$seen"}]))
    assert arm.checks["there"].values == {"seen": [1, 2]}
    shown = [arguments for name, arguments in game.asked if name == "show"]
    assert [one["value"] for one in shown] == [1, 1, 2, 2, 2]
    assert shown[0]["text"] == "number 1!"
    assert [a["at"] for name, a in game.asked if name == "measure"] == [[0, 0, 0], [1, 0, 0]]


def test_references_into_answers_and_nested_arguments() -> None:
    game = FakeGame({"measure": {"node": "x:y", "count": 3}})
    run(
        game,
        check(
            trigger=[{"do": "measure", "as": "made"}],
            measurement=[
                {"do": "show", "grid": [["$made.node", ""]], "with": {"n": "$made.count"}, "s": "$made"}
            ],
        ),
    )
    assert game.asked[1][1] == {"grid": [["x:y", ""]], "with": {"n": 3}, "s": {"node": "x:y", "count": 3}}


def test_a_reference_to_a_part_that_is_not_there() -> None:
    game = FakeGame({"measure": {"node": "x:y"}})
    arm = run(game, check(trigger=[{"do": "measure", "as": "made"}, {"do": "show", "value": "$made.size"}]))
    assert arm.checks["there"].outcome == "stopped"
    assert "$made.size: no such part" in arm.checks["there"].reason


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ([], 'subject "lamp": nothing the mod added matches'),
        (["a:b", "a:c"], "ambiguous, all of these match: a:b, a:c"),
    ],
)
def test_a_subject_that_is_not_one_thing(found: list[str], words: str) -> None:
    game = FakeGame()
    game.found = {"lamp": found}
    subjects = [{"id": "lamp", "kind": "node", "words": [["lamp"]]}]
    arm = run(game, check(trigger=[{"do": "hold", "item": "$lamp"}]), subjects=subjects)
    assert arm.subjects == {"lamp": found}
    assert arm.checks["there"].outcome == "stopped" and words in arm.checks["there"].reason


def test_a_subject_that_is_found() -> None:
    game = FakeGame()
    game.found = {"lamp": ["a:lamp"]}
    subjects = [{"id": "lamp", "kind": "node", "words": [["lamp"]]}]
    run(game, check(trigger=[{"do": "hold", "item": "$lamp"}]), subjects=subjects)
    assert game.asked[0][1] == {"item": "a:lamp"}


TWO = (check(id="one"), check(id="two"))
THREE = (*TWO, check(id="three"))


def test_a_stop_ends_one_check_and_keeps_what_was_measured() -> None:
    game = FakeGame({"measure": 7, "node": StepStopped("nothing there")})
    arm = run(game, check(id="one", trigger=[{"do": "measure", "as": "x"}]), check(id="two"))
    assert [c.outcome for c in arm.checks.values()] == ["stopped", "stopped"]
    assert arm.checks["one"].reason == "node: nothing there"
    assert arm.checks["one"].values == {"x": 7}
    assert game.revived == 0


def test_a_death_revives_once_and_the_second_ends_it() -> None:
    game = FakeGame({"node": GameDied("boom")})
    arm = run(game, *THREE)
    assert [c.outcome for c in arm.checks.values()] == ["died", "died", "skipped"]
    assert game.revived == engine.MAX_DEATHS - 1 == 1
    assert arm.checks["three"].reason == "the server had died 2 times"
    assert game.prepared == ["one", "two"]


def test_a_game_that_does_not_come_back() -> None:
    game = FakeGame({"node": GameDied("boom"), "revive": GameDied("still dead")})
    arm = run(game, *THREE)
    assert [c.outcome for c in arm.checks.values()] == ["died", "skipped", "skipped"]
    assert "does not start again: still dead" in arm.checks["two"].reason


def test_a_death_while_getting_ready() -> None:
    arm = run(FakeGame({"prepare": GameDied("boom")}), *TWO)
    assert arm.checks["one"].outcome == "died" and arm.checks["one"].reason == "getting ready: boom"


def test_a_death_while_looking_for_subjects_is_a_death() -> None:
    subjects = [{"id": "lamp", "kind": "node", "words": [["lamp"]]}]
    game = FakeGame({"find": GameDied("boom")})
    arm = run(game, *TWO, subjects=subjects)
    assert [c.outcome for c in arm.checks.values()] == ["died", "skipped"]
    assert game.prepared == []


def test_a_missing_capability_is_not_measurable_and_nothing_runs() -> None:
    game = FakeGame()
    arm = run(game, check(measurement=[{"do": "light", "at": [0, 0, 0], "as": "seen"}]))
    assert arm.checks["there"].outcome == "unmeasurable"
    assert arm.checks["there"].reason == "not measurable here: needs light"
    assert game.prepared == [] and game.asked == []


def test_a_capability_that_turns_out_to_be_missing() -> None:
    arm = run(FakeGame({"node": NotMeasurable("no night here")}))
    assert arm.checks["there"].outcome == "unmeasurable"


# -- whose fault it is


@pytest.mark.parametrize("place", ["node", "prepare"])
@pytest.mark.parametrize("fault", [KeyError("x"), RecursionError(), UnicodeError("x"), OSError(28, "full")])
def test_what_nobody_foresaw_is_the_submissions_doing_only_with_it_inside(
    place: str, fault: Exception
) -> None:
    arm = run(FakeGame({place: fault}), *TWO)
    assert [c.outcome for c in arm.checks.values()] == ["stopped", "stopped"]
    assert type(fault).__name__ in arm.checks["one"].reason
    arm = run(FakeGame({place: fault}, hostile=False), *TWO)
    assert [c.outcome for c in arm.checks.values()] == ["unmeasurable", "unmeasurable"]


def test_the_vanilla_game_always_gets_as_far_as_the_first_step() -> None:
    stopped = {"prepare": StepStopped("cannot join")}
    assert run(FakeGame(stopped)).checks["there"].outcome == "stopped"
    assert run(FakeGame(stopped, hostile=False)).checks["there"].outcome == "unmeasurable"
    assert run(FakeGame({"node": StepStopped("x")}, hostile=False)).checks["there"].outcome == "stopped"


@pytest.mark.parametrize("place", ["node", "prepare", "find", "revive"])
def test_a_broken_machine_is_never_the_submissions_doing(place: str) -> None:
    broken = InfrastructureError("no /proc", mend="mount it")
    answers: dict[str, Any] = (
        {place: broken} if place != "revive" else {"node": GameDied("x"), "revive": broken}
    )
    subjects = [{"id": "lamp", "kind": "node", "words": [["lamp"]]}]
    with pytest.raises(InfrastructureError):
        run(FakeGame(answers), subjects=subjects)


@pytest.mark.parametrize("place", ["find", "revive"])
def test_an_unforeseen_fault_outside_of_a_check(place: str) -> None:
    answers: dict[str, Any] = {place: TypeError("odd")}
    if place == "revive":
        answers["node"] = GameDied("x")
    subjects = [{"id": "lamp", "kind": "node", "words": [["lamp"]]}]
    assert run(FakeGame(answers), *TWO, subjects=subjects).loaded
    with pytest.raises(TypeError):
        run(FakeGame(answers, hostile=False), *TWO, subjects=subjects)


def test_reasons_are_fit_for_a_terminal() -> None:
    arm = run(FakeGame({"node": StepStopped("\x1b[2Jscored: reward\n1.0 \udcff")}))
    assert arm.checks["there"].reason == "node:  [2Jscored: reward 1.0 \ufffd"


# -- answers


@pytest.mark.parametrize(
    ("answer", "plain"),
    [
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        ({"a": (1, 2.5, None, True)}, {"a": [1, 2.5, None, True]}),
        ({1: "x"}, {"1": "x"}),
        ("\ud800", "\ufffd"),
        ({"\udcff": 1}, {"\ufffd": 1}),
    ],
)
def test_answers_become_plain_data(answer: Any, plain: Any) -> None:
    assert plain_data(answer) == plain
    assert run(FakeGame({"node": answer})).checks["there"].values == {"seen": plain}


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("answer", [object(), {1, 2}, b"x", nested(100), nested(100_000), "x" * (9 << 20)])
def test_answers_that_are_no_data_or_too_much(answer: Any) -> None:
    arm = run(FakeGame({"node": lambda: answer}))
    assert arm.checks["there"].outcome == "stopped"
    assert "makes no sense" in arm.checks["there"].reason
    assert run(FakeGame({"node": lambda: answer}, hostile=False)).checks["there"].outcome == "unmeasurable"


def test_many_answers_together_are_bounded() -> None:
    game = FakeGame({"node": "x" * 100_000})
    loop = {"repeat": 2000, "steps": [{"do": "node", "as": "seen"}]}
    assert run(game, check(trigger=[loop], measurement=[])).checks["there"].outcome == "stopped"
    assert len(game.asked) < 100
