"""Finding task directories by path and glob, and refusing invalid ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import make_task
from orrery.tasks import TaskDir, all_tasks, find_tasks, require_valid
from orrery_core.errors import UserError


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with two families, as the current folder."""
    for family, name in (("luanti", "l1_pick"), ("luanti", "l2_door"), ("terraria", "l1_bow")):
        make_task(tmp_path / "tasks" / family, name)
    (tmp_path / "harnesses").mkdir()
    (tmp_path / "tasks/luanti/README.md").write_text("about\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("patterns", "names"),
    [
        (["tasks/luanti/l1_pick"], ["l1_pick"]),
        (["tasks/luanti/*"], ["l1_pick", "l2_door"]),
        (["tasks/luanti"], ["l1_pick", "l2_door"]),
        (["tasks"], ["l1_pick", "l2_door", "l1_bow"]),
        (["tasks/**/l1_*"], ["l1_pick", "l1_bow"]),
        (["tasks/**"], ["l1_pick", "l2_door", "l1_bow"]),
        (["luanti/l[12]_*"], ["l1_pick", "l2_door"]),
        (["tasks/luanti/*", "tasks/luanti/l1_*"], ["l1_pick", "l2_door"]),
    ],
)
def test_patterns(checkout: Path, patterns: list[str], names: list[str]) -> None:
    assert [task.name for task in find_tasks(patterns)] == names


def test_patterns_fall_back_to_the_checkout(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(checkout / "harnesses")
    assert [task.name for task in find_tasks(["tasks/luanti/l1_*"])] == ["l1_pick"]
    assert [task.name for task in find_tasks([str(checkout / "tasks/terraria/*")])] == ["l1_bow"]


@pytest.mark.parametrize(
    ("pattern", "message", "mend"),
    [
        ("tasks/luanti/l1_pik", "no task directory matches", "did you mean tasks/luanti/l1_pick"),
        ("tasks/**/zzz*", "no task directory matches", "orrery ls"),
        ("tasks/luanti/README.md", "is a file", "directory that holds task.toml"),
        ("harnesses", "not a task directory", "orrery ls"),
    ],
)
def test_what_matches_nothing_is_said(checkout: Path, pattern: str, message: str, mend: str) -> None:
    with pytest.raises(UserError) as caught:
        find_tasks([pattern])
    assert message in caught.value.message
    assert mend in caught.value.mend


def test_a_folder_that_is_no_task_is_not_skipped(checkout: Path) -> None:
    (checkout / "tasks/luanti/l3_empty").mkdir()
    for pattern in ("tasks/luanti", "tasks/luanti/*"):
        with pytest.raises(UserError, match="l3_empty: not a task directory"):
            find_tasks([pattern])


def test_level_comes_from_the_metadata_and_else_from_the_name(checkout: Path) -> None:
    task = TaskDir(checkout / "tasks/luanti/l2_door")
    assert task.level == 1
    (task.path / "task.toml").write_text("")
    assert task.level == 2
    assert task.family == "luanti"


def test_all_tasks_of_a_checkout(checkout: Path) -> None:
    assert [task.name for task in all_tasks()] == ["l1_pick", "l2_door", "l1_bow"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda task: (task / "task.toml").unlink(), "task.toml is missing"),
        (lambda task: (task / "task.toml").write_text("[task\n"), "task.toml"),
        (lambda task: (task / "task.toml").write_text('[task]\nname = "x"\n'), "task.name"),
        (lambda task: (task / "instruction.md").unlink(), "instruction.md"),
        (lambda task: (task / "environment").rename(task / "env"), "environment/ is missing"),
        (lambda task: (task / "solution/out").symlink_to("/etc/passwd"), "solution/out"),
    ],
)
def test_what_harbor_would_skip_is_refused(checkout: Path, change: object, reason: str) -> None:
    task = TaskDir(checkout / "tasks/luanti/l1_pick")
    assert task.problem() is None
    change(task.path)  # type: ignore[operator]
    with pytest.raises(UserError) as caught:
        require_valid([task, TaskDir(checkout / "tasks/luanti/l2_door")])
    assert "1 directory is not a valid task" in caught.value.message
    assert reason in caught.value.message
    assert "l2_door" not in caught.value.message
