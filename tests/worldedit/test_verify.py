"""One verification, with a made-up game in place of a server (labelled), and the command around it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from orrery_core.errors import InfrastructureError
from orrery_core.reports import read_outcome, read_report
from orrery_core.results import TrialStatus, canonical_json, comparable
from orrery_worldedit import cli, games
from orrery_worldedit.evidence import ArmEvidence, CheckEvidence
from orrery_worldedit.scratch import remove, scratch_folder
from orrery_worldedit.verify import MAX_CHANGES, rejudge, spec_hash, verify
from tasks_for_tests import check, raw, spec


@dataclass
class FakeAdapter:
    """Made up for these tests: arms that answer at once."""

    arms: dict[str, Any] = field(default_factory=dict)
    parallel: bool = True
    errors: list[str] = field(default_factory=list)
    ran: list[str] = field(default_factory=list)
    at_once: int = 0
    Game: Any = None

    def machine(self) -> Any:
        return SimpleNamespace(versions={"toy": "1"}, mode={"isolation": "none"}, parallel=self.parallel)

    def syntax_errors(self, machine: Any, package: Any, workdir: Path) -> list[str]:
        return self.errors

    def arm(self, machine: Any, task: Any, mod: Path | None, workdir: Path) -> Any:
        return SimpleNamespace(run=lambda: self._run("candidate" if mod else workdir.name))

    def _run(self, name: str) -> tuple[ArmEvidence, list[dict[str, Any]]]:
        self.ran.append(name)
        others = threading.active_count()
        time.sleep(0.05)
        self.at_once = max(self.at_once, others)
        answer = self.arms.get(name, self.arms.get("vanilla") if name == "vanilla_alone" else None)
        if isinstance(answer, BaseException):
            raise answer
        if answer is not None:
            return answer  # type: ignore[no-any-return]
        value = "default:stone" if name == "candidate" else "air"
        done = CheckEvidence(outcome="measured", values={"seen": value})
        return ArmEvidence(loaded=True, checks={"there": done}), [{}, {}]

    def diff(self, before: dict[str, Any], after: dict[str, Any]) -> list[Any]:
        return [
            SimpleNamespace(path=key, before=before.get(key), after=after.get(key))
            for key in sorted(before.keys() | after.keys())
            if before.get(key) != after.get(key)
        ]


@pytest.fixture
def game(monkeypatch: pytest.MonkeyPatch) -> FakeAdapter:
    fake = FakeAdapter()
    fake.Game = games.verbs_class("luanti")  # the specs of these tests use its verbs
    monkeypatch.setattr(games, "adapter", lambda family: fake)
    return fake


@pytest.fixture
def mod(tmp_path: Path) -> Path:
    folder = tmp_path / "mod"
    folder.mkdir()
    (folder / "mod.conf").write_text("name = cand\n")
    (folder / "init.lua").write_text("")
    return folder


TASK = spec()


def judged(tmp_path: Path, mod: Path, task: Any = TASK) -> Any:
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)
    return verify(task, mod, tmp_path / "out", work)


def test_a_whole_verification(game: FakeAdapter, tmp_path: Path, mod: Path) -> None:
    report = judged(tmp_path, mod)
    assert report.status is TrialStatus.SCORED and report.reward == 1.0
    assert read_outcome(tmp_path / "out") == report
    assert sorted(game.ran) == ["candidate", "vanilla"]
    assert report.versions["toy"] == "1" and report.mode == {"isolation": "none"}
    assert report.versions["spec"] == spec_hash(TASK)[:16]
    assert set(report.timings) == {"verify_s"}


def test_stored_evidence_gives_the_same_report(game: FakeAdapter, tmp_path: Path, mod: Path) -> None:
    report = judged(tmp_path, mod)
    again = rejudge(TASK, tmp_path / "out")
    assert canonical_json(comparable(report)) == canonical_json(comparable(again))
    stricter = spec(checks=[check(acceptance=["seen == 'default:dirt'"])])
    assert rejudge(stricter, tmp_path / "out").reward == 0.0


def test_a_rejected_package_runs_nothing(game: FakeAdapter, tmp_path: Path, mod: Path) -> None:
    (mod / "mod.conf").unlink()
    report = judged(tmp_path, mod)
    assert report.status is TrialStatus.REJECTED and game.ran == []


def test_a_syntax_error_runs_no_arm(game: FakeAdapter, tmp_path: Path, mod: Path) -> None:
    game.errors = ["init.lua:1: no"]
    report = judged(tmp_path, mod)
    assert report.status is TrialStatus.SCORED and report.reward == 0.0 and game.ran == []


_NO_ANSWER = CheckEvidence(outcome="unmeasurable", reason="OSError: no space left")


@pytest.mark.parametrize(
    "starved",
    [
        InfrastructureError("the vanilla server failed: too slow", mend="-"),
        OSError(28, "no space left"),
        (ArmEvidence(loaded=True, checks={"there": _NO_ANSWER}), [{}, {}]),
    ],
)
def test_a_neighbour_starved_by_the_submission_gets_the_machine_alone(
    game: FakeAdapter, tmp_path: Path, mod: Path, starved: Any
) -> None:
    done = CheckEvidence(outcome="measured", values={"seen": "air"})
    game.arms = {
        "vanilla": starved,
        "vanilla_alone": (ArmEvidence(loaded=True, checks={"there": done}), [{}, {}]),
    }
    report = judged(tmp_path, mod)
    assert report.status is TrialStatus.SCORED and report.reward == 1.0
    assert game.ran[-1] == "vanilla_alone"


@pytest.mark.parametrize("parallel", [True, False])
def test_a_vanilla_game_that_fails_alone_is_a_broken_machine(
    game: FakeAdapter, tmp_path: Path, mod: Path, parallel: bool
) -> None:
    game.parallel = parallel
    game.arms = {"vanilla": InfrastructureError("the vanilla server failed: no disk", mend="free some")}
    with pytest.raises(InfrastructureError):
        judged(tmp_path, mod)
    report = read_report(tmp_path / "out" / "report.json")
    assert report.status is TrialStatus.ERROR and "no disk" in report.reason
    assert not (tmp_path / "out" / "reward.json").exists()
    assert ("vanilla_alone" in game.ran) is parallel


def test_without_namespaces_the_arms_run_one_after_the_other(
    game: FakeAdapter, tmp_path: Path, mod: Path
) -> None:
    alone = threading.active_count() + 1
    game.parallel = False
    judged(tmp_path, mod)
    assert game.at_once == alone and game.ran == ["candidate", "vanilla"]


def test_an_unforeseen_exception_leaves_no_reward(game: FakeAdapter, tmp_path: Path, mod: Path) -> None:
    game.arms = {"candidate": RuntimeError("bug")}
    with pytest.raises(RuntimeError):
        judged(tmp_path, mod)
    assert read_report(tmp_path / "out" / "report.json").status is TrialStatus.ERROR
    assert not (tmp_path / "out" / "reward.json").exists()


def test_changes_of_both_dumps_count(game: FakeAdapter, tmp_path: Path, mod: Path) -> None:
    done = CheckEvidence(outcome="measured", values={"seen": "default:stone"})
    arm = ArmEvidence(loaded=True, checks={"there": done})
    game.arms["candidate"] = (arm, [{"items/a": 1}, {"items/b": 2}])
    report = judged(tmp_path, mod)
    stored = json.loads((tmp_path / "out" / "evidence.json").read_text())["changes"]
    assert [change["path"] for change in stored] == ["items/a", "items/b"]
    assert report.reward == 0.0


def test_evidence_is_bounded(game: FakeAdapter, tmp_path: Path, mod: Path) -> None:
    done = CheckEvidence(outcome="measured", values={"seen": "default:stone"})
    arm = ArmEvidence(loaded=True, checks={"there": done})
    dump: dict[str, Any] = {f"callbacks/{number}": 1 for number in range(MAX_CHANGES + 5)}
    dump["callbacks/0"] = "x" * 5_000_000
    game.arms["candidate"] = (arm, [dump])
    report = judged(tmp_path, mod)
    assert (tmp_path / "out" / "evidence.json").stat().st_size < 5_000_000
    stored = json.loads((tmp_path / "out" / "evidence.json").read_text())["changes"]
    assert stored[0]["after"].startswith("<5000002 characters, sha256 ")
    assert stored[-1] == {"path": "(more)", "before": None, "after": "5 more changes"}
    assert report.reward == 0.0


def test_the_spec_hash_covers_what_moves_verdicts() -> None:
    assert spec_hash(spec()) == spec_hash(spec(mutants=[{"id": "m", "mistake": "x", "criterion": "there"}]))
    assert spec_hash(spec()) != spec_hash(spec(checks=[check(acceptance=["seen == 'air'"])]))


# -- the command


def test_the_command_judges(
    game: FakeAdapter, tmp_path: Path, mod: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(raw()))
    code = cli.main(["verify", "--spec", str(path), "--submission", str(mod), "--out", str(tmp_path / "out")])
    assert code == 0
    assert "scored: reward 1.0" in capsys.readouterr().out
    assert read_outcome(tmp_path / "out").reward == 1.0


def test_the_command_tells_whose_fault_it_is(
    game: FakeAdapter, tmp_path: Path, mod: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "spec.json"
    where = ["--submission", str(mod), "--out", str(tmp_path / "out")]
    assert cli.main(["verify", "--spec", str(path), *where]) == 2
    path.write_text(json.dumps(raw()))
    game.arms = {"vanilla": InfrastructureError("no server", mend="install one")}
    assert cli.main(["verify", "--spec", str(path), *where]) == 3
    assert "no server" in capsys.readouterr().err


def test_scratch_folders_vanish_whatever_is_in_them() -> None:
    script = "d=$1; for i in $(seq 1500); do mkdir d 2>/dev/null; cd d || exit 1; done"
    with scratch_folder() as folder:
        subprocess.run(["sh", "-c", script, "sh"], cwd=folder, check=True)
        (folder / "d" / "locked").mkdir(mode=0)
        assert folder.is_dir()
    assert not folder.exists()
    remove(folder)


@pytest.mark.e2e
def test_the_real_command_leaves_nothing_but_its_files(tmp_path: Path) -> None:
    task = Path(__file__).parents[2] / "tasks/luanti/l1_steel_pick"
    scratch = tmp_path / "scratch"
    scratch.mkdir(mode=0o755)
    tmp_path.chmod(0o755)
    command = [sys.executable, "-m", "orrery_worldedit", "verify", "--spec", str(task / "spec.toml")]
    command += ["--submission", str(task / "solution/mod"), "--out", str(tmp_path / "out")]
    done = subprocess.run(
        command, capture_output=True, text=True, env={"PATH": "/usr/bin:/bin", "TMPDIR": str(scratch)}
    )
    assert done.returncode == 0, done.stderr
    assert "scored: reward 1.0" in done.stdout
    assert list(scratch.iterdir()) == []
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "evidence.json",
        "report.json",
        "reward.json",
    ]
    assert str(tmp_path) not in (tmp_path / "out" / "report.json").read_text()


@pytest.mark.e2e
@pytest.mark.skipif(os.geteuid() != 0, reason="the mode without namespaces needs root")
def test_a_real_verification_without_namespaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from orrery_core.isolation import Isolation
    from orrery_worldedit.games.luanti import adapter
    from orrery_worldedit.spec import load_spec

    machine = adapter.Machine(adapter.find_install(), Isolation.probe("uid"))
    monkeypatch.setattr(adapter, "machine", lambda: machine)
    task = Path(__file__).parents[2] / "tasks/luanti/l1_steel_pick"
    with scratch_folder() as work:
        report = verify(load_spec(task / "spec.toml"), task / "solution/mod", tmp_path / "out", work)
    assert report.reward == 1.0 and report.mode["isolation"] == "uid"
    assert not Path("/game").exists()
