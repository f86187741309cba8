"""What isolation decides before anything runs."""

from __future__ import annotations

import errno
import os
import pwd
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import orrery_core
import pytest
from orrery_core.errors import InfrastructureError
from orrery_core.isolation import Bind, Isolation, Limits, ground, seccomp
from orrery_core.isolation.apart import free_uid, open_way
from orrery_core.isolation.launch import Order, sandbox
from orrery_core.isolation.tree import descendants, stored, usage

LIMITS = Limits(wall_s=1, cpu_s=2, memory_mb=3, file_mb=4, processes=5, output_mb=6)


def order(**fields) -> Order:
    given = {"argv": ("/bin/true", "x"), "binds": (), "env": {}, "limits": LIMITS}
    return Order(**given | fields)


def line(made: Order, *, own_user: bool = True, proc: str = "empty") -> list[str]:
    return sandbox(Path("/usr/bin/bwrap"), made, own_user=own_user, proc=proc, status_fd=8, filter_fd=9)


def test_the_environment_is_set_by_the_last_program():
    words = line(order(env={"LD_PRELOAD": "/gate.so"}, fixed_addresses=True))
    assert [Path(word).name for word in words[-8:-3]] == ["setarch", "-R", "--", "env", "-i"]
    assert words[-3:] == ["LD_PRELOAD=/gate.so", "/bin/true", "x"]
    assert "--clearenv" in words


def test_network_is_shared_unless_refused():
    assert "--unshare-net" not in line(order())
    assert "--unshare-net" in line(order(network=False))


def test_only_root_of_the_namespace_keeps_what_it_needs_to_drop():
    assert "CAP_SETUID" in line(order())
    assert "CAP_SETUID" not in line(order(), own_user=False)
    assert "--unshare-user" in line(order(), own_user=False)


def test_outer_binds_come_before_the_ones_inside_them(tmp_path: Path):
    binds = (Bind(tmp_path / "a", "/world/mods/a"), Bind(tmp_path, "/world", writable=True))
    words = line(order(binds=binds))
    assert words.index("/world/mods/a") > words.index("/world")
    assert words[words.index("/world") - 2] in ("--bind", "--dir")


@pytest.mark.parametrize("target", ["relative", "/", "/a/../b", ""])
def test_bind_targets_are_absolute(target: str):
    with pytest.raises(ValueError, match="target"):
        Bind(Path("/x"), target)


@pytest.mark.parametrize("name", list(vars(LIMITS)))
def test_limits_are_positive(name: str):
    with pytest.raises(ValueError, match=name):
        Limits(**vars(LIMITS) | {name: 0})


@pytest.mark.parametrize("env", [{"": "x"}, {"A=B": "x"}, {"A": "x\0y"}])
def test_environment_is_checked(env: dict[str, str]):
    with pytest.raises(ValueError, match="environment"):
        order(env=env)


@pytest.mark.parametrize("argv", [(), ("A=b",)])
def test_programs_are_checked(argv: tuple[str, ...]):
    with pytest.raises(ValueError, match="argv"):
        order(argv=argv)


def answer(program: bytes, token: int, number: int, argument: int = 0) -> int:
    """What the filter says to a call: a small interpreter of the instructions it uses."""
    data = struct.pack("=iIQQ", number, token, 0, argument)
    steps = list(struct.iter_unpack("=HBBI", program))
    position = accumulator = 0
    while True:
        code, if_true, if_false, value = steps[position]
        position += 1
        if code == seccomp.LOAD:
            accumulator = struct.unpack_from("=I", data, value)[0]
        elif code == seccomp.RETURN:
            return value
        else:
            holds = {
                seccomp.JUMP_EQUAL: accumulator == value,
                seccomp.JUMP_GREATER_EQUAL: accumulator >= value,
                seccomp.JUMP_ANY_BIT: bool(accumulator & value),
            }[code]
            position += if_true if holds else if_false


@pytest.mark.parametrize("machine", seccomp.MACHINES)
def test_filter(machine: str):
    token, numbers = seccomp.MACHINES[machine].token, seccomp.MACHINES[machine].numbers
    shared, private = (seccomp.build(sockets=sockets, machine=machine) for sockets in (True, False))

    def say(name: str, argument: int = 0, program: bytes = shared) -> int:
        return answer(program, token, numbers[name], argument)

    for name in numbers.keys() - set(seccomp.SPECIAL):
        assert say(name) == seccomp.ERRNO | errno.EPERM, name
    assert say("clone3") == seccomp.ERRNO | errno.ENOSYS
    assert say("clone", 0x11) == seccomp.ALLOW
    assert say("clone", 0x10000011) == seccomp.ERRNO | errno.EPERM
    assert say("socket") == seccomp.ALLOW
    assert say("socket", program=private) == seccomp.ERRNO | errno.EACCES
    for harmless in (0, 1, 63, 64, 1000):
        if harmless not in numbers.values():
            assert answer(shared, token, harmless) == seccomp.ALLOW
    assert answer(shared, token ^ 1, 0) == seccomp.KILL


def test_second_call_table_is_closed():
    program = seccomp.build(sockets=True, machine="x86_64")
    assert answer(program, seccomp.MACHINES["x86_64"].token, 0x40000000) == seccomp.KILL


def test_unknown_machine_is_refused():
    with pytest.raises(InfrastructureError, match="m68k"):
        seccomp.build(sockets=True, machine="m68k")


def test_nothing_holds_is_an_error_with_every_reason(monkeypatch: pytest.MonkeyPatch):
    def fail(mode: str) -> Isolation:
        raise InfrastructureError(f"no {mode} today")

    monkeypatch.setattr(ground.Isolation, "probe", fail)
    with pytest.raises(InfrastructureError) as caught:
        Isolation.detect()
    for mode in ground.MODES:
        assert f"no {mode} today" in caught.value.message
    assert caught.value.mend


def test_proc_of_the_judge_is_never_shown_to_its_own_user():
    with pytest.raises(InfrastructureError):
        Isolation(ground.NESTED)._proc(True)
    assert Isolation(ground.NESTED)._proc(False) == "empty"
    assert Isolation(ground.NESTED, fresh_proc=True)._proc(True) == "fresh"
    assert Isolation(ground.NESTED_UID)._proc(True) == "outer"


@pytest.fixture
def work() -> Iterator[Path]:
    """A closed directory right below the temporary one (pytest's own lie in a closed directory)."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "mod").mkdir()
        (folder / "mod" / "init.lua").write_text("")
        (folder / "mod" / "init.lua").chmod(0o600)
        (folder / "answer").write_text("")
        (folder / "answer").chmod(0o644)
        yield folder


def test_opening_the_way_to_a_bind_closes_what_lies_beside(work: Path):
    open_way(Bind(work / "mod", "/mod"), 62000)
    assert work.stat().st_mode & 0o777 == 0o701
    assert (work / "answer").stat().st_mode & 0o777 == 0o640
    assert (work / "mod" / "init.lua").stat().st_mode & 0o777 == 0o604


def test_a_closed_directory_elsewhere_is_not_opened(work: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(work / "mod"))
    with pytest.raises(InfrastructureError, match="closed to the subject"):
        open_way(Bind(work / "answer", "/answer"), 62000)
    assert work.stat().st_mode & 0o777 == 0o700


def test_free_uids_differ_and_belong_to_no_one():
    drawn = {free_uid() for _ in range(20)}
    assert len(drawn) > 10
    for uid in drawn:
        with pytest.raises(KeyError):
            pwd.getpwuid(uid)


def test_usage_of_a_tree():
    code = "import os, time; pid = os.fork(); b = bytearray(30 << 20); print('x', flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.read(4)
        used = usage(process.pid)
        family = descendants(process.pid)
        for pid in reversed(family):
            os.kill(pid, 9)
    assert len(family) == 2
    assert used.tasks == 2
    assert used.memory > 60 << 20
    assert usage(process.pid).memory == 0


def test_storage_follows_no_links(tmp_path: Path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "file").write_bytes(b"x" * 100_000)
    (tmp_path / "link").symlink_to("/usr")
    size, entries = stored((tmp_path,), 1000)
    assert entries == 3
    assert 100_000 <= size < 200_000
    assert stored((tmp_path,), 1)[1] == 2


def test_facade():
    for name in orrery_core.__all__:
        assert getattr(orrery_core, name).__name__ == name
    with pytest.raises(AttributeError):
        _ = orrery_core.nothing
    code = "import sys, orrery_core; sys.exit('pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_subject_that_has_ended_before_it_is_watched_is_no_failure() -> None:
    import subprocess

    from orrery_core.isolation.process import Running

    gone = subprocess.Popen(["true"])
    gone.wait()
    child = subprocess.Popen(["true"])
    read, write = os.pipe()
    running = Running(child, gone.pid, read, write)
    assert os.fstat(running.root_fd)
    child.wait()
    for descriptor in (running.root_fd, read, write):
        os.close(descriptor)
