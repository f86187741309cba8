"""Submissions that break a stated rule: rejected before any of their files is copied or run."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from orrery_core.results import Status, TrialStatus
from submissions import HONEST, judged, status, write_mod


def _link(mod: Path) -> None:
    (mod / "secret.txt").symlink_to("/etc/passwd")


def _link_folder(mod: Path) -> None:
    (mod / "textures").symlink_to("/tests")


def _link_init(mod: Path) -> None:
    (mod / "init.lua").unlink()
    (mod / "init.lua").symlink_to("/proc/self/environ")


def _dangling(mod: Path) -> None:
    (mod / "a.lua").symlink_to("nowhere")


def _gigabyte(mod: Path) -> None:
    with (mod / "big.txt").open("wb") as file:
        file.truncate(1 << 30)


def _many_megabytes(mod: Path) -> None:
    for number in range(6):
        with (mod / f"{number}.ogg").open("wb") as file:
            file.truncate(15 << 20)


def _many_files(mod: Path) -> None:
    for number in range(2100):
        (mod / f"{number}.txt").touch()


def _many_folders(mod: Path) -> None:
    for number in range(2100):
        (mod / str(number)).mkdir()


def _deep(mod: Path) -> None:
    (mod / "/".join("a" * 20)).mkdir(parents=True)


def _fifo(mod: Path) -> None:
    os.mkfifo(mod / "pipe.lua")


def _socket(mod: Path) -> None:
    os.mknod(mod / "socket.lua", 0o140644)


def _device(mod: Path) -> None:
    os.mknod(mod / "zero.lua", 0o020644, os.makedev(1, 5))


def _write(name: str, content: bytes) -> Callable[[Path], None]:
    def write(mod: Path) -> None:
        (mod / name).parent.mkdir(exist_ok=True, parents=True)
        (mod / name).write_bytes(content)

    return write


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (_link, "secret.txt: symbolic links"),
        (_link_folder, "textures: symbolic links"),
        (_link_init, "init.lua: symbolic links"),
        (_dangling, "a.lua: symbolic links"),
        (_gigabyte, "big.txt: 1024 MiB; at most 16 MiB a file"),
        (_many_megabytes, "more than 64 MiB in all"),
        (_many_files, "more than 2000 files"),
        (_many_folders, "more than 2000 files"),
        (_deep, "folders deeper than 12"),
        (_fifo, "pipe.lua: not an ordinary file"),
        (_socket, "socket.lua: not an ordinary file"),
        pytest.param(
            _device,
            "zero.lua: not an ordinary file",
            marks=pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices"),
        ),
        (_write("evil.so", b"\x7fELF"), "evil.so: files of this kind"),
        (_write("textures/cand_x.png", b"\x7fELF\2\1\1"), "native code"),
        (_write("sounds/cand_x.ogg", b"MZ\x90\0\3\0"), "native code"),
        (_write("run.txt", b"#!/bin/sh\nrm -rf /\n"), "executable script"),
        (_write("fast.lua", b"\x1bLJ\2"), "bytecode"),
        (_write("fast.txt", b"\x1bLuaQ"), "bytecode"),
        (_write("second/mod.conf", b"name = second\n"), "second/mod.conf: a second mod"),
        (_write("modpack.conf", b"name = pack\n"), "not a modpack"),
        (_write("modpack.txt", b""), "not a modpack"),
        (_write("mod.conf", b"name = default\n"), "says name = 'default'; the mod must keep"),
        (_write("mod.conf", b"name = cand\nname = other\n"), "says name = 'other'"),
        (_write("mod.conf", b"description = no name\n"), "gives no name"),
        (_write("mod.conf", b"name = cand\0\n"), "must keep the name"),
        (_write("mod.conf", b"#" * 70_000 + b"\nname = cand\n"), "larger than 64 KiB"),
        (lambda mod: (mod / "mod.conf").unlink(), "mod.conf is missing"),
        (_write("a\nb.lua", b""), "unprintable file name"),
        (_write("a\\b.lua", b""), "unprintable file name"),
        (_write(os.fsdecode(b"\xff\xfe.lua"), b""), "unprintable file name"),
    ],
)
def test_a_broken_rule_is_rejected_with_its_reason(
    tmp_path: Path, spoil: Callable[[Path], None], words: str
) -> None:
    mod = write_mod(tmp_path / "mod", HONEST)
    spoil(mod)
    report = judged(tmp_path, mod)
    assert report.status is TrialStatus.REJECTED
    assert words in report.reason
    assert report.reward == 0.0 and report.rewards["built"] == 0.0
    assert status(report, "built") is Status.FAIL
    assert {c.status for c in report.criteria[1:]} == {Status.UNREACHED}


@pytest.mark.parametrize("kind", ["nothing", "file", "link"])
def test_no_folder_at_all(tmp_path: Path, kind: str) -> None:
    mod = tmp_path / "mod"
    if kind == "file":
        mod.write_text(HONEST)
    if kind == "link":
        write_mod(tmp_path / "real", HONEST)
        mod.symlink_to(tmp_path / "real")
    report = judged(tmp_path, mod)
    assert report.status is TrialStatus.REJECTED
    assert report.reason == "no mod folder was submitted"
