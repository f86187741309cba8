"""Aggregation and grouping against numbers computed by hand."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from orrery.report import aggregate, grouping
from orrery.report.model import Job, Subject, TaskText, Trial, Usage
from orrery_core.results import Criterion, Status, TrialStatus

sys.path.insert(0, str(Path(__file__).parent / "fixtures" / "jobs"))
import make_jobs

AGENT = Subject("agent", "1", "model", "")


def trial(task: str, outcome: str = "PPPPPPP", *, number: int = 0, error: str = "", **fields: Any) -> Trial:
    """Stages of ``outcome``: build, load, state, behaviour, behaviour, regression, integrity."""
    report = make_jobs.report(task, outcome, rejected=fields.pop("rejected", ""))
    values: dict[str, Any] = {
        "job": "job",
        "name": f"{task}__{number}",
        "task": task,
        "family": "luanti",
        "level": int(task[1]),
        "subject": AGENT,
        "status": report.status,
        "reward": report.reward,
        "rewards": report.rewards,
        "criteria": report.criteria,
        "task_version": f"version of {task}",
    }
    if error:
        values |= {
            "status": TrialStatus.ERROR,
            "reason": error,
            "reward": None,
            "rewards": {},
            "criteria": (),
        }
    return Trial(**values | fields)


FOUR = [
    trial("l1_a"),
    trial("l1_b", "PPPFPPP"),
    trial("l2_c", "PFUUUUU"),
    trial("l2_d", error="the host died"),
]


def test_rates_leave_errors_out_and_count_them() -> None:
    found = aggregate.summarise(FOUR)
    assert (found.tasks, found.trials, found.errors, found.rejected) == (4, 3, 1, 0)
    assert (found.wsr.hits, found.wsr.n) == (1, 3)
    assert (found.bsr.hits, found.bsr.n) == (2, 3)
    assert found.cpr.value == pytest.approx((1 + 6 / 7 + 1 / 7) / 3)
    assert found.cpr.n == 3
    assert found.mean_reward == pytest.approx(1 / 3)


def test_regression_is_over_reached_checks_only() -> None:
    found = aggregate.summarise([*FOUR, trial("l3_e", "PPPPPFP")])
    assert (found.regression.hits, found.regression.n) == (2, 3)


def test_paper_definitions_pool_state_and_behaviour() -> None:
    found = aggregate.summarise([*FOUR, trial("l3_e", "PPPPPFP")])
    assert (found.paper_cpr.hits, found.paper_cpr.n) == (3 + 2 + 0 + 3, 12)
    assert (found.paper_wsr.hits, found.paper_wsr.n) == (2, 4), "a regression failure is no failure there"
    assert found.wsr.hits == 1


def test_wilson_interval_of_a_rate() -> None:
    found = aggregate.rate(8, 10)
    assert (found.low, found.high) == (pytest.approx(0.4902, abs=1e-4), pytest.approx(0.9433, abs=1e-4))


def test_nothing_measured_is_none_and_not_zero() -> None:
    found = aggregate.summarise([trial("l1_a", error="x")])
    assert found.wsr.value is found.cpr.value is found.bsr.value is found.regression.value is None
    assert found.mean_reward is None


@pytest.mark.parametrize(
    ("outcome", "stage"),
    [
        ("PPPPPPP", None),
        ("FUUUUUU", "build"),
        ("PFUUUUU", "load"),
        ("PPFFPFP", "behaviour"),
        ("PPPPPFF", "regression"),
        ("PPPPPPF", "integrity"),
        ("PPPPUPP", "behaviour"),
        ("PPPPUPF", "integrity"),
    ],
)
def test_failure_stage_is_the_earliest_failed_one(outcome: str, stage: str | None) -> None:
    assert aggregate.failure_stage(trial("l1_a", outcome)) == stage


def test_rejected_and_unknown_stages_have_a_place() -> None:
    assert aggregate.failure_stage(trial("l1_a", "FUUUUUU", rejected="two mods")) == "rejected"
    assert aggregate.failure_stage(trial("l1_a", error="x")) is None
    own = Criterion(id="x", stage="rollout", status=Status.FAIL)
    assert aggregate.failure_stage(replace(FOUR[1], criteria=(own,))) == "rollout"
    assert aggregate.failure_stage(replace(FOUR[1], criteria=())) == "unplaced"


def test_failures_count_each_failed_trial_once() -> None:
    found = aggregate.summarise([*FOUR, trial("l3_e", "PPFFFFF"), trial("l3_f", "FUUUUUU", rejected="r")])
    assert found.failures == {"rejected": 1, "load": 1, "behaviour": 2}
    assert sum(found.failures.values()) == found.trials - found.wsr.hits


def test_pass_at_k() -> None:
    assert aggregate.pass_at_k(4, 1, 1) == pytest.approx(0.25)
    assert aggregate.pass_at_k(4, 1, 2) == pytest.approx(0.5)
    assert aggregate.pass_at_k(4, 0, 4) == 0
    assert aggregate.pass_at_k(3, 2, 2) == 1


def test_pass_at_k_takes_tasks_with_enough_graded_attempts() -> None:
    attempts = [
        trial("l1_a", number=0),
        trial("l1_a", "PPPFPPP", number=1),
        trial("l1_a", error="x", number=2),
        trial("l1_b", "PPPFPPP", number=0),
    ]
    found = {item.k: (item.tasks, item.value) for item in aggregate.pass_at(attempts)}
    assert found == {1: (2, 0.25), 2: (1, 1.0)}
    assert aggregate.pass_at(FOUR) == ()


def test_levels_come_in_order_and_sum_to_all() -> None:
    rows = grouping.groups([Job("job", tuple(reversed(FOUR)))])[0].rows
    assert [(row.level, row.summary.tasks, row.summary.errors) for row in rows] == [(1, 2, 0), (2, 2, 1)]
    assert [row.summary.wsr.hits for row in rows] == [1, 0]


def test_regression_row() -> None:
    row = aggregate.regression_row("luanti", 1, [*FOUR, trial("l1_e", "PPPPPFP")])
    assert (row.tasks, row.checks, row.unreached) == (4, 4, 1)
    assert (row.rate.hits, row.rate.n) == (2, 3)
    assert (row.clean.hits, row.clean.n) == (2, 3)


def test_domains_come_from_the_tasks_and_only_from_them() -> None:
    fight, build = TaskText(genre="combat"), TaskText(genre="crafting")
    trials = [
        trial("l1_a", "PPFFPPP", text=fight),
        trial("l1_b", text=fight),
        trial("l1_c", text=build),
        trial("l1_d"),
    ]
    assert [(r.genre, r.trials, r.failed, r.criteria_failed) for r in aggregate.domains(trials)] == [
        ("combat", 2, 1, 2),
        ("crafting", 1, 0, 0),
    ]
    assert aggregate.domains(FOUR) == ()


def test_costs_are_over_the_trials_that_recorded_them() -> None:
    trials = [
        trial("l1_a", usage=Usage(input_tokens=10, cost_usd=0.5), phases={"verifier": 4.0}),
        trial("l1_b", usage=Usage(input_tokens=30), phases={"verifier": 8.0}),
        trial("l1_c"),
    ]
    found = aggregate.costs(trials)
    assert found.input_tokens == aggregate.Quantity(2, 40, 20)
    assert found.cost_usd == aggregate.Quantity(1, 0.5, 0.5)
    assert found.output_tokens is None
    assert found.phases == {"verifier": aggregate.Quantity(2, 12, 6)}


def test_jobs_of_one_subject_and_version_are_merged() -> None:
    jobs = [Job("one", (trial("l1_a", job="one"),)), Job("two", (trial("l1_a", "PPPFPPP", job="two"),))]
    (group,) = grouping.groups(jobs)
    assert group.jobs == ("one", "two")
    assert (group.overall.tasks, group.overall.wsr.hits, group.overall.wsr.n) == (1, 1, 2)
    assert grouping.notes(jobs, [group]) == ()


@pytest.mark.parametrize("change", [{"task_version": "other"}, {"versions": {"luanti": "5.10"}}])
def test_other_versions_are_not_merged_and_the_note_names_them(change: dict[str, Any]) -> None:
    first = trial("l1_a", job="one", versions={"luanti": "5.6.1"})
    second = trial("l1_a", job="two", **{"versions": {"luanti": "5.6.1"}} | change)
    jobs = [Job("one", (first, trial("l1_b", job="one"))), Job("two", (second,))]
    found = grouping.groups(jobs)
    assert [group.jobs for group in found] == [("one",), ("two",)]
    assert [group.overall.trials for group in found] == [2, 1]
    assert len({group.label for group in found}) == 2
    (note,) = grouping.notes(jobs, found)
    assert "not merged" in note
    assert ("luanti/l1_a" if "task_version" in change else "luanti (luanti)") in note


def test_versions_of_a_task_say_nothing_about_other_tasks() -> None:
    one = trial("l1_a", versions={"task": "1.0", "spec": "aa", "engine": "5.6.1"})
    other = trial("l1_b", versions={"task": "2.0", "spec": "bb", "engine": "5.6.1"})
    jobs = [Job("job", (one, other))]
    (group,) = grouping.groups(jobs)
    assert group.overall.trials == 2
    assert grouping.notes(jobs, [group]) == ()


def test_subjects_differ_by_model_version_and_options() -> None:
    subjects = [AGENT, replace(AGENT, model="m2"), replace(AGENT, version="2"), replace(AGENT, options="x=1")]
    trials = tuple(trial("l1_a", number=n, subject=subject) for n, subject in enumerate(subjects))
    assert len(grouping.groups([Job("job", trials)])) == 4


@pytest.mark.parametrize(
    ("modes", "words"),
    [
        ([{"split": "dev-split"}], "dev-split"),
        ([{"verifier profile": "host"}], "host profile"),
        ([{"isolation": "uid"}, {"isolation": "nested"}], "Mixed modes within this row: isolation"),
    ],
)
def test_flags_on_comparability(modes: list[dict[str, str]], words: str) -> None:
    trials = tuple(trial(f"l1_{n}", mode=mode) for n, mode in enumerate(modes))
    (flag,) = grouping.groups([Job("job", trials)])[0].flags
    assert words in flag


def test_no_flag_without_a_reason_and_one_for_errors_and_attempts() -> None:
    assert grouping.groups([Job("job", (trial("l1_a"), trial("l1_b")))])[0].flags == ()
    flags = grouping.groups([Job("job", (*FOUR, trial("l1_a", number=1)))])[0].flags
    assert [flag[:11] for flag in flags] == ["1 of 5 tria", "Tasks have ", "Intervals t"]


def test_an_incomplete_job_is_noted() -> None:
    job = Job("job", tuple(FOUR), planned=8)
    assert grouping.notes([job], grouping.groups([job])) == (
        "Job job is incomplete: 4 of 8 trials have a folder.",
    )
