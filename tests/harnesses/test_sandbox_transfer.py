"""Hostile archives never write outside of their target."""

from __future__ import annotations

import io
import os
import tarfile

import pytest
from orrery.environments.transfer import RefusedArchive, link_stays_inside, unpack_tree


def archive(*members: tuple[str, str, str]) -> io.BytesIO:
    """Members are (kind, name, content or link target)."""
    kinds = {
        "dir": tarfile.DIRTYPE, "link": tarfile.SYMTYPE, "hard": tarfile.LNKTYPE,
        "fifo": tarfile.FIFOTYPE, "dev": tarfile.CHRTYPE, "file": tarfile.REGTYPE,
    }  # fmt: skip
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        for kind, name, content in members:
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = kinds[kind], 0o6777
            if kind in ("link", "hard"):
                entry.linkname = content
            if kind == "file":
                entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content.encode()))
    file.seek(0)
    return file


@pytest.fixture
def target(tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret").write_text("secret")
    (tmp_path / "target").mkdir()
    yield tmp_path / "target"
    assert (tmp_path / "outside/secret").read_text() == "secret"
    assert os.listdir(tmp_path / "outside") == ["secret"]
    assert sorted(os.listdir(tmp_path)) == ["outside", "target"]


def test_good_members_arrive(target):
    refused = unpack_tree(
        archive(("dir", "./a", ""), ("file", "./a/f", "x"), ("link", "l", "a/f"), ("link", "a/up", "../a/f"),
                ("hard", "h", "./a/f"), ("file", "deep/er/g", "y")),
        target,
    )  # fmt: skip
    assert refused == []
    assert (target / "l").read_text() == (target / "a/up").read_text() == (target / "h").read_text() == "x"
    assert (target / "deep/er/g").read_text() == "y"
    assert (target / "a/f").stat().st_mode & 0o7777 == 0o755


@pytest.mark.parametrize(
    "members",
    [
        [("file", "../outside/new", "x")],
        [("file", "/outside/new", "x")],
        [("file", "a/../../outside/new", "x")],
        [("link", "l", "../outside"), ("file", "l/new", "x")],
        [("link", "l", "/"), ("file", "l/new", "x")],
        [
            ("link", "a/b/c/deep", "../../../t"),
            ("link", "y", "a/b/c/deep/../../../../outside"),
            ("file", "y/secret", "x"),
        ],
        [("hard", "h", "../outside/secret")],
        [("link", "l", "../outside/secret"), ("hard", "h", "l"), ("file", "h", "x")],
        [("fifo", "p", "")],
        [("dev", "d", "")],
        [("file", "a" * 300, "x")],
        [("dir", "/".join(["d"] * 300), "")],
    ],
)
def test_bad_members_are_left_out_and_named(target, members):
    assert unpack_tree(archive(*members), target)
    for path in target.rglob("*"):
        assert path.resolve().is_relative_to(target)


def test_links_that_were_there_before_are_not_followed(target):
    (target / "dir").symlink_to(target.parent / "outside")
    (target / "file").symlink_to(target.parent / "outside/secret")
    refused = unpack_tree(archive(("file", "dir/new", "x"), ("file", "file", "mine")), target)
    assert len(refused) == 1
    assert (target / "file").read_text() == "mine" and not (target / "file").is_symlink()


def test_a_second_download_overwrites(target):
    unpack_tree(archive(("file", "f", "1"), ("link", "l", "f")), target)
    assert unpack_tree(archive(("file", "f", "2"), ("link", "l", "f")), target) == []
    assert (target / "l").read_text() == "2"


def test_bombs_are_refused_as_a_whole(target):
    with pytest.raises(RefusedArchive):
        unpack_tree(archive(("file", "f", "x" * 2000), ("file", "g", "x" * 2000)), target, max_bytes=3000)
    with pytest.raises(tarfile.TarError):
        unpack_tree(io.BytesIO(b"not a tar archive" * 100), target)


@pytest.mark.parametrize(
    ("depth", "destination", "inside"),
    [
        (0, "a", True), (0, "a/b", True), (1, "../a", True), (2, "../../a", True), (0, ".", True),
        (0, "..", False), (1, "../../a", False), (0, "/a", False), (3, "a/../b", False), (0, "", False),
    ],
)  # fmt: skip
def test_where_links_may_lead(depth, destination, inside):
    assert link_stays_inside(depth, destination) is inside
