from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from orrery_core.results import (
    MAX_DEPTH,
    Criterion,
    Report,
    Status,
    TrialStatus,
    all_pass,
    canonical_json,
    clean_json,
    comparable,
    count,
    error_report,
    pass_rate,
    unmeasured,
)
from pydantic import ValidationError


def criterion(name: str, status: str = "pass", stage: str = "behaviour") -> Criterion:
    return Criterion(id=name, stage=stage, status=Status(status))


def report(**fields) -> Report:
    return Report(**{"task": "luanti/x", "family": "luanti", "status": "scored", "reward": 1.0} | fields)


MIXED = (
    criterion("a"),
    criterion("b", "fail"),
    criterion("c", "unreached"),
    criterion("d", "pass", "regression"),
)


def test_counts_by_status_and_stage():
    counts = count(MIXED)
    assert (counts.passed, counts.failed, counts.unreached, counts.error, counts.total) == (2, 1, 1, 0, 4)
    assert count(MIXED, {"regression"}).total == 1


def test_unreached_counts_as_failed():
    assert pass_rate(MIXED) == 0.5
    assert pass_rate(MIXED, {"behaviour"}) == pytest.approx(1 / 3)
    assert not all_pass(MIXED)
    assert all_pass(MIXED, {"regression"})


def test_nothing_to_pass_is_not_a_pass():
    assert not all_pass(())
    assert pass_rate(()) == 0.0
    assert pass_rate(MIXED, {"visual"}, empty=1.0) == 1.0


def test_unmeasured_criteria_leave_no_score():
    criteria = [criterion("a"), criterion("b", "error")]
    assert [item.id for item in unmeasured(criteria)] == ["b"]
    with pytest.raises(ValidationError, match="could not be measured"):
        report(criteria=criteria)
    assert error_report("b was not measured", criteria=criteria).reward is None


@pytest.mark.parametrize(
    "fields",
    [
        {"reward": None},
        {"status": "error", "reason": "x"},
        {"status": "error", "reward": None},
        {"status": "error", "reward": None, "reason": "x", "rewards": {"cpr": 1.0}},
        {"status": "rejected", "reason": "x"},
        {"status": "rejected", "reward": 0.0},
        {"rewards": {"reward": 0.5}},
        {"reward": math.nan},
        {"rewards": {"cpr": math.inf}},
        {"timings": {"build": -math.inf}},
        {"seeds": {"deep": [math.nan]}},
        {"criteria": [criterion("a"), criterion("a")]},
        {"unknown": 1},
        {"schema_version": 2},
    ],
)
def test_contradictory_reports_are_refused(fields: dict):
    with pytest.raises(ValidationError):
        report(**fields)


def test_evidence_is_finite_shallow_json():
    deep: object = 1
    for _ in range(MAX_DEPTH + 1):
        deep = [deep]
    for value in ({"a": math.inf}, {"a": deep}, {"a": {1}}, {"a": {1: 2}}):
        with pytest.raises(ValidationError):
            Criterion(id="a", stage="s", status=Status.PASS, evidence=value)


def test_text_of_a_hostile_program_can_be_written():
    made = Criterion(
        id="a", stage="s", status=Status.FAIL, reason="log: \udcff", evidence={"\ud800": "\udcff"}
    )
    text = canonical_json(made)
    assert text.encode()
    assert json.loads(text)["reason"] == "log: \ufffd"


def test_comparable_drops_timings_alone():
    first, second = report(timings={"build": 1.0}), report(timings={"build": 2.0})
    assert first != second
    assert canonical_json(comparable(first)) == canonical_json(comparable(second))
    assert comparable(report(seeds={"s": 1})) != comparable(report(seeds={"s": 2}))


def test_reward_comes_first_in_the_reward_file():
    made = report(rewards={"built": 1, "cpr": 0.5, "reward": 1})
    assert list(made.reward_file().items()) == [("reward", 1.0), ("built", 1.0), ("cpr", 0.5)]
    assert error_report("x").reward_file() is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(st.text(), json_values, max_size=5))
def test_the_same_report_has_the_same_bytes(evidence: dict):
    one = Criterion(id="a", stage="s", status=Status.PASS, evidence=evidence)
    two = Criterion(id="a", stage="s", status=Status.PASS, evidence=dict(reversed(list(evidence.items()))))
    text = canonical_json(report(criteria=[one]))
    assert text == canonical_json(report(criteria=[two]))
    again = Report.model_validate_json(text)
    assert canonical_json(again) == text
    assert again.status is TrialStatus.SCORED


def test_negative_zero_is_zero():
    assert math.copysign(1, clean_json(-0.0)) == 1
    assert canonical_json(report(reward=-0.0)) == canonical_json(report(reward=0.0))
