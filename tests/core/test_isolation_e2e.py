"""Hostile subjects in every mode that this machine allows: nothing leaks, escapes, or is left."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from orrery_core.errors import InfrastructureError
from orrery_core.isolation import Bind, Isolation, Limits, SubjectProcess
from orrery_core.isolation.ground import MODES, NESTED, UID
from orrery_core.pipes import open_pair
from pydantic import BaseModel

pytestmark = pytest.mark.e2e

HOSTILE = Path(__file__).with_name("hostile.py")
PYTHON = "/usr/bin/python3"
LIMITS = Limits(wall_s=120, cpu_s=10, memory_mb=300, file_mb=4, processes=30, output_mb=1)
END_S = 180.0


@dataclass
class Scene:
    """One mode, a work directory of the judge, and how to run the hostile program in it."""

    isolation: Isolation
    folder: Path
    marker: str

    def given(self) -> Path:
        """A directory handed to the subject."""
        path = self.folder / "given"
        if not path.exists():
            path.mkdir()
            self.isolation.grant(path)
        return path

    def target(self, name: str) -> str:
        """Where a bind goes: unique, because without namespaces it is a real path."""
        return f"/orrery-test-{self.marker}/{name}"

    def start(self, attack: str, given: dict, limits: Limits = LIMITS, **options) -> SubjectProcess:
        script = self.folder / "hostile.py"
        script.write_bytes(HOSTILE.read_bytes())
        return self.isolation.spawn(
            [PYTHON, self.target("hostile.py"), attack, json.dumps(given), self.marker],
            binds=[
                Bind(script, self.target("hostile.py")),
                Bind(self.given(), self.target("given"), writable=True),
            ],
            env={"PATH": "/usr/bin:/bin"},
            limits=limits,
            stdout=self.folder / "log",
            **options,
        )

    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def left(self) -> list[int]:
        """Processes of this scene that still live."""
        alive = []
        for path in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if self.marker.encode() in (path / "cmdline").read_bytes() and int(path.name) != os.getpid():
                    alive.append(int(path.name))
        return alive


@pytest.fixture(params=MODES)
def scene(request, tmp_path_factory) -> Iterator[Scene]:
    umask = os.umask(0o022)
    try:
        isolation = Isolation.probe(request.param)
    except InfrastructureError as error:
        pytest.skip(error.message)
    finally:
        os.umask(umask)
    folder = tmp_path_factory.mktemp("judge")
    made = Scene(isolation, folder, secrets.token_hex(8))
    yield made
    os.umask(umask)
    assert made.left() == []
    assert not Path(made.target("x")).parent.exists()


@dataclass
class Bait:
    """What a hostile program would like to have."""

    token: str
    given: dict


@pytest.fixture
def bait(scene: Scene) -> Iterator[Bait]:
    token = f"TOKEN-{secrets.token_hex(12)}"
    secret = scene.folder / "hidden" / "secret"
    secret.parent.mkdir(mode=0o700)
    secret.write_text(token)
    beside = scene.folder / "answer.json"
    beside.write_text(token)
    readable = scene.folder / "input"
    readable.write_text("input")
    decoy = subprocess.Popen(["/usr/bin/sleep", "600"], env={"SECRET": token})
    server = socket.create_server(("127.0.0.1", 0))
    abstract = f"\0orrery-{scene.marker}"
    unix = socket.socket(socket.AF_UNIX)
    unix.bind(abstract)
    unix.listen()
    given = {
        "pids": [decoy.pid, os.getpid()],
        "secrets": [str(secret), str(beside)],
        "folders": ["/", "/usr", "/etc", "/dev", "/proc", str(scene.folder)],
        "read_only": [scene.target("hostile.py")],
        "port": server.getsockname()[1],
        "abstract": abstract,
    }
    yield Bait(token, given)
    server.close()
    unix.close()
    assert decoy.poll() is None, "the judge's process was killed"
    decoy.kill()
    decoy.wait()


ATTACKS = ("environ", "memory", "trace", "signals", "files", "descriptors", "write", "privileges")


@pytest.mark.parametrize("attack", ATTACKS)
def test_attack_finds_nothing(scene: Scene, bait: Bait, attack: str):
    with scene.start(attack, bait.given) as subject:
        assert subject.wait(END_S) == 0, scene.log()
    assert scene.log().split() == ["END"]


@pytest.mark.parametrize("attack", ["environ", "memory", "trace", "files"])
def test_attack_finds_nothing_with_proc(scene: Scene, bait: Bait, attack: str):
    if scene.isolation.mode == NESTED and not scene.isolation._fresh_proc:
        pytest.skip("no /proc of its own here")
    with scene.start(attack, bait.given, proc=True) as subject:
        assert subject.wait(END_S) == 0, scene.log()
    assert scene.log().split() == ["END"]


def test_attack_finds_the_bait_without_isolation(scene: Scene, bait: Bait):
    """The attacks work: without isolation they do find something."""
    for attack in ("environ", "memory", "files", "network"):
        done = subprocess.run(
            [PYTHON, str(HOSTILE), attack, json.dumps(bait.given)], capture_output=True, text=True, check=True
        )
        assert "FOUND" in done.stdout, attack
        assert attack == "network" or bait.token in done.stdout


def test_private_network_reaches_nothing(scene: Scene, bait: Bait):
    with scene.start("network", bait.given, network=False) as subject:
        assert subject.wait(END_S) == 0, scene.log()
    if scene.isolation.mode == UID:
        assert scene.log().split() == ["END"]
    else:
        assert "FOUND" not in scene.log()


def test_shared_network_reaches_the_judge(scene: Scene, bait: Bait):
    with scene.start("network", bait.given) as subject:
        assert subject.wait(END_S) == 0, scene.log()
    assert "FOUND connected" in scene.log()


@pytest.mark.parametrize(
    ("attack", "limits", "verdicts"),
    [
        ("spin", {"cpu_s": 1}, {"cpu"}),
        ("sleep", {"wall_s": 0.5}, {"wall"}),
        ("bloat", {}, {"memory"}),
        ("chatter", {}, {"output"}),
        ("forks", {"wall_s": 1.0}, {"wall", "memory", "processes", "cpu"}),
        ("fill", {}, {"storage"}),
    ],
)
def test_limit_ends_the_subject(scene: Scene, attack: str, limits: dict, verdicts: set[str]):
    with scene.start(attack, {"folder": scene.target("given")}, replace(LIMITS, **limits)) as subject:
        assert subject.wait(END_S) != 0
    assert subject.verdict in verdicts
    assert (scene.folder / "log").stat().st_size <= LIMITS.output_mb << 20


def test_the_kernel_refuses_more_processes(scene: Scene):
    """Below the watchdog's own count, so that it is the kernel which says no."""
    if scene.isolation.mode == NESTED and os.geteuid() == 0:
        pytest.skip("the kernel does not count root's processes; the watchdog does")
    with scene.start("breed", {"enough": 2 * LIMITS.processes}) as subject:
        assert subject.wait(END_S) == 0, scene.log()
    assert LIMITS.processes - 5 <= int(scene.log().split()[0]) <= LIMITS.processes


@pytest.mark.parametrize("proc", [False, True])
def test_no_process_of_the_judge_is_listed(scene: Scene, proc: bool):
    if scene.isolation.mode == UID or (proc and not scene.isolation._fresh_proc):
        pytest.skip("the subject shares the judge's /proc here")
    with scene.isolation.spawn(
        ["/bin/sh", "-c", "echo /proc/[0-9]*"], env={}, limits=LIMITS, proc=proc, stdout=scene.folder / "log"
    ) as subject:
        assert subject.wait(END_S) == 0
    assert scene.log().split() == (["/proc/1", "/proc/2"] if proc else ["/proc/[0-9]*"])


def test_daemon_ends_with_its_program(scene: Scene):
    with scene.start("daemon", {}) as subject:
        assert subject.wait(END_S) == 0
    assert subject.verdict is None
    assert scene.left() == []


def test_kill_takes_the_daemon_along(scene: Scene):
    with scene.start("daemon", {"stay": True}) as subject:
        _until(lambda: "daemon" in scene.log())
        assert len(scene.left()) >= 2
        subject.kill()
        assert scene.left() == []
        assert subject.poll() == 128 + signal.SIGKILL
    assert subject.verdict is None


def test_two_subjects_do_not_touch_each_other(scene: Scene):
    if scene.isolation.mode == UID:
        pytest.skip("one bind target cannot lead to two places without namespaces")
    with scene.start("sleep", {}) as first:
        with scene.start("sleep", {}) as second:
            second.kill()
        assert first.poll() is None


def test_death_of_the_judge_ends_the_subject(scene: Scene):
    """Even SIGKILL of the judge leaves nothing of a running subject."""
    code = """
import sys, pathlib
from orrery_core.isolation import Bind, Isolation, Limits
mode, script, target, marker, log = sys.argv[1:]
subject = Isolation.probe(mode).spawn(["/usr/bin/python3", target, "daemon", '{"stay": true}', marker],
    binds=[Bind(pathlib.Path(script), target)], env={}, limits=Limits(600, 60, 300, 4, 30, 1),
    stdout=pathlib.Path(log))
subject.wait()
"""
    script = scene.folder / "hostile.py"
    script.write_bytes(HOSTILE.read_bytes())
    target = scene.target("hostile.py")
    line = [sys.executable, "-c", code, scene.isolation.mode, str(script), target, scene.marker]
    log = scene.folder / "log"
    log.write_text("")
    with subprocess.Popen([*line, str(log)]) as judge:
        _until(lambda: "daemon" in scene.log())
        assert len(scene.left()) >= 3
        judge.kill()
    _until(lambda: scene.left() == [])
    # A killed judge cannot take its link away.
    if scene.isolation.mode == UID:
        Path(target).unlink()
        Path(target).parent.rmdir()


def test_environment_acts_on_the_program_alone(scene: Scene):
    with scene.isolation.spawn(
        ["/usr/bin/env"],
        env={"LD_PRELOAD": "/missing.so", "A": "b c"},
        limits=LIMITS,
        fixed_addresses=True,
        stdout=scene.folder / "log",
    ) as subject:
        assert subject.wait(END_S) == 0
    lines = scene.log().splitlines()
    assert len([line for line in lines if "cannot be preloaded" in line]) == 1
    assert [line for line in lines if "cannot be" not in line] == ["LD_PRELOAD=/missing.so", "A=b c"]


def test_fixed_addresses(scene: Scene):
    def address() -> str:
        code = "import ctypes; print(ctypes.cast(ctypes.CDLL(None).printf, ctypes.c_void_p).value)"
        with scene.isolation.spawn(
            [PYTHON, "-c", code], env={}, limits=LIMITS, fixed_addresses=fixed, stdout=scene.folder / "log"
        ) as subject:
            assert subject.wait(END_S) == 0
        return scene.log()

    fixed = True
    assert len({address() for _ in range(3)}) == 1
    fixed = False
    assert len({address() for _ in range(3)}) > 1


def test_protocol_over_standard_input(scene: Scene):
    class Question(BaseModel):
        number: int

    class Answer(BaseModel):
        double: int

    code = """
import json, socket
channel = socket.socket(fileno=0).makefile("rw")
for line in channel:
    channel.write(json.dumps({"double": 2 * json.loads(line)["number"]}) + "\\n")
    channel.flush()
"""
    channel, end = open_pair()
    with (
        channel,
        scene.isolation.spawn(
            [PYTHON, "-c", code], env={}, limits=LIMITS, stdin=end, network=False, stdout=scene.folder / "log"
        ) as subject,
    ):
        os.close(end)
        for number in range(100):
            assert channel.ask(Question(number=number), Answer).double == 2 * number
        channel.close()
        assert subject.wait(END_S) == 0, scene.log()


def test_granted_directory_belongs_to_the_subject(scene: Scene):
    outside = scene.folder / "outside"
    outside.write_text("")
    folder = scene.given()
    (folder / "deep").mkdir()
    (folder / "deep" / "file").write_text("old")
    (folder / "link").symlink_to(outside)
    scene.isolation.grant(folder)
    assert outside.stat().st_uid == os.geteuid()
    command = "echo new > given/deep/file && id -u"
    with scene.isolation.spawn(
        ["/bin/sh", "-c", command],
        binds=[Bind(folder, scene.target("given"), writable=True)],
        env={},
        limits=LIMITS,
        cwd=scene.target("given/.."),
        stdout=scene.folder / "log",
    ) as subject:
        assert subject.wait(END_S) == 0, scene.log()
    assert (folder / "deep" / "file").read_text() == "new\n"


def test_missing_program_and_missing_bind(scene: Scene):
    with scene.isolation.spawn(["/usr/bin/no-such-program"], env={}, limits=LIMITS) as subject:
        assert subject.wait(END_S) == 127
    with pytest.raises(InfrastructureError, match="does not exist"):
        scene.isolation.spawn(
            ["/bin/true"], binds=[Bind(scene.folder / "none", "/none")], env={}, limits=LIMITS
        )


def test_a_subject_that_cannot_be_set_up_is_our_fault(scene: Scene):
    with (
        scene.isolation.spawn(["/bin/true"], env={}, limits=LIMITS, cwd="/no-such-folder") as subject,
        pytest.raises(InfrastructureError, match=r"could not be set up.*no-such-folder"),
    ):
        subject.wait(END_S)


def test_wait_times_out_while_the_subject_runs(scene: Scene):
    with scene.start("sleep", {}) as subject:
        with pytest.raises(TimeoutError):
            subject.wait(0.05)
        assert subject.poll() is None


def test_detect_chooses_the_first_mode_that_holds():
    umask = os.umask(0o022)
    os.umask(umask)
    assert Isolation.detect().mode in MODES
    assert os.umask(umask) == umask


def _until(condition) -> None:
    """Wait for something in another process that gives no event."""
    end = time.monotonic() + END_S
    while not condition():
        assert time.monotonic() < end, "did not happen"
        time.sleep(0.01)
