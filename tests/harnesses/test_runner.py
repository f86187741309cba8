"""Jobs on a fake environment: outcomes, exit codes, JSON, interruption and resume."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from helpers import FAKE, Result, as_json, command, environment, make_task, orrery


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder to work in, with three sound tasks of one family."""
    for name in ("l1_one", "l1_two", "l2_three"):
        make_task(tmp_path / "tasks/fake", name)
    return tmp_path


def run(place: Path, *arguments: str, control: Path | None = None) -> Result:
    return orrery("run", *arguments, "--env", FAKE, cwd=place, control=control)


def test_oracle_solves_everything_and_the_table_says_so(place: Path) -> None:
    result = run(place, "tasks/fake", "--job-name", "first")
    assert result.returncode == 0, result.stderr
    for expected in ("BSR", "CPR", "WSR", "regression", "L1", "L2", "100.0 %", "mode: ", "job: jobs/first"):
        assert expected in result.stdout
    assert (place / "jobs/first/report/index.html").exists()


def test_json_has_the_stable_shape_and_nothing_else_on_standard_output(place: Path) -> None:
    result = run(place, "tasks/fake", "--json", "-k", "2")
    data = as_json(result)
    assert set(data) == {"trials", "mode"}
    assert len(data["trials"]) == 6
    assert all(set(trial) == {"task", "status", "reward", "rewards", "seconds"} for trial in data["trials"])
    assert {trial["task"] for trial in data["trials"]} == {"l1_one", "l1_two", "l2_three"}
    assert data["mode"] == {"environment": FAKE, "skills": "with", "isolation": "none"}


def test_nop_is_scored_and_solves_nothing(place: Path) -> None:
    result = run(place, "tasks/fake", "--agent", "nop", "--json")
    assert result.returncode == 0, result.stderr
    assert [trial["status"] for trial in as_json(result)["trials"]] == ["scored"] * 3
    assert not any(trial["reward"] for trial in as_json(result)["trials"])


def test_oracle_and_nop_never_import_litellm(place: Path) -> None:
    code = (
        "import sys; from orrery.cli import main;"
        f"rc = main(['run', 'tasks/fake', '--agent', sys.argv[1], '--env', '{FAKE}', '--json']);"
        "print('litellm' in sys.modules, 'harbor' in sys.modules, file=sys.stderr); sys.exit(rc)"
    )
    for agent in ("oracle", "nop"):
        done = subprocess.run(
            [*command()[:2], code, agent],
            cwd=place,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        assert done.stderr.splitlines()[-1] == "False True"


def test_telemetry_is_off() -> None:
    import orrery  # noqa: F401 - importing it is what is tested

    assert os.environ["HARBOR_TELEMETRY"] == "0"
    assert os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] == "True"


@pytest.mark.parametrize(
    ("behaviour", "at", "reason"),
    [
        ("error", "tests", "the fake verifier broke"),
        ("no-report", "tests", "verifier"),
        ("start-fails", "environment", "the fake did not start"),
        ("constructor-fails", "environment", "this definition is not supported"),
    ],
)
def test_what_cannot_be_measured_is_an_error_and_spares_the_others(
    place: Path, behaviour: str, at: str, reason: str
) -> None:
    make_task(place / "tasks/fake", "l3_broken", behaviour=behaviour, at=at)
    result = run(place, "tasks/fake", "--json", "-n", "1")
    trials = {trial["task"]: trial for trial in as_json(result)["trials"]}
    assert trials["l3_broken"]["status"] == "error"
    assert trials["l3_broken"]["reward"] is None
    assert [trials[name]["reward"] for name in ("l1_one", "l1_two", "l2_three")] == [1.0] * 3
    assert reason in result.stderr
    assert result.returncode == 3


def test_a_rejected_submission_counts_and_fails_the_oracle(place: Path) -> None:
    make_task(place / "tasks/fake", "l3_rejected", behaviour="reject")
    result = run(place, "tasks/fake/l3_rejected", "--json")
    assert result.returncode == 1
    assert as_json(result)["trials"][0] | {"seconds": 0} == {
        "task": "l3_rejected",
        "status": "rejected",
        "reward": 0.0,
        "rewards": {"reward": 0.0, "built": 0.0, "cpr": 0.0, "loaded": 0.0, "preservation": 0.0},
        "seconds": 0,
    }


def test_no_skills_empties_the_folder_and_is_recorded(place: Path) -> None:
    result = run(place, "tasks/fake/l1_one", "--no-skills", "--json", "--job-name", "bare")
    assert as_json(result)["mode"]["skills"] == "without"
    config = json.loads((place / "jobs/bare/config.json").read_text())
    copy = Path(config["tasks"][0]["path"])
    assert list((copy / "environment/skills").iterdir()) == []
    assert "skills" not in (copy / "task.toml").read_text()
    assert (copy / "instruction.md").read_text() == "Say yes.\n"
    assert (copy / "environment/mod").is_dir()
    assert (place / "tasks/fake/l1_one/environment/skills/modding.md").exists()
    assert config["tasks"][0]["source"] == "fake"


def test_invalid_directories_are_refused_before_anything_runs(place: Path) -> None:
    bad = make_task(place / "tasks/fake", "l3_bad")
    (bad / "task.toml").write_text('[task]\nname = "no slash"\n')
    empty = place / "tasks/fake/l4_empty"
    empty.mkdir()
    (empty / "spec.toml").touch()
    result = run(place, "tasks/fake")
    assert result.returncode == 2
    assert "tasks/fake/l3_bad: task.toml: task" in result.stderr
    assert "tasks/fake/l4_empty: task.toml is missing" in result.stderr
    assert "orrery render tasks/fake/l4_empty" in result.stderr
    assert "Traceback" not in result.stderr
    assert not (place / "jobs").exists()


@pytest.mark.parametrize(
    ("options", "message", "mend"),
    [
        (["--agent", "orcale"], "there is no such agent", "did you mean oracle"),
        (["--agent", "no_such_module:Agent"], "cannot import no_such_module", "PYTHONPATH"),
        (["--agent", "fake_environment:Nothing"], "has no Nothing", "module:Class"),
        (["--job-name", "a/b"], "plain folder name", "leave out slashes"),
        (["--job-name", "new", "--retry-errors"], "no such job", "check --job-name"),
    ],
)
def test_wrong_options_are_named_with_their_mend(
    place: Path, options: list[str], message: str, mend: str
) -> None:
    result = run(place, "tasks/fake", *options)
    assert result.returncode == 2
    assert message in result.stderr
    assert f"mend: {mend}" in result.stderr or mend in result.stderr.split("mend:")[1]
    assert not (place / "jobs").exists()


def test_an_unknown_environment_is_named(place: Path) -> None:
    result = orrery("run", "tasks/fake", "--env", "sandbx", cwd=place)
    assert result.returncode == 2
    assert "did you mean sandbox" in result.stderr


def test_an_environment_that_cannot_work_here_ends_the_run_before_any_trial(place: Path) -> None:
    (place / "refusing.py").write_text(
        "from fake_environment import FakeEnvironment\n"
        "class Refusing(FakeEnvironment):\n"
        "    @classmethod\n"
        "    def preflight(cls, kwargs=None):\n"
        "        raise SystemExit('no namespaces')\n"
    )
    result = orrery("run", "tasks/fake", "--env", "refusing:Refusing", cwd=place)
    assert result.returncode == 3
    assert "no namespaces" in result.stderr
    assert "orrery doctor" in result.stderr
    assert not (place / "jobs").exists()


def interrupt(place: Path, control: Path, how: int) -> subprocess.CompletedProcess[str]:
    """Runs one trial at a time until `l1_two` blocks, then sends the signal `how`."""
    control.mkdir(exist_ok=True)
    (control / "block-l1_two").touch()
    arguments = command("run", "tasks/fake", "--env", FAKE, "--job-name", "job", "-n", "1")
    process = subprocess.Popen(
        arguments,
        cwd=place,
        env=environment(control),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while not (control / "reached-l1_two").exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "the trial never began"
        time.sleep(0.02)
    process.send_signal(how)
    stdout, stderr = process.communicate(timeout=60)
    (control / "block-l1_two").unlink()
    return subprocess.CompletedProcess(arguments, process.returncode, stdout, stderr)


def results(place: Path) -> dict[str, str]:
    """Trial folder name -> its result file, of the finished trials of the job."""
    found = {path.parent.name: path.read_text() for path in (place / "jobs/job").glob("*__*/result.json")}
    return {name: text for name, text in found.items() if "CancelledError" not in text}


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_keeps_finished_trials_and_says_how_to_go_on(place: Path, tmp_path: Path, how: int) -> None:
    stopped = interrupt(place, tmp_path / "control", how)
    assert stopped.returncode == 130, stopped.stderr
    assert f"to go on: orrery run tasks/fake --env {FAKE} -n 1 --job-name job" in stopped.stderr
    before = results(place)
    assert [name.split("__")[0] for name in before] == ["l1_one"]

    again = run(place, "tasks/fake", "-n", "1", "--job-name", "job", "--json")
    assert again.returncode == 0, again.stderr
    assert len(as_json(again)["trials"]) == 3
    assert "1 of 3 trials are kept" in again.stderr
    assert before.items() <= results(place).items()
    assert len(results(place)) == 3


def test_after_kill_9_nothing_finished_is_lost(place: Path, tmp_path: Path) -> None:
    killed = interrupt(place, tmp_path / "control", signal.SIGKILL)
    assert killed.returncode == -signal.SIGKILL
    before = results(place)
    assert len(before) == 1
    job = place / "jobs/job"
    (job / "result.json").write_text('{"id": "cut sho')  # a kill in the middle of a write
    (job / "lock.json").write_text("")

    again = run(place, "tasks/fake", "-n", "2", "--job-name", "job", "--json")
    assert again.returncode == 0, again.stderr
    assert len(as_json(again)["trials"]) == 3
    assert before.items() <= results(place).items()


def test_a_complete_job_is_shown_again_without_running(place: Path) -> None:
    assert run(place, "tasks/fake", "--job-name", "job").returncode == 0
    before = results(place)
    again = run(place, "tasks/fake", "--job-name", "job", "--json")
    assert again.returncode == 0, again.stderr
    assert len(as_json(again)["trials"]) == 3
    assert results(place) == before


def test_a_job_name_in_use_for_something_else_says_what_differs(place: Path) -> None:
    assert run(place, "tasks/fake", "--job-name", "job").returncode == 0
    result = run(place, "tasks/fake/l1_*", "--agent", "nop", "--job-name", "job", "--no-skills")
    assert result.returncode == 2
    for line in (
        "agents: was ['oracle'], now ['nop']",
        "tasks: not asked for now: l2_three",
        "skills: was True, now False",
    ):
        assert line in result.stderr


def test_a_task_that_changed_since_the_job_began_is_not_mixed_in(place: Path, tmp_path: Path) -> None:
    interrupt(place, tmp_path / "control", signal.SIGINT)
    (place / "tasks/fake/l2_three/instruction.md").write_text("Say no.\n")
    result = run(place, "tasks/fake", "-n", "1", "--job-name", "job")
    assert result.returncode == 2
    assert "changed since it began" in result.stderr
    assert len(results(place)) == 1


def test_retry_errors_runs_only_what_has_no_score(place: Path) -> None:
    broken = make_task(place / "tasks/fake", "l3_broken")
    (place / "control").mkdir()
    (place / "control/break-l3_broken").touch()
    first = run(place, "tasks/fake", "--job-name", "job", control=place / "control")
    assert first.returncode == 3
    before = results(place)
    (place / "control/break-l3_broken").unlink()

    unchanged = run(place, "tasks/fake", "--job-name", "job")
    assert unchanged.returncode == 3, "a plain resume keeps errors"
    again = run(place, "tasks/fake", "--job-name", "job", "--retry-errors", "--json")
    assert again.returncode == 0, again.stderr
    after = results(place)
    kept = {name: text for name, text in before.items() if broken.name not in name}
    assert kept.items() <= after.items()
    assert len(after) == 4


def test_two_processes_cannot_run_one_job(place: Path, tmp_path: Path) -> None:
    from orrery.jobs import locked
    from orrery_core.errors import UserError

    job = place / "jobs/job"
    assert run(place, "tasks/fake", "--job-name", "job").returncode == 0
    with locked(job):
        result = run(place, "tasks/fake", "--job-name", "job")
        assert result.returncode == 2
        assert "running in another process" in result.stderr
        with pytest.raises(UserError), locked(job):
            pass


def test_a_full_disk_is_said_plainly_and_loses_nothing(place: Path) -> None:
    (place / "full.py").write_text(
        "import errno, pathlib, sys\n"
        "from orrery.cli import main\n"
        "write = pathlib.Path.write_text\n"
        "def full(path, *args, **kwargs):\n"
        "    if path.name == 'result.json' and 'l1_two' in path.parent.name:\n"
        "        raise OSError(errno.ENOSPC, 'No space left on device', str(path))\n"
        "    return write(path, *args, **kwargs)\n"
        "pathlib.Path.write_text = full\n"
        "sys.exit(main())\n"
    )
    arguments = ["run", "tasks/fake", "--env", FAKE, "--job-name", "job", "-n", "1"]
    result = subprocess.run(
        [command()[0], "full.py", *arguments],
        cwd=place,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert result.returncode == 3
    assert "the disk is full" in result.stderr
    assert "Traceback" not in result.stderr
    assert len(results(place)) == 1
    again = run(place, *arguments[1:2], "--job-name", "job", "-n", "1", "--json")
    assert again.returncode == 0, again.stderr
    assert len(as_json(again)["trials"]) == 3


def test_moved_results_do_not_matter_to_the_reader(place: Path) -> None:
    from orrery.jobs import read_outcomes

    run(place, "tasks/fake", "--job-name", "job")
    shutil.move(place / "jobs/job", place / "elsewhere")
    assert [outcome.reward for outcome in read_outcomes(place / "elsewhere")] == [1.0] * 3
