"""Loading job folders, broken ones first of all."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from orrery.report import files
from orrery.report.load import load_job, load_jobs
from orrery.report.model import Trial
from orrery_core.errors import UserError
from orrery_core.results import TrialStatus

sys.path.insert(0, str(Path(__file__).parent / "fixtures" / "jobs"))
import make_jobs

FIXTURES = Path(__file__).parent / "fixtures" / "jobs"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One good trial in the job `job`."""
    return make_jobs.trial(tmp_path / "job", "l1_a", make_jobs.report("l1_a"))


def only(folder: Path) -> Trial:
    (found,) = load_job(folder.parent, "job").trials
    return found


def edit(path: Path, **changes: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_a_good_trial(folder: Path) -> None:
    found = only(folder)
    assert (found.status, found.reward, found.level, found.family) == (TrialStatus.SCORED, 1.0, 1, "luanti")
    assert found.phases == {
        "environment_setup": 1.5, "agent_setup": 0.5, "agent_execution": 60.0, "verifier": 8.0, "total": 70.0,
    }  # fmt: skip
    assert len(found.criteria) == 7
    assert found.mode == {"isolation": "nested-uid", "gate": "56"}


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("result.json", None, "result.json: missing"),
        ("result.json", b"", "result.json: Invalid JSON"),
        ("result.json", b'{"task_name": "x", ', "result.json: Invalid JSON"),
        ("result.json", b"[]", "result.json: Input should be an object"),
        ("result.json", b"\xff\xfe", "result.json: Invalid JSON"),
        ("result.json", b"[" * 100_000, "result.json: Invalid JSON"),
        ("verifier/report.json", None, "verifier/report.json: missing"),
        ("verifier/report.json", b'{"schema_version": 1', "verifier/report.json: Invalid JSON"),
        ("verifier/report.json", b"{}", "verifier/report.json: task: Field required"),
    ],
)
def test_a_broken_file_is_an_error_with_its_reason(
    folder: Path, name: str, content: bytes | None, reason: str
) -> None:
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_bytes(content)
    found = only(folder)
    assert found.status is TrialStatus.ERROR
    assert found.reward is None
    assert found.reason.startswith(reason)
    assert (found.task, found.level) == ("l1_a", 1)


def test_unknown_keys_of_harbor_pass_and_those_of_a_report_do_not(folder: Path) -> None:
    edit(folder / "result.json", new_in_harbor={"x": 1})
    assert only(folder).status is TrialStatus.SCORED
    edit(folder / "verifier" / "report.json", bonus=5)
    found = only(folder)
    assert found.status is TrialStatus.ERROR
    assert "bonus" in found.reason


def test_a_forged_reward_is_an_error(folder: Path) -> None:
    edit(folder / "result.json", verifier_result={"rewards": {"reward": 0.0}})
    assert only(folder).status is TrialStatus.ERROR


def test_times_that_do_not_fit_together_are_an_error_and_no_crash(folder: Path) -> None:
    edit(folder / "result.json", started_at="2026-01-01T00:00:00", finished_at="2026-01-01T00:00:00Z")
    found = only(folder)
    assert found.status is TrialStatus.ERROR
    assert "TypeError" in found.reason


def test_money_that_is_no_number_is_not_recorded(folder: Path) -> None:
    edit(folder / "result.json", agent_result={"cost_usd": float("nan"), "n_input_tokens": 3})
    assert (only(folder).usage.cost_usd, only(folder).usage.input_tokens) == (None, 3)


def test_an_unfinished_trial_belongs_to_the_subject_of_its_configuration(tmp_path: Path) -> None:
    job = tmp_path / "job"
    make_jobs.trial(job, "l1_a", make_jobs.report("l1_a"), agent="a", version="7", model="m")
    killed = make_jobs.trial(job, "l1_b", None, agent="a", version="7", model="m")
    (killed / "result.json").unlink()
    assert len({trial.subject for trial in load_job(job, "job").trials}) == 1


def test_an_empty_trial_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "job" / "l2_x__abc").mkdir(parents=True)
    found = only(tmp_path / "job" / "l2_x__abc")
    assert (found.status, found.task, found.level) == (TrialStatus.ERROR, "l2_x", 2)


@pytest.mark.parametrize("name", ["missing", "empty", "."])
def test_what_is_no_job_folder_is_the_users_mistake(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError) as caught:
        load_jobs([tmp_path / name])
    assert caught.value.mend


def test_no_folder_at_all() -> None:
    with pytest.raises(UserError):
        load_jobs([])


def test_one_folder_given_twice_counts_once_and_two_of_one_name_stay_apart(tmp_path: Path) -> None:
    one, two = tmp_path / "a" / "job", tmp_path / "b" / "job"
    for job in (one, two):
        make_jobs.trial(job, "l1_a", make_jobs.report("l1_a"))
    assert [job.name for job in load_jobs([one, two, one])] == ["job", "job (2)"]


def test_files_outside_the_trial_are_never_read(tmp_path: Path, folder: Path) -> None:
    secret = tmp_path / "secret.png"
    secret.write_bytes(make_jobs.png())
    (tmp_path / "secret.txt").write_text("secret")
    (folder / "verifier" / "a.png").symlink_to(secret)
    (folder / "verifier" / "b").symlink_to(tmp_path)
    (folder / "agent" / "log.txt").symlink_to(tmp_path / "secret.txt")
    found = only(folder)
    assert found.images == ()
    assert [log.name for log in found.logs] == ["trial.log"]
    (folder / "result.json").rename(tmp_path / "result.json")
    (folder / "result.json").symlink_to(tmp_path / "result.json")
    assert "not a regular file" in only(folder).reason


def test_only_raster_images_by_content_are_shown(folder: Path) -> None:
    (folder / "verifier" / "good.bin").write_bytes(make_jobs.png(16, 16))
    (folder / "verifier" / "bad.png").write_bytes(
        b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>"
    )
    (folder / "verifier" / "big.png").write_bytes(make_jobs.png() + b"\0" * files.MAX_IMAGE)
    assert [(image.name, image.mime, image.width) for image in only(folder).images] == [
        ("good.bin", "image/png", 256)
    ]


def test_logs_are_cut_to_their_end(folder: Path) -> None:
    (folder / "agent" / "x.log").write_text("\n".join(f"line {n}" for n in range(10_000)))
    log = next(log for log in only(folder).logs if log.name == "agent/x.log")
    assert log.tail.startswith("[...]")
    assert log.tail.endswith("line 9999")
    assert len(log.tail.splitlines()) == files.MAX_LOG_LINES + 1


def test_a_trajectory_gives_usage_where_the_result_has_none(folder: Path) -> None:
    steps = [{"source": "user", "message": "do"}, {"source": "agent", "message": "done"}]
    metrics = {"total_prompt_tokens": 5, "total_completion_tokens": 2, "total_cost_usd": 0.1}
    (folder / "agent" / "trajectory.json").write_text(json.dumps({"steps": steps, "final_metrics": metrics}))
    found = only(folder)
    assert (found.usage.input_tokens, found.usage.output_tokens, found.usage.cost_usd) == (5, 2, 0.1)
    assert (found.usage.steps, found.last_message) == (2, "done")
    (folder / "agent" / "trajectory.json").write_text("{broken")
    assert only(folder).status is TrialStatus.SCORED


def test_records_of_the_environments(folder: Path) -> None:
    record = {"mode": "root", "details": {"profile": "host", "memory_mb": 512}}
    (folder / "sandbox.json").write_text(json.dumps({"agent": record, "verifier__x": record}))
    found = only(folder)
    assert found.mode["verifier environment"] == "root"
    assert found.mode["agent profile"] == "host"
    assert found.environment["agent memory_mb"] == "512"
    (folder / "sandbox.json").write_text("[1, 2")
    assert only(folder).status is TrialStatus.SCORED


def test_every_field_is_where_harbor_writes_it(folder: Path) -> None:
    from harbor.models.agent.context import AgentContext
    from harbor.models.trial.result import TrialResult

    made = json.loads((folder / "result.json").read_text())
    usage = AgentContext(n_input_tokens=9, n_cache_tokens=4, n_output_tokens=2, cost_usd=0.5)
    timeout = {
        "exception_type": "AgentTimeoutError",
        "exception_message": "too slow",
        "exception_traceback": "",
        "occurred_at": made["started_at"],
    }
    whole = TrialResult.model_validate(
        made
        | {
            "trial_uri": "x",
            "task_id": {"path": made["config"]["task"]["path"]},
            "agent_info": {"name": "a", "version": "2", "model_info": {"name": "m", "provider": "p"}},
            "agent_result": usage,
            "exception_info": timeout,
        }
    )
    (folder / "result.json").write_text(whole.model_dump_json())
    found = only(folder)
    assert (found.status, found.reward, found.note) == (
        TrialStatus.SCORED,
        1.0,
        "AgentTimeoutError: too slow",
    )
    assert found.subject.label == "a 2 · p/m"
    assert (found.usage.input_tokens, found.usage.cached_tokens, found.usage.output_tokens) == (9, 4, 2)
    assert (found.usage.cost_usd, found.phases["total"], found.task_version) == (
        0.5,
        70.0,
        made["task_checksum"],
    )


def test_words_of_the_task_directory(tmp_path: Path) -> None:
    task = tmp_path / "tasks" / "l1_a"
    task.mkdir(parents=True)
    (task / "spec.toml").write_text(
        'level = 1\ngenre = "combat"\nrequest = "Make it so."\nrequirements = ["one", "two"]\n'
        '[[checks]]\nid = "c4_behaviour"\naction = "digs"\noutcome = "gone"\nrequirement = 2\n'
    )
    folder = make_jobs.trial(tmp_path / "job", "l1_a", make_jobs.report("l1_a"), task_path=str(task))
    text = only(folder).text
    assert (text.genre, text.request, text.requirements) == ("combat", "Make it so.", ("one", "two"))
    assert text.behaviours == {"c4_behaviour": {"action": "digs", "outcome": "gone"}}


def test_the_runners_own_record_gives_plan_and_options(tmp_path: Path, folder: Path) -> None:
    record = {
        "tasks": ["a", "b"],
        "agents": ["oracle"],
        "environment": "sandbox",
        "attempts": 2,
        "skills": False,
    }
    (folder.parent / "orrery.json").write_text(json.dumps(record))
    job = load_job(folder.parent, "job")
    assert job.planned == 4
    assert job.trials[0].subject.options == "without skills"


def test_the_committed_folders_are_what_the_script_makes(tmp_path: Path) -> None:
    for make in (make_jobs.mixed, make_jobs.oracle):
        made = make(tmp_path)
        kept = FIXTURES / made.name
        names = sorted(path.relative_to(made) for path in made.rglob("*") if path.is_file())
        assert names == sorted(path.relative_to(kept) for path in kept.rglob("*") if path.is_file())
        for name in names:
            assert (made / name).read_bytes() == (kept / name).read_bytes(), name
