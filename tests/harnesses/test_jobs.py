"""How a trial ended is decided from Harbor's result and the verifier's report; what a resume keeps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from orrery.jobs import (
    HarborTrial,
    JobRecord,
    environment_modes,
    judge_trial,
    prepare_resume,
    read_outcomes,
    read_trial,
)
from orrery.runner import run_mode
from orrery.tables import columns, summary
from orrery_core.reports import ReportWriter
from orrery_core.results import Report, TrialStatus

REWARDS = {"reward": 1.0, "cpr": 1.0, "built": 1.0, "loaded": 1.0, "preservation": 1.0}


def harbor(**changes: Any) -> HarborTrial:
    fields: dict[str, Any] = {
        "trial_name": "l1_pick__abc1234",
        "config": {"task": {"path": "/x/tasks/luanti/l1_pick", "source": "luanti"}},
        "agent_info": {"name": "codex"},
        "reward_valid": True,
        "verifier_result": {"rewards": REWARDS},
        "started_at": "2026-01-01T00:00:00Z",
        "finished_at": "2026-01-01T00:00:07Z",
    }
    return HarborTrial.model_validate(fields | changes)


def report(**changes: Any) -> Report:
    fields: dict[str, Any] = {"task": "l1_pick", "family": "luanti", "level": 1, "status": "scored"}
    return Report.model_validate(fields | {"reward": 1.0, "rewards": REWARDS} | changes)


def failed(kind: str, message: str = "why") -> dict[str, str]:
    return {"exception_type": kind, "exception_message": message}


BROKEN = report(status="error", reason="the verifier did not finish", reward=None, rewards={})


def test_a_scored_trial() -> None:
    outcome = judge_trial(harbor(), report())
    assert (outcome.status, outcome.reward, outcome.seconds) == (TrialStatus.SCORED, 1.0, 7.0)
    assert (outcome.task, outcome.family, outcome.level, outcome.agent) == ("l1_pick", "luanti", 1, "codex")
    assert outcome.counts
    assert outcome.solved


def test_an_agent_that_ran_out_of_time_is_still_graded() -> None:
    outcome = judge_trial(harbor(exception_info=failed("AgentTimeoutError", "3600 s")), report())
    assert outcome.status is TrialStatus.SCORED
    assert outcome.reason == "AgentTimeoutError: 3600 s"


@pytest.mark.parametrize(
    ("trial", "verdict", "reason"),
    [
        (harbor(), None, "no report"),
        (harbor(), BROKEN, "the verifier did not finish"),
        (
            harbor(exception_info=failed("ApiRateLimitError"), reward_valid=False),
            report(),
            "ApiRateLimitError: why",
        ),
        (harbor(exception_info=failed("RuntimeError")), report(), "RuntimeError: why"),
        (harbor(verifier_result={"rewards": REWARDS | {"reward": 0.0}}), report(), "another reward"),
        (harbor(verifier_result=None), report(), "another reward"),
        (
            harbor(exception_info=failed("VerifierTimeoutError", "600 s"), reward_valid=False),
            BROKEN,
            "VerifierTimeoutError: 600 s; the verifier did not finish",
        ),
        (
            harbor(exception_info=failed("RewardFileNotFoundError"), reward_valid=False),
            BROKEN,
            "the verifier did not finish",
        ),
    ],
)
def test_no_score_is_invented(trial: HarborTrial, verdict: Report | None, reason: str) -> None:
    outcome = judge_trial(trial, verdict, "no report")
    assert outcome.status is TrialStatus.ERROR
    assert (outcome.reward, outcome.rewards) == (None, {})
    assert reason in outcome.reason
    assert not outcome.counts
    assert not outcome.solved


def write_trial(job: Path, name: str, trial: HarborTrial | None, verdict: Report | None) -> Path:
    folder = job / name
    (folder / "verifier").mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    if trial is not None:
        (folder / "result.json").write_text(trial.model_dump_json())
    if verdict is not None:
        with ReportWriter(folder / "verifier") as writer:
            writer.finish(verdict)
    return folder


def test_reading_a_job(tmp_path: Path) -> None:
    write_trial(tmp_path, "a__1", harbor(trial_name="a__1"), report())
    write_trial(tmp_path, "b__1", None, None)
    write_trial(tmp_path, "c__1", harbor(trial_name="c__1", exception_info=failed("CancelledError")), None)
    forged = write_trial(tmp_path, "d__1", harbor(trial_name="d__1"), report())
    (forged / "verifier/reward.json").write_text('{"reward": 0.5}')
    (tmp_path / "report").mkdir()
    assert read_trial(tmp_path / "b__1") is None
    assert [(item.trial, item.status) for item in read_outcomes(tmp_path)] == [
        ("a__1", TrialStatus.SCORED),
        ("d__1", TrialStatus.ERROR),
    ]


def test_a_resume_keeps_what_is_finished(tmp_path: Path) -> None:
    write_trial(tmp_path, "scored__1", harbor(), report())
    write_trial(tmp_path, "broken__1", harbor(), BROKEN)
    write_trial(tmp_path, "cut__1", None, None)
    write_trial(tmp_path, "cancelled__1", harbor(exception_info=failed("CancelledError")), None)
    unconfigured = write_trial(tmp_path, "unconfigured__1", harbor(), report())
    (unconfigured / "config.json").write_text("{")
    (tmp_path / "config.json").write_text('{"n_concurrent_trials": 4, "x": 1}')
    (tmp_path / "lock.json").write_text("{cut")
    assert prepare_resume(tmp_path, concurrent=2, retry_errors=False) == (2, 3)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broken__1", "config.json", "scored__1"]
    assert json.loads((tmp_path / "config.json").read_text()) == {"n_concurrent_trials": 2, "x": 1}
    assert prepare_resume(tmp_path, concurrent=2, retry_errors=True) == (1, 1)


def test_every_difference_between_two_requests_is_named() -> None:
    first = JobRecord(tasks=["/t/a", "/t/b"], agents=["oracle"], environment="sandbox")
    second = JobRecord(tasks=["/t/b", "/t/c"], agents=["oracle"], environment="engine", attempts=3)
    assert first.differences(first) == []
    assert first.differences(second) == [
        "tasks: not asked for now: a",
        "tasks: not in the job: c",
        "environment: was 'sandbox', now 'engine'",
        "attempts: was 1, now 3",
    ]


def test_the_mode_lists_every_value_that_was_seen() -> None:
    record = JobRecord(tasks=[], agents=["nop"], environment="sandbox", skills=False)
    trials = [judge_trial(harbor(), report(mode={"isolation": name})) for name in ("uid", "nested", "uid")]
    assert run_mode(record, trials, set()) == {
        "environment": "sandbox",
        "skills": "without",
        "isolation": "nested | uid",
    }

    assert (
        run_mode(record, [], {"sandbox:root", "sandbox:user"})["environment"] == "sandbox:root | sandbox:user"
    )


def test_what_an_environment_recorded_is_read(tmp_path: Path) -> None:
    folder = write_trial(tmp_path, "a__1", harbor(), report())
    record = {
        "agent": {"mode": "sandbox:root", "details": {}},
        "verifier": {"mode": "sandbox:user", "details": {}},
    }
    (folder / "sandbox.json").write_text(json.dumps(record))
    assert environment_modes(tmp_path) == {"sandbox:root", "sandbox:user"}


def cells(outcomes: list[Any]) -> list[list[str]]:
    table = summary(outcomes)[0]
    return [[str(cell) for cell in column.cells] for column in table.columns]


def test_the_table_leaves_errors_out_of_every_mean() -> None:
    half = report(reward=0.0, rewards=REWARDS | {"reward": 0.0, "cpr": 0.5})
    lost = harbor(verifier_result={"rewards": half.rewards})
    trials = [judge_trial(harbor(), report()), judge_trial(lost, half), judge_trial(harbor(), BROKEN)]
    assert cells(trials) == [
        ["L1", "all"],
        ["1", "1"],
        ["2", "2"],
        ["100.0 %", "100.0 %"],
        ["75.0 %", "75.0 %"],
        ["50.0 %", "50.0 %"],
        ["-", "-"],
        ["7.0", "7.0"],
        ["1", "1"],
    ]


def test_another_family_is_shown_by_its_own_keys() -> None:
    rewards = {"reward": 0.25, "skill": 0.75}
    trial = judge_trial(
        harbor(verifier_result={"rewards": rewards}),
        report(family="worldmodel", reward=0.25, rewards=rewards),
    )
    assert [column.title for column in columns([trial])] == ["reward", "skill"]
    assert ["0.25", "0.25"] in cells([trial])
