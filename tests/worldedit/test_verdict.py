"""Verdicts as a pure function of spec and evidence."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from orrery_core.results import Criterion, Report, Status, TrialStatus, canonical_json
from orrery_worldedit.evidence import ArmEvidence, Change, CheckEvidence, Evidence
from orrery_worldedit.spec import TaskSpec
from orrery_worldedit.verdict import judge
from tasks_for_tests import check, spec

Outcome = Literal["measured", "stopped", "died", "skipped", "unmeasurable"]


def seen(value: Any = "default:stone", outcome: Outcome = "measured", reason: str = "") -> CheckEvidence:
    values = {} if outcome != "measured" else {"seen": value}
    return CheckEvidence(outcome=outcome, reason=reason, values=values)


def evidence(measured: CheckEvidence, control: CheckEvidence | None = None, **changes: Any) -> Evidence:
    return Evidence(
        **{
            "spec_hash": "abc",
            "submission_hash": "def",
            "seed": 42,
            "candidate": ArmEvidence(loaded=True, checks={"there": measured}),
            "vanilla": ArmEvidence(loaded=True, checks={"there": control or seen("air")}),
            **changes,
        }
    )


def criterion(report: Report, name: str = "there") -> Criterion:
    return next(found for found in report.criteria if found.id == name)


def test_a_pass() -> None:
    report = judge(spec(), evidence(seen()))
    assert report.status is TrialStatus.SCORED and report.reason == ""
    assert report.reward == 1.0
    ones = dict.fromkeys(("reward", "cpr", "built", "loaded", "preservation"), 1.0)
    assert report.rewards == {**ones, "criteria": 6.0, "passed": 6.0}
    assert {c.status for c in report.criteria} == {Status.PASS}
    assert report.timings == {}


@pytest.mark.parametrize(
    ("measured", "status", "words"),
    [
        (seen("air"), Status.FAIL, "does not hold: seen == 'default:stone' (seen = 'air')"),
        (seen(outcome="stopped", reason="node: not connected"), Status.FAIL, "node: not connected"),
        (seen(outcome="died", reason="node: boom"), Status.FAIL, "node: boom"),
        (seen(outcome="skipped", reason="dead"), Status.UNREACHED, "dead"),
        (CheckEvidence(outcome="measured"), Status.FAIL, "seen was not measured"),
        (seen({"odd": 1}), Status.FAIL, "does not hold"),
    ],
)
def test_what_is_not_a_pass(measured: CheckEvidence, status: Status, words: str) -> None:
    report = judge(spec(), evidence(measured))
    assert report.status is TrialStatus.SCORED and report.reward == 0.0
    assert criterion(report).status is status and words in criterion(report).reason
    assert report.rewards["passed"] == (4.0 if measured.outcome == "died" else 5.0)


def test_a_death_fails_survival_too() -> None:
    report = judge(spec(), evidence(seen(outcome="died", reason="node: boom")))
    assert criterion(report, "survives").status is Status.FAIL
    assert criterion(report, "survives").reason == "during there: node: boom"


def test_what_could_not_be_measured_makes_the_trial_an_error_without_a_reward() -> None:
    report = judge(spec(), evidence(seen(outcome="unmeasurable", reason="needs light")))
    assert report.status is TrialStatus.ERROR and report.reason == "there: needs light"
    assert report.reward is None and report.rewards == {} and report.reward_file() is None


# -- vanilla control

REGRESSION = spec(checks=[check(stage="regression")])


@pytest.mark.parametrize(
    ("task", "control", "words"),
    [
        (spec(), seen(), "defective check: the unmodified game passes it"),
        (REGRESSION, seen("air"), "defective check: the unmodified game does not pass it"),
        (REGRESSION, seen(outcome="stopped", reason="x"), "does not pass it (x)"),
        (spec(), seen(outcome="unmeasurable", reason="KeyError"), "vanilla control: KeyError"),
        (spec(), seen(outcome="died", reason="boom"), "vanilla control: boom"),
        (spec(), seen(outcome="skipped", reason="gone"), "vanilla control: gone"),
    ],
)
@pytest.mark.parametrize("measured", [seen(), seen("air"), seen(outcome="died")])
def test_a_check_that_fails_its_control_judges_nobody(
    task: TaskSpec, control: CheckEvidence, words: str, measured: CheckEvidence
) -> None:
    report = judge(task, evidence(measured, control))
    assert report.status is TrialStatus.ERROR and report.reward is None
    assert criterion(report).status is Status.ERROR and words in criterion(report).reason


@pytest.mark.parametrize(
    ("task", "control"),
    [
        (spec(), seen("air")),
        (spec(), seen(outcome="stopped", reason="no such thing")),
        (REGRESSION, seen()),
        (spec(checks=[check(vanilla="pass")]), seen()),
        (spec(checks=[check(stage="regression", vanilla="fail")]), seen("air")),
    ],
)
def test_a_check_that_its_control_bears_out(task: TaskSpec, control: CheckEvidence) -> None:
    assert judge(task, evidence(seen(), control)).reward == 1.0


def test_a_check_that_nobody_measured() -> None:
    report = judge(spec(checks=[check(), check(id="new")]), evidence(seen()))
    assert report.status is TrialStatus.ERROR and criterion(report, "new").reason == "was not measured"


def test_comparison_with_the_unmodified_game() -> None:
    task = spec(checks=[check(acceptance=["seen == 2 * vanilla.seen"])])
    assert judge(task, evidence(seen(4), seen(2))).reward == 1.0
    assert judge(task, evidence(seen(5), seen(2))).reward == 0.0


def test_subjects_have_a_value_in_acceptance() -> None:
    subjects = [{"id": "lamp", "kind": "node", "words": [["lamp"]]}]
    task = spec(subjects=subjects, checks=[check(acceptance=["seen == lamp"])])
    arm = ArmEvidence(loaded=True, checks={"there": seen("a:lamp")}, subjects={"lamp": ["a:lamp"]})
    assert judge(task, evidence(seen(), candidate=arm)).reward == 1.0
    arm = arm.model_copy(update={"subjects": {"lamp": ["a:lamp", "a:lamp2"]}})
    report = judge(task, evidence(seen(), candidate=arm))
    assert report.reward == 0.0 and "lamp was not measured" in criterion(report).reason


# -- gates


@pytest.mark.parametrize("gate", ["seen == 'default:stone'", "seen.part == 1"])
def test_a_gate_that_does_not_hold_leaves_the_check_unreached(gate: str) -> None:
    task = spec(checks=[check(gates=[gate])])
    report = judge(task, evidence(seen("air")))
    assert criterion(report).status is Status.UNREACHED
    assert criterion(report).reason == f"gate does not hold: {gate}"
    assert report.reward == 0.0


def test_a_gate_that_holds() -> None:
    task = spec(checks=[check(gates=["seen != 'air'"])])
    assert judge(task, evidence(seen())).reward == 1.0


# -- build, load, integrity


def test_a_rejection() -> None:
    broken = Evidence(spec_hash="a", submission_hash="", seed=1, rejected="a.so: not part of a mod")
    report = judge(spec(), broken)
    assert report.status is TrialStatus.REJECTED and report.reason == "a.so: not part of a mod"
    assert report.reward == 0.0 and report.rewards["built"] == 0.0 and report.rewards["cpr"] == 0.0
    assert [c.id for c in report.criteria] == spec().criteria
    assert [c.status for c in report.criteria] == [Status.FAIL] + [Status.UNREACHED] * 5
    assert all(c.reason for c in report.criteria)


def test_a_syntax_error() -> None:
    broken = Evidence(
        spec_hash="a", submission_hash="b", seed=1, syntax_errors=["init.lua:1: x", "b.lua:2: y"]
    )
    report = judge(spec(), broken)
    assert report.status is TrialStatus.SCORED and report.reward == 0.0
    assert criterion(report, "built").reason == "init.lua:1: x; b.lua:2: y"
    assert [c.status for c in report.criteria[1:]] == [Status.UNREACHED] * 5


def test_a_mod_that_does_not_load() -> None:
    arm = ArmEvidence(loaded=False, load_reason="error while loading", log_tail=["boom"])
    report = judge(spec(), evidence(seen(), candidate=arm))
    assert report.rewards["built"] == 1.0 and report.rewards["loaded"] == 0.0
    assert criterion(report, "loaded").reason == "error while loading"
    assert criterion(report, "loaded").evidence == {"log": ["boom"]}
    assert [c.status for c in report.criteria[2:]] == [Status.UNREACHED] * 4


def test_a_control_that_found_the_check_defective_does_not_matter_before_loading() -> None:
    arm = ArmEvidence(loaded=False, load_reason="error while loading")
    assert judge(spec(), evidence(seen(), seen(), candidate=arm)).status is TrialStatus.SCORED


def test_changes_of_the_registry() -> None:
    changes = [Change(path="items/default:dirt/stack_max", before=99, after=5)]
    report = judge(spec(), evidence(seen(), changes=changes))
    kept = criterion(report, "registry_preserved")
    assert kept.status is Status.FAIL
    assert kept.reason == "1 changes that the request does not ask for, first items/default:dirt/stack_max"
    assert kept.evidence["offending"] == {"items/default:dirt/stack_max": [99, 5]}
    assert report.rewards["preservation"] == 0.5
    allowed = spec(preservation={"allow": ["items/default:dirt/stack_max"]})
    assert judge(allowed, evidence(seen(), changes=changes)).reward == 1.0


def test_tampering_beyond_what_the_game_itself_replaces() -> None:
    candidate = ArmEvidence(
        loaded=True, checks={"there": seen()}, tampered=["core.a -> fn", "math.random -> fn"]
    )
    vanilla = ArmEvidence(loaded=True, checks={"there": seen("air")}, tampered=["core.a -> fn"])
    report = judge(spec(), evidence(seen(), candidate=candidate, vanilla=vanilla))
    assert criterion(report, "untampered").status is Status.FAIL
    assert criterion(report, "untampered").reason == "replaced: math.random -> fn"
    vanilla = vanilla.model_copy(update={"tampered": candidate.tampered})
    assert judge(spec(), evidence(seen(), candidate=candidate, vanilla=vanilla)).reward == 1.0


def test_stages_do_not_depend_on_how_a_criterion_ends() -> None:
    ends = [
        evidence(seen()),
        evidence(seen(outcome="died")),
        Evidence(spec_hash="a", submission_hash="", seed=1, rejected="x"),
    ]
    assert len({tuple((c.id, c.stage) for c in judge(spec(), end).criteria) for end in ends}) == 1


def test_the_same_evidence_gives_the_same_bytes() -> None:
    found = evidence(seen({"b": 1, "a": [1.5, None]}))
    again = Evidence.model_validate_json(found.model_dump_json())
    assert canonical_json(judge(spec(), found)) == canonical_json(judge(spec(), again))
