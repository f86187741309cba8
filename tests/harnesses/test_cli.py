"""The command line itself: start-up, usage errors, error messages and exit codes."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path

import click
import pytest
from helpers import FAKE, as_json, make_task, orrery
from orrery import cli
from orrery_core.errors import InfrastructureError, UserError


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from orrery.cli import main; main(['--help']);"
        "heavy = {'harbor', 'pydantic', 'jinja2', 'litellm', 'docker', 'rich', 'orrery.runner'};"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stderr.strip() == "[]"
    assert all(name in done.stdout for name in cli.COMMANDS)


@pytest.mark.parametrize("name", sorted(cli.COMMANDS))
def test_every_command_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([name, "--help"]) == 0
    assert f"orrery {name}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["rnu"], "No such command 'rnu'"),
        (["run"], "Missing argument 'PATHS"),
        (["run", "x", "-n", "0"], "0 is not in the range"),
        (["run", "x", "--retry-errors"], "--retry-errors needs the --job-name"),
        (["run", "tasks/nowhere/*"], "no task directory matches"),
        (["show", "tasks/nowhere"], "no task directory matches"),
        (["rejudge", "/nonexistent"], "does not exist"),
    ],
)
def test_usage_errors_exit_2(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(arguments) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert "Traceback" not in captured.err
    assert captured.out == ""


@pytest.mark.parametrize(
    ("error", "code", "lines"),
    [
        (
            UserError("the spec is odd", mend="write it anew"),
            2,
            ["orrery: the spec is odd", "  mend: write it anew"],
        ),
        (InfrastructureError("no engine", mend="install it"), 3, ["orrery: no engine", "  mend: install it"]),
        (InfrastructureError("no engine"), 3, ["orrery: no engine"]),
        (OSError(errno.ENOSPC, "No space left", "/jobs/x"), 3, ["orrery: the disk is full (/jobs/x)"]),
    ],
)
def test_errors_are_a_message_and_a_mend(
    error: Exception,
    code: int,
    lines: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("ORRERY_DEBUG", raising=False)
    monkeypatch.setattr(cli.cli, "main", _raises(error))
    assert cli.main([]) == code
    assert capsys.readouterr().err.splitlines()[: len(lines)] == lines


def test_debug_gives_the_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORRERY_DEBUG", "1")
    monkeypatch.setattr(cli.cli, "main", _raises(UserError("odd")))
    with pytest.raises(UserError):
        cli.main([])


def test_a_defect_of_ours_shows_its_traceback_and_is_no_low_score(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli.cli, "main", _raises(ZeroDivisionError("oops")))
    assert cli.main([]) == 3
    assert "ZeroDivisionError: oops" in capsys.readouterr().err


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), click.Abort()])
def test_interruption_exits_130(stop: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli.cli, "main", _raises(stop))
    assert cli.main([]) == 130


def _raises(error: BaseException) -> object:
    def main(**_: object) -> None:
        raise error

    return main


def test_ls_names_what_is_wrong_with_a_task(tmp_path: Path) -> None:
    make_task(tmp_path / "tasks/fake", "l1_one")
    result = orrery("ls", "tasks/fake", "--json", cwd=tmp_path)
    assert result.returncode == 1
    assert as_json(result) == {
        "tasks": [
            {"path": "tasks/fake/l1_one", "family": "fake", "level": 1, "criteria": None, "status": "invalid"}
        ]
    }
    plain = orrery("ls", "tasks/fake", cwd=tmp_path)
    assert "tasks/fake/l1_one: has no spec.toml" in " ".join(plain.stdout.split())


def test_report_of_several_jobs_must_say_where(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["report", str(tmp_path / "a"), str(tmp_path / "b")]) == 2
    assert "mend: say where with -o DIR" in capsys.readouterr().err


def test_classes_of_the_current_folder_can_be_named(tmp_path: Path) -> None:
    make_task(tmp_path / "tasks/fake", "l1_one")
    (tmp_path / "mine.py").write_text("from harbor.agents.nop import NopAgent\nclass Mine(NopAgent): pass\n")
    arguments = ("run", "tasks/fake", "--agent", "mine:Mine", "--env", FAKE, "--json")
    refused = orrery(*arguments, cwd=tmp_path)
    assert refused.returncode == 2
    assert "mine:Mine does not support skills" in refused.stderr
    assert "mend: add --no-skills" in refused.stderr
    done = orrery(*arguments, "--no-skills", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert as_json(done)["trials"][0]["reward"] == 0.0
