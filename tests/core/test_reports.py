from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from orrery_core import reports
from orrery_core.errors import InfrastructureError
from orrery_core.reports import (
    UNFINISHED,
    ReportWriter,
    read_evidence,
    read_outcome,
    read_report,
    read_reward,
    write_atomic,
)
from orrery_core.results import Report, TrialStatus, canonical_json

HEAD = {"task": "luanti/x", "family": "luanti", "level": 1}
SCORED = Report(**HEAD, status=TrialStatus.SCORED, reward=1.0, rewards={"cpr": 1.0})


class Killed(BaseException):
    """Stands for SIGKILL: nothing after it runs."""


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_finished_verification(tmp_path: Path):
    out = tmp_path / "deep" / "verifier"
    with ReportWriter(out, **HEAD) as writer:
        assert read_report(out / "report.json").reason == UNFINISHED
        writer.evidence({"events": [1, 2.5]})
        writer.finish(SCORED)
    assert names(out) == {"report.json", "reward.json", "evidence.json"}
    assert read_outcome(out) == SCORED
    assert read_evidence(out / "evidence.json") == {"events": [1, 2.5]}
    assert (out / "reward.json").read_text() == '{"reward": 1.0, "cpr": 1.0}\n'
    assert (out / "report.json").read_text() == canonical_json(SCORED)
    assert (out / "report.json").stat().st_mode & 0o777 == 0o644


def test_rejected_has_a_reward_and_error_has_none(tmp_path: Path):
    rejected = Report(**HEAD, status=TrialStatus.REJECTED, reward=0.0, reason="absolute link")
    with ReportWriter(tmp_path, **HEAD) as writer:
        writer.finish(rejected)
    assert read_reward(tmp_path / "reward.json") == {"reward": 0.0}
    failed = Report(**HEAD, status=TrialStatus.ERROR, reason="no server")
    with ReportWriter(tmp_path, **HEAD) as writer:
        writer.finish(failed)
    assert names(tmp_path) == {"report.json"}
    assert read_outcome(tmp_path) == failed


def test_exception_becomes_an_error_and_goes_on(tmp_path: Path):
    with pytest.raises(InfrastructureError), ReportWriter(tmp_path, **HEAD) as writer:
        writer.about(versions={"game": "5.6.1"})
        writer.finish(SCORED)
        raise InfrastructureError("the server is not installed", mend="apt-get install minetest-server")
    outcome = read_outcome(tmp_path)
    assert outcome.status is TrialStatus.ERROR
    assert "apt-get install" in outcome.reason
    assert outcome.versions == {"game": "5.6.1"}
    assert names(tmp_path) == {"report.json", "verifier-error.txt"}
    text = (tmp_path / "verifier-error.txt").read_text()
    assert "core/test_reports.py" in text
    assert str(Path(__file__).parents[2]) not in text


def test_a_block_without_a_report_is_an_error(tmp_path: Path):
    with ReportWriter(tmp_path, **HEAD):
        pass
    assert read_outcome(tmp_path).reason == "the verifier ended without a report"


def test_stale_results_are_gone_at_the_start(tmp_path: Path):
    with ReportWriter(tmp_path, **HEAD) as writer:
        writer.evidence({})
        writer.finish(SCORED)
    with ReportWriter(tmp_path, **HEAD):
        assert names(tmp_path) == {"report.json"}


def kill_after(monkeypatch: pytest.MonkeyPatch, limit: int) -> list[str]:
    """Make the call number `limit` of all that touch the disk the last one; the list names those made."""
    done: list[str] = []

    def guard(owner: object, name: str) -> None:
        real = getattr(owner, name)

        def guarded(*args, **kwargs):
            if len(done) >= limit:
                raise Killed(name)
            done.append(name)
            return real(*args, **kwargs)

        monkeypatch.setattr(owner, name, guarded)

    guard(reports.tempfile, "mkstemp")
    for name in ("fdopen", "fsync", "fchmod"):
        guard(reports.os, name)
    for name in ("replace", "unlink"):
        guard(Path, name)
    return done


def verify(out: Path) -> None:
    with ReportWriter(out, **HEAD) as writer:
        writer.evidence({"a": 1})
        writer.finish(SCORED)


def test_killed_at_any_write_leaves_no_reward_without_its_report(tmp_path: Path):
    """The same verification is killed after 0, 1, 2, ... disk calls, over an earlier result."""
    stale = Report(**HEAD, status=TrialStatus.SCORED, reward=0.25, rewards={"cpr": 0.25})
    limit, seen = 0, set()
    while True:
        out = tmp_path / str(limit)
        with ReportWriter(out, **HEAD) as writer:
            writer.finish(stale)
        with pytest.MonkeyPatch.context() as patch:
            done = kill_after(patch, limit)
            try:
                verify(out)
                finished = True
            except Killed:
                finished = False
        report = read_report(out / "report.json")
        if (out / "reward.json").exists():
            assert read_reward(out / "reward.json") == report.reward_file()
        outcome = read_outcome(out)
        seen.add((outcome.status, outcome.reward))
        if finished:
            break
        limit += 1
    assert len(done) > 15
    assert (TrialStatus.SCORED, 1.0) in seen
    assert (TrialStatus.ERROR, None) in seen


def test_sigkill_of_a_real_verifier_leaves_an_error(tmp_path: Path):
    code = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom orrery_core.reports import ReportWriter\n"
        "with ReportWriter(Path(sys.argv[1])):\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert read_outcome(tmp_path).reason == UNFINISHED
    assert names(tmp_path) == {"report.json"}


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_full_disk_keeps_the_old_file_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int):
    path = tmp_path / "report.json"
    write_atomic(path, "old")

    def full(descriptor: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(reports.os, "fsync", full)
    with pytest.raises(InfrastructureError) as caught:
        write_atomic(path, "new" * 1000)
    assert os.strerror(code) in caught.value.message
    assert str(path) in caught.value.message
    assert caught.value.mend
    assert path.read_text() == "old"
    assert names(tmp_path) == {"report.json"}


def test_full_disk_at_the_end_leaves_no_reward(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    real = reports.write_atomic

    def full(path: Path, text: str) -> None:
        if path.name == "reward.json":
            raise InfrastructureError("cannot write", mend="free disk space")
        real(path, text)

    monkeypatch.setattr(reports, "write_atomic", full)
    with pytest.raises(InfrastructureError):
        verify(tmp_path)
    outcome = read_outcome(tmp_path)
    assert outcome.status is TrialStatus.ERROR
    assert outcome.reason == UNFINISHED


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        '{"reward": NaN}',
        '{"reward": "1"}',
        '{"cpr": 1}',
        '{"reward": {"a": 1}}',
        '{"reward": 1e999}',
    ],
)
def test_invalid_reward_files_are_refused(tmp_path: Path, content: str):
    path = tmp_path / "reward.json"
    path.write_text(content)
    with pytest.raises(InfrastructureError, match=r"reward\.json"):
        read_reward(path)


def test_forged_reward_beside_a_report_is_refused(tmp_path: Path):
    with ReportWriter(tmp_path, **HEAD) as writer:
        writer.finish(Report(**HEAD, status=TrialStatus.ERROR, reason="x"))
    (tmp_path / "reward.json").write_text(json.dumps({"reward": 1.0}))
    with pytest.raises(InfrastructureError, match="differs"):
        read_outcome(tmp_path)


def test_missing_and_broken_files_are_named(tmp_path: Path):
    with pytest.raises(InfrastructureError, match=r"cannot read .*report\.json"):
        read_report(tmp_path / "report.json")
    path = tmp_path / "evidence.json"
    for content in ("nope", '{"a": Infinity}', "[" * 100_000):
        path.write_text(content)
        with pytest.raises(InfrastructureError, match=r"evidence\.json"):
            read_evidence(path)


def test_finish_twice_is_a_mistake(tmp_path: Path):
    with pytest.raises(RuntimeError), ReportWriter(tmp_path, **HEAD) as writer:
        writer.finish(SCORED)
        writer.finish(SCORED)
