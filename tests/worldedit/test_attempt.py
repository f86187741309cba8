"""What an agent sees when it tries its mod: the stage it came to, and what the mod adds and changes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from orrery_worldedit import cli
from orrery_worldedit.attempt import Attempt, attempt
from orrery_worldedit.scratch import scratch_folder


def tried(folder: Path) -> Attempt:
    with scratch_folder() as work:
        return attempt(folder, 1.0, work)


def write(tmp_path: Path, code: str, conf: str = "name = cand\ndepends = default\n") -> Path:
    folder = tmp_path / "cand"
    folder.mkdir()
    (folder / "mod.conf").write_text(conf)
    (folder / "init.lua").write_text(code)
    return folder


@pytest.mark.parametrize(
    ("conf", "words"),
    [("depends = default\n", "mod.conf gives no name"), ("name =\n", "mod.conf"), ("x", "mod.conf")],
)
def test_a_package_that_is_no_mod(tmp_path: Path, conf: str, words: str) -> None:
    found = tried(write(tmp_path, "", conf))
    assert (found.ok, found.stage) == (False, "package") and words in found.problem


def test_no_folder(tmp_path: Path) -> None:
    assert tried(tmp_path / "nothing").problem == "no mod folder was submitted"


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("code", "stage", "words"),
    [
        ("local = 1", "syntax", "init.lua:1"),
        ("error('no')", "load", "no"),
        ("core.after(0.3, function() error('later') end)", "load", "later"),
        ("core.request_shutdown()", "load", "without being asked"),
    ],
)
def test_a_mod_that_does_not_run(tmp_path: Path, code: str, stage: str, words: str) -> None:
    found = tried(write(tmp_path, code))
    assert (found.ok, found.stage) == (False, stage) and words in found.problem


@pytest.mark.e2e
def test_a_mod_that_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = """
    core.register_craftitem("cand:pie", {description = "Pie"})
    core.override_item("default:apple", {stack_max = 5})
    """
    assert cli.main(["try", str(write(tmp_path, code)), "--seconds", "1"]) == 0
    found = Attempt.model_validate(json.loads(capsys.readouterr().out))
    assert found.ok and found.stage == "run" and found.problem == ""
    assert "items/cand:pie" in found.added
    assert "items/default:apple/stack_max" in found.added  # the game's own definition leaves it out
    assert found.changed == ["items/default:apple/engine/stack_max"]
