"""The sandbox as Harbor uses it. Also run as an ordinary user by test_sandbox_user.py."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from harbor.models.task.config import NetworkMode, NetworkPolicy
from orrery_core.errors import InfrastructureError, UserError

pytestmark = pytest.mark.e2e

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="needs the rights of root")


def marked(marker: str) -> list[int]:
    """Host processes whose command line contains the marker."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if marker.encode() in words:
            found.append(int(path.parent.name))
    return found


def test_a_command_runs_as_in_a_container(in_sandbox):
    async def body(env):
        result = await env.exec('echo out; echo err >&2; echo "$A $B"; pwd; exit 7', env={"B": "2"})
        assert (result.stdout, result.stderr, result.return_code) == ("out\n1 2\n/app/sub\n", "err\n", 7)
        assert (await env.exec("pwd", cwd="/tmp")).stdout == "/tmp\n"
        assert (await env.exec("kill -9 $$")).return_code == 137
        assert (await env.exec("true", cwd="/nowhere")).return_code == 126
        assert (await env.exec("nonsense-command")).return_code == 127
        assert (await env.exec("hostname; echo $HOME")).stdout == "sandbox\n/root\n"
        record = json.loads((env.trial_paths.trial_dir / "sandbox.json").read_text())["agent"]
        rights = "root" if os.geteuid() == 0 else "user"
        assert record["mode"].startswith(f"sandbox:host:{rights}:netns:")

    in_sandbox(body, "ENV A=1\nWORKDIR /app/sub")


def test_a_command_gets_no_open_file_but_its_own(in_sandbox):
    async def body(env):
        own = (await env.exec("exec ls /proc/self/fd")).stdout.split()
        assert own == ["0", "1", "2", "3"]  # the last is the listed directory
        assert (await env.exec("cat")).stdout == ""

    in_sandbox(body)


def test_mounts_of_host_directories_are_refused(in_sandbox, tmp_path):
    async def body(env):
        raise AssertionError("must not start")

    mount = {"type": "bind", "source": str(tmp_path), "target": "/data"}
    with pytest.raises(UserError, match="no --mounts"):
        in_sandbox(body, options={"mounts": [mount]})
    with pytest.raises(ValueError, match="automatic host mounts"):
        in_sandbox(body, options={"auto_mounting": True})


def test_background_processes_survive_between_commands(in_sandbox):
    async def body(env):
        first = await env.exec("(while :; do echo x; sleep 0.1; done) & echo $! > /tmp/pid; echo started")
        assert first.stdout.startswith("started") or "started" in first.stdout
        assert (await env.exec("kill -0 $(cat /tmp/pid)")).return_code == 0

    in_sandbox(body)


SPAWN = """
    (exec -a m-child sleep 1000) &
    setsid bash -c 'exec -a m-session sleep 1000' &
    (setsid bash -c '(exec -a m-orphan sleep 1000) & exit' &)
    echo ready; (exec -a m-front sleep 1000)
"""
MARKERS = ("m-child", "m-session", "m-orphan", "m-front")


def alive(env) -> list[str]:
    return [marker for marker in MARKERS if marked(marker)]


def test_a_timeout_kills_whatever_the_command_started_and_nothing_else(in_sandbox):
    async def body(env):
        await env.exec("(exec -a m-other sleep 1000) > /dev/null 2>&1 &")
        with pytest.raises(RuntimeError, match="timed out after 1 seconds"):
            await env.exec(SPAWN, timeout_sec=1)
        assert alive(env) == []
        assert marked("m-other")

    in_sandbox(body)
    assert marked("m-other") == []


def test_a_cancellation_kills_whatever_the_command_started(in_sandbox):
    async def body(env):
        ready = asyncio.Event()

        async def listen(text, stream):
            if "ready" in text:
                ready.set()

        async def long():
            with env.scoped_output_callback(listen):
                await env.exec(SPAWN)

        task = asyncio.create_task(long())
        await asyncio.wait_for(ready.wait(), 60)
        assert alive(env)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert alive(env) == []
        assert (await env.exec("echo still here")).stdout == "still here\n"

    in_sandbox(body)


def test_stop_ends_everything_and_can_be_repeated(in_sandbox, sandbox_state):
    async def body(env):
        await env.exec("setsid bash -c 'exec -a m-left sleep 1000' > /dev/null 2>&1 &")
        assert marked("m-left")
        await env.stop(True)
        await env.stop(True)
        assert marked("m-left") == []
        with pytest.raises(InfrastructureError, match="not running"):
            await env.exec("true")

    in_sandbox(body)
    assert not list((sandbox_state / "run").glob("*/t-*"))


def test_the_first_process_cannot_be_killed_from_inside(in_sandbox):
    async def body(env):
        await env.exec("kill -9 1; kill -9 -1; pkill -9 sleep")
        assert (await env.exec("echo alive")).stdout == "alive\n"

    in_sandbox(body)


def test_huge_output_is_streamed_and_kept_in_bounds(in_sandbox):
    async def body(env):
        seen = 0

        async def count(text, stream):
            nonlocal seen
            seen += len(text)

        with env.scoped_output_callback(count):
            result = await env.exec("echo first; head -c 200000000 /dev/zero | tr '\\0' x; echo; echo last")
        assert seen == 200_000_000 + 12
        assert len(result.stdout) < 17 << 20
        assert result.stdout.startswith("first\nx") and result.stdout.endswith("x\nlast\n")
        assert "bytes left out]" in result.stdout

    in_sandbox(body)


def test_the_memory_limit_kills_the_command_and_leaves_the_sandbox(in_sandbox):
    hog = "exec python3 -c 'import time; x = b\"x\" * (400 << 20); time.sleep(60)'"

    async def body(env):
        result = await env.exec(hog, timeout_sec=50)
        assert result.return_code == 137
        assert (await env.exec("echo alive")).stdout == "alive\n"

    in_sandbox(body, memory_mb=150)


def test_without_network_there_is_a_loopback_and_no_route(in_sandbox):
    script = """
import socket
server = socket.create_server(("127.0.0.1", 7777))
socket.create_connection(("127.0.0.1", 7777))
print("loopback")
for target in (("1.1.1.1", 53), ("10.0.0.1", 80), ("169.254.169.254", 80)):
    try: socket.create_connection(target, timeout=5); print("reached", target)
    except OSError as error: print(error.errno)
"""

    async def body(env):
        result = await env.exec(
            f"cat > /tmp/t.py <<'E'\n{script}\nE\npython3 /tmp/t.py; env | grep -ci proxy"
        )
        assert result.stdout == "loopback\n101\n101\n101\n0\n"  # ENETUNREACH
        assert (await env.exec("cat /proc/net/dev | tail -n +3 | cut -d: -f1")).stdout.split() == ["lo"]

    in_sandbox(body)


DIRECT = {"NO_PROXY": "", "no_proxy": ""}
"""Even the loopback through the proxy: the test's server is on the host's."""


def test_network_phases_switch_and_public_cannot_be_closed_later(open_sandbox):
    async def main():
        closed, listed = (
            NetworkPolicy(network_mode=NetworkMode.NO_NETWORK),
            NetworkPolicy(network_mode=NetworkMode.ALLOWLIST, allowed_hosts=["127.0.0.1"]),
        )
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        ask = (
            "python3 -c \"import urllib.request as u; o = u.build_opener(u.ProxyHandler({'http': "
            f"'http://127.0.0.1:3128'}})); print(o.open('http://127.0.0.1:{port}/').read().decode())\""
        )
        async with server, open_sandbox(phases=[listed]) as env:
            assert (await env.exec(ask, env=DIRECT)).return_code == 1
            await env.set_network_policy(listed)
            assert (await env.exec(ask, env=DIRECT)).stdout == "hello\n"
            assert "127.0.0.1:3128" in (await env.exec("echo $HTTPS_PROXY")).stdout
            await env.set_network_policy(closed)
            refused = await env.exec(ask, env=DIRECT)
            assert "403" in refused.stderr
        async with open_sandbox(network="public") as env:
            with pytest.raises(InfrastructureError, match="shared network"):
                await env.set_network_policy(closed)

    asyncio.run(main())


async def answer(reader, writer):
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
    await writer.drain()
    writer.close()


def test_an_allowlist_reaches_what_is_listed_and_nothing_else(open_sandbox):
    async def main():
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        script = f"""
import urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({{"http": "http://127.0.0.1:3128"}}))
for host in ("127.0.0.1", "127.0.0.2", "localhost", "example.com"):
    try: print(host, opener.open(f"http://{{host}}:{port}/", timeout=20).read().decode())
    except Exception as error: print(host, getattr(error, "code", error))
"""
        async with server, open_sandbox(network="allowlist", hosts=["127.0.0.1"]) as env:
            result = await env.exec(f"cat > /tmp/t.py <<'E'\n{script}\nE\npython3 /tmp/t.py", env=DIRECT)
            assert result.stdout.splitlines() == [
                "127.0.0.1 hello",
                "127.0.0.2 403",
                "localhost 403",
                "example.com 403",
            ]
            direct = await env.exec(f"exec 3<>/dev/tcp/127.0.0.1/{port}")
            assert direct.return_code != 0  # the sandbox's own loopback, nobody listens there

    asyncio.run(main())


def test_trees_travel_in_both_directions(in_sandbox, tmp_path):
    source = tmp_path / "source"
    (source / "a/b").mkdir(parents=True)
    (source / "a/b/run.sh").write_text("#!/bin/sh\n")
    (source / "a/b/run.sh").chmod(0o755)
    (source / "link").symlink_to("a/b/run.sh")
    (source / "empty").mkdir()
    (source / "odd name'\n.txt").write_text("odd")

    async def body(env):
        await env.upload_dir(source_dir=source, target_dir="/app/new/place")
        await env.exec("echo more > '/app/new/place/more.txt'; mkfifo /app/new/place/pipe")
        await env.download_dir(source_dir="/app/new/place", target_dir=tmp_path / "back")
        names = {str(p.relative_to(tmp_path / "back")) for p in (tmp_path / "back").rglob("*")}
        assert names == {"a", "a/b", "a/b/run.sh", "link", "empty", "odd name'\n.txt", "more.txt"}
        assert (tmp_path / "back/a/b/run.sh").stat().st_mode & 0o111
        assert (tmp_path / "back/link").readlink() == Path("a/b/run.sh")

        await env.upload_file(source_path=source / "odd name'\n.txt", target_path="/app/one.txt")
        await env.upload_file(source_path=source / "a/b/run.sh", target_path="/app/new")
        assert (await env.exec("cat /app/one.txt; test -x /app/new/run.sh")).return_code == 0
        await env.download_file(source_path="/app/one.txt", target_path=tmp_path / "x/one.txt")
        assert (tmp_path / "x/one.txt").read_text() == "odd"

        await env.download_dir_with_exclusions(
            source_dir="/app/new/place", target_dir=tmp_path / "less", exclude=["*.txt"]
        )
        assert not list((tmp_path / "less").glob("*.txt")) and (tmp_path / "less/a/b/run.sh").exists()
        await env.download_dir_filtered(
            source_dir="/app/new/place",
            target_dir=tmp_path / "some",
            include=["more*"],
            protect=["a/b/run.sh"],
        )
        files = {p.name for p in (tmp_path / "some").rglob("*") if p.is_file()}
        assert files == {"more.txt", "run.sh"}

    in_sandbox(body)


def test_links_planted_inside_never_touch_the_host(in_sandbox, tmp_path):
    secret, victim = tmp_path / "secret", tmp_path / "victim"
    secret.write_text("secret of the host")
    victim.mkdir()

    async def body(env):
        plant = f"""
            mkdir -p /app/out; cd /app/out
            ln -s {secret} abs; ln -s ../../../../../../../../..{secret} climb; ln -s {victim} dir
            ln -s a/../../x chained; ln -s inner ok; echo data > inner; mknod null c 1 3; mkfifo pipe
            ln -s {victim} /app/dirlink; ln -s {secret} /app/file
        """
        await env.exec(plant)
        await env.download_dir(source_dir="/app/out", target_dir=tmp_path / "got")
        assert {p.name for p in (tmp_path / "got").iterdir()} == {"ok", "inner"}
        with pytest.raises(RuntimeError, match="No such file"):
            await env.download_file(source_path="/app/file", target_path=tmp_path / "file")
        assert not (tmp_path / "file").exists()

        (tmp_path / "up").mkdir()
        (tmp_path / "up/f").write_text("x")
        await env.upload_file(source_path=tmp_path / "up/f", target_path="/app/file")
        with pytest.raises(RuntimeError):
            await env.upload_dir(source_dir=tmp_path / "up", target_dir="/app/dirlink")
        assert secret.read_text() == "secret of the host"
        assert list(victim.iterdir()) == []

    in_sandbox(body)


def test_links_on_the_host_are_not_followed_out_of_an_uploaded_tree(in_sandbox, tmp_path):
    (tmp_path / "secret").write_text("secret of the host")
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/link").symlink_to(tmp_path / "secret")

    async def body(env):
        await env.upload_dir(source_dir=tmp_path / "tree", target_dir="/app/tree")
        assert (
            await env.exec("readlink /app/tree/link; cat /app/tree/link")
        ).stdout == f"{tmp_path}/secret\n"

    in_sandbox(body)


def test_a_download_that_never_ends_is_cut(in_sandbox, tmp_path, monkeypatch):
    monkeypatch.setattr("orrery.environments.base.MAX_BYTES", 10 << 20)

    async def body(env):
        await env.exec("truncate -s 1T /app/sparse; ln -s /dev/zero /app/zero")
        for path in ("/app/sparse", "/app/zero"):
            with pytest.raises(RuntimeError, match="refused"):
                await env.download_file(source_path=path, target_path=tmp_path / "x")
        with pytest.raises(RuntimeError, match="refused"):
            await env.download_dir(source_dir="/app", target_dir=tmp_path / "d")

    in_sandbox(body, "WORKDIR /app")


def test_the_host_is_not_visible(in_sandbox, tmp_path):
    async def body(env):
        listing = (await env.exec("ls -A /home /root /var/lib /opt /mnt /srv; ls -A /tmp")).stdout
        assert str(tmp_path.name) not in listing
        assert (await env.exec(f"ls {tmp_path}")).return_code != 0
        assert (await env.exec(f"ls {Path(__file__).parent}")).return_code != 0
        for path in ("/etc/machine-id", "/etc/ssh", "/etc/pip.conf", "/etc/sudoers", "/sys/kernel"):
            assert (await env.exec(f"test -e {path}")).return_code != 0, path
        assert (await env.exec("tr '\\0' '\\n' < /proc/1/environ")).stdout.count("\n") <= 2

    in_sandbox(body)


def test_nothing_in_proc_can_be_written_and_bindings_stay_read_only(in_sandbox):
    async def body(env):
        for path in (
            "sys/kernel/core_pattern",
            "sys/kernel/hostname",
            "sysrq-trigger",
            "irq/default_smp_affinity",
        ):
            tried = await env.exec(f"cat /proc/{path} > /tmp/v 2>/dev/null; cat /tmp/v > /proc/{path}")
            assert tried.return_code != 0, path
        for attempt in (
            "touch /opt/orrery/src/orrery_core/x",
            "mount -o remount,rw /opt/orrery/src/orrery_core",
            "umount /opt/orrery/site",
            "mknod /tmp/disk b 254 0",
            "mount -t tmpfs none /mnt",
        ):
            assert (await env.exec(attempt)).return_code != 0, attempt

    in_sandbox(body)


def test_the_trusted_parts_among_the_processes_are_out_of_reach(in_sandbox):
    # A supervisor runs the host's interpreter: through /proc/<pid>/exe a root inside could overwrite it.
    async def body(env):
        result = await env.exec(
            "for p in /proc/[0-9]*; do test -n \"$(tr -d '\\0' < $p/cmdline)\" && continue; cat $p/comm; "
            "for f in exe mem environ fd/1 root/etc; do (: < $p/$f) 2> /dev/null && echo open $f; done; "
            "(: >> $p/exe) 2> /dev/null && echo write; done; exit 0"
        )
        assert result.stdout == "orrery-exec\n"

    in_sandbox(body)


def test_the_tooling_of_the_image_works_at_neutral_places(in_sandbox):
    async def body(env):
        help_text = await env.exec("orrery-worldedit --help", cwd="/app")
        assert help_text.return_code == 0 and "usage: orrery-worldedit" in help_text.stdout
        evil = await env.exec("echo 'print(\"hijacked\")' > pydantic.py; orrery-worldedit --help", cwd="/app")
        assert "hijacked" not in evil.stdout
        shown = await env.exec("cat /usr/local/bin/orrery-worldedit; mount | grep -c /opt/orrery/src/")
        assert "/opt/orrery/" in shown.stdout and "/work" not in shown.stdout
        assert (await env.exec("bwrap --version")).stdout.startswith("bubblewrap 0.")

    in_sandbox(body, "WORKDIR /app")


def test_dockerfile_steps_are_carried_out(in_sandbox):
    async def body(env):
        assert (await env.exec("cat one; cat sub/f; cat /data/two; ls -a sub")).stdout.split() == [
            "one", "f", "two", ".", "..", "f",
        ]  # fmt: skip
        assert (await env.exec("stat -c %a /data/two; stat -c %a /tmp")).stdout == "600\n1777\n"

    in_sandbox(
        body,
        "WORKDIR /app/w\nCOPY one .\nCOPY tree/ sub\nCOPY --chmod=600 two /data/\nCOPY two /tmp/t",
        files={
            "one": "one\n",
            "two": "two\n",
            "tree/f": "f\n",
            "tree/.secret": "s",
            ".dockerignore": "**/.secret\n",
        },
    )


def test_run_steps_are_built_once_and_kept(open_sandbox):
    recipe = "WORKDIR /app\nRUN echo built && date +%N > stamp && rm -rf /srv"

    async def stamp(**settings):
        async with open_sandbox(recipe, **settings) as env:
            assert (await env.exec("test -e /srv")).return_code == 1
            return (await env.exec("cat stamp; echo mine > stamp")).stdout

    async def main():
        first = await stamp()
        assert await stamp() == first
        assert await stamp(force_build=True) != first
        with pytest.raises(UserError, match=r"Dockerfile:3: RUN ended with exit code 3\nsorry"):
            async with open_sandbox("\nRUN echo sorry; exit 3"):
                pass

    asyncio.run(main())


def test_an_unknown_image_is_refused_by_line(open_sandbox):
    async def main():
        with pytest.raises(UserError, match=r"Dockerfile:1: the sandbox does not know the image 'python:3'"):
            async with open_sandbox(image="python:3"):
                pass

    asyncio.run(main())


def test_a_missing_tool_is_told_at_the_start(open_sandbox, monkeypatch):
    def missing():
        raise InfrastructureError("no Luanti server found", mend="apt-get install it")

    monkeypatch.setitem(sys.modules["orrery.environments.profiles"].HOST_TOOLS, "luanti", missing)

    async def main():
        with pytest.raises(InfrastructureError, match="no Luanti server"):
            async with open_sandbox():
                pass

    asyncio.run(main())


def test_a_full_disk_is_told_at_the_start(open_sandbox):
    async def main():
        with pytest.raises(InfrastructureError, match="MiB are free on the disk of"):
            async with open_sandbox(storage_mb=1 << 40):
                pass

    asyncio.run(main())


def test_a_root_that_is_not_unpacked_is_refused(open_sandbox):
    async def main():
        with pytest.raises(InfrastructureError, match="is not unpacked"):
            async with open_sandbox(options={"profile": "rootfs"}):
                pass
        with pytest.raises(ValueError, match="profile"):
            async with open_sandbox(options={"profile": "other"}):
                pass

    asyncio.run(main())


PROGRAMS = ("bash", "sh", "ls", "cat", "mkdir", "chmod", "tar", "rm", "dirname", "sleep", "touch")


@pytest.fixture
def unpacked(sandbox_state):
    """A root directory with a few programs, as if an image had been unpacked."""
    root = sandbox_state / "rootfs" / "orrery-luanti-agent-1"
    for name in ("usr/bin", "usr/local/bin", "etc", "proc", "dev", "app"):
        (root / name).mkdir(parents=True)
    for name in ("bin", "lib", "lib64"):
        (root / name).symlink_to(f"usr/{name}")
    wanted = {f"/usr/bin/{name}" for name in PROGRAMS}
    for program in sorted(wanted):
        listing = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
        wanted |= {word for word in listing.split() if word.startswith("/")}
    for name in wanted:
        place = root / "usr" / Path(name).relative_to("/").as_posix().removeprefix("usr/")
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(name, place)
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/bash\n")
    (root / "etc/only-here").write_text("image\n")
    yield root
    shutil.rmtree(root)


def test_an_unpacked_root_is_used_as_it_is(open_sandbox, unpacked):
    async def main():
        with pytest.raises(InfrastructureError, match="lacks the command orrery-worldedit"):
            async with open_sandbox(options={"profile": "rootfs"}):
                pass
        (unpacked / "usr/local/bin/orrery-worldedit").write_text("#!/bin/sh\necho own\n")
        (unpacked / "usr/local/bin/orrery-worldedit").chmod(0o755)
        async with open_sandbox("COPY f .", files={"f": "copied\n"}, options={"profile": "rootfs"}) as env:
            result = await env.exec("cat /etc/only-here f; orrery-worldedit; ls /usr; touch /usr/new")
            assert result.stdout.split() == ["image", "copied", "own", "bin", "lib", "lib64", "local"]
            assert result.return_code == 0
            record = json.loads((env.trial_paths.trial_dir / "sandbox.json").read_text())["agent"]
            assert record["mode"].startswith("sandbox:rootfs:")
        assert not (unpacked / "usr/new").exists()

    asyncio.run(main())


def test_preflight_passes_here_and_says_why_elsewhere(sandbox_state, monkeypatch):
    from orrery.environments.sandbox import SandboxEnvironment

    monkeypatch.setenv("ORRERY_STATE", str(sandbox_state))
    SandboxEnvironment.preflight({})
    monkeypatch.setattr("orrery.environments.boot.find_bwrap", lambda: Path("/bin/false"))
    with pytest.raises(SystemExit, match="the sandbox environment cannot run here"):
        SandboxEnvironment.preflight({})


RUNNER = """
import asyncio, sys
from pathlib import Path
from harbor.models.task.config import EnvironmentConfig, NetworkPolicy
from harbor.models.trial.paths import TrialPaths
from orrery.environments.sandbox import SandboxEnvironment

async def main():
    definition, trial = Path(sys.argv[1]), Path(sys.argv[2])
    env = SandboxEnvironment(definition, "t", "t__a__env", TrialPaths(trial), EnvironmentConfig(),
                             network_policy=NetworkPolicy(network_mode="no-network"))
    await env.start(False)
    async def tell(text, stream):
        print(text, flush=True)
    with env.scoped_output_callback(tell):
        await env.exec("setsid bash -c 'exec -a m-killed sleep 999' & echo ready; exec -a m-killed sleep 99")

asyncio.run(main())
"""


def test_a_killed_runner_leaves_no_process_and_the_next_start_sweeps(
    tmp_path, sandbox_state, open_sandbox, monkeypatch
):
    (tmp_path / "d").mkdir()
    (tmp_path / "t").mkdir()
    (tmp_path / "d/Dockerfile").write_text("FROM orrery/luanti-agent:1\n")
    runner = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(RUNNER), tmp_path / "d", tmp_path / "t"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert runner.stdout.readline() == "ready\n"
    while len(inside := marked("m-killed")) < 2:
        assert runner.poll() is None
    handles = [os.pidfd_open(pid) for pid in inside]
    left = next((sandbox_state / "run").glob(f"{runner.pid}-*"))
    runner.send_signal(signal.SIGKILL)
    runner.wait()
    for handle in handles:  # readable once the process has ended
        assert asyncio.run(ended(handle))
        os.close(handle)
    assert marked("m-killed") == []
    assert left.exists()

    # A fresh process would start with an empty memory of its own run directory.
    monkeypatch.setattr("orrery.environments.state._current", {})

    async def main():
        async with open_sandbox():
            assert not left.exists()
            assert not list(Path("/sys/fs/cgroup").glob(f"**/orrery-{runner.pid}-*"))

    asyncio.run(main())


async def ended(handle: int) -> bool:
    done = asyncio.Event()
    asyncio.get_running_loop().add_reader(handle, done.set)
    await asyncio.wait_for(done.wait(), 30)
    return True


@root_only
def test_users_of_the_image(in_sandbox):
    async def body(env):
        assert (await env.exec("id -un; pwd; echo $HOME; id -Gn")).stdout.split() == [
            "worker", "/app", "/home/worker", "worker", "crew",
        ]  # fmt: skip
        assert (await env.exec("id -u", user="root")).stdout == "0\n"
        assert (await env.exec("id -u; id -g", user="1234:77")).stdout == "1234\n77\n"
        assert (await env.exec("grep CapEff /proc/self/status")).stdout.split()[1] == "0" * 16
        assert (await env.exec("touch /usr/x")).return_code != 0
        with env.with_default_user("nobody"):
            assert (await env.exec("id -un")).stdout == "nobody\n"
        assert (await env.exec("cat owned && stat -c %U owned")).stdout == "mine\nworker\n"
        with pytest.raises(UserError, match="no user 'stranger'"):
            await env.exec("true", user="stranger")

    dockerfile = (
        "RUN groupadd crew && useradd -m -G crew worker\n"
        "WORKDIR /app\nCOPY --chown=worker owned .\nUSER worker"
    )
    in_sandbox(body, dockerfile, files={"owned": "mine\n"})


@root_only
def test_capabilities_are_those_of_a_container(in_sandbox):
    async def body(env):
        rows = dict(
            line.split() for line in (await env.exec("grep ^Cap /proc/self/status")).stdout.splitlines()
        )
        kept = sum(1 << bit for bit in (0, 1, 3, 4, 5, 6, 7, 8, 10, 18, 31))
        assert int(rows["CapEff:"], 16) == int(rows["CapBnd:"], 16) == kept
        assert int(rows["CapInh:"], 16) == int(rows["CapAmb:"], 16) == 0

    in_sandbox(body)


@root_only
def test_limits_are_control_groups_and_vanish_with_the_sandbox(in_sandbox):
    groups = []

    async def body(env):
        groups.extend(Path("/sys/fs/cgroup").glob(f"**/orrery-{os.getpid()}-*"))
        limit = next(
            path
            for path in groups
            if (path / "memory.limit_in_bytes").exists() or (path / "memory.max").exists()
        )
        name = "memory.limit_in_bytes" if (limit / "memory.limit_in_bytes").exists() else "memory.max"
        assert int((limit / name).read_text()) == 300 << 20

    in_sandbox(body, memory_mb=300, cpus=1.5)
    assert groups and not any(path.exists() for path in groups)


def test_bubblewrap_nests(in_sandbox):
    inner = "bwrap --unshare-user --unshare-pid --unshare-net --ro-bind /usr /usr --symlink usr/bin /bin "
    inner += "--symlink usr/lib /lib --symlink usr/lib64 /lib64 --tmpfs /proc --dev /dev --tmpfs /tmp "

    async def body(env):
        result = await env.exec(
            inner + "sh -c 'ls -A /proc /opt /app 2> /dev/null; touch /tmp/x && echo ran'"
        )
        assert result.stdout == "/proc:\nran\n", result.stderr

    in_sandbox(body)


def test_a_fork_storm_ends_at_the_timeout(in_sandbox):
    async def body(env):
        with pytest.raises(RuntimeError, match="timed out"):
            await env.exec("for i in $(seq 300); do (exec -a m-storm sleep 1000) & done; wait", timeout_sec=2)
        assert marked("m-storm") == []
        assert (await env.exec("echo alive")).stdout == "alive\n"

    in_sandbox(body)


@root_only
def test_a_verifier_can_isolate_a_submission_inside(in_sandbox):
    inner = (
        "setpriv --reuid 65532 --regid 65532 --clear-groups bwrap --unshare-user --unshare-pid --unshare-ipc "
        "--ro-bind /usr /usr --symlink usr/bin /bin --symlink usr/lib /lib --symlink usr/lib64 /lib64 "
    )

    async def body(env):
        empty = await env.exec(inner + "--tmpfs /proc --dev /dev sh -c 'id -u; ls -A /proc; ls /app'")
        assert empty.stdout == "65532\n", empty.stderr
        await env.exec("SECRET=hidden exec -a judge sleep 1000 >/dev/null 2>&1 &")
        seen = await env.exec(
            "(SECRET=hidden exec -a judge sleep 1000 >/dev/null 2>&1 &) ; "
            + inner
            + "--bind /proc /proc --dev /dev sh -c "
            + "'cat /proc/*/environ /proc/*/maps; ls /proc/*/fd /proc/*/root/' 2>/dev/null"
        )
        assert "hidden" not in seen.stdout and "sleep" not in seen.stdout
        fresh = await env.exec(inner + "--proc /proc --dev /dev true")
        assert fresh.return_code != 0  # refused by the kernel: parts of the outer /proc are covered

    in_sandbox(body)


@root_only
def test_a_hostile_root_inside_gains_nothing_from_replacing_programs(in_sandbox):
    # The next command must not run any of these with the host's rights.
    async def body(env):
        await env.exec(
            "printf '#!/bin/bash\\ngrep CapEff /proc/$$/status > /tmp/caps\\n' > /tmp/evil; "
            "chmod 755 /tmp/evil; for p in setpriv nsenter env sh id; do cp /tmp/evil /usr/bin/$p; done; "
            "rm /etc/passwd"
        )
        assert (await env.exec("echo fine", user="0")).stdout == "fine\n"
        assert (await env.exec("test -e /tmp/caps")).return_code == 1

    in_sandbox(body)
