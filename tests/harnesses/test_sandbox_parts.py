"""Pure parts of the sandbox: accounts, options, limits, output bounds, state."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from orrery.environments import limits, profiles
from orrery.environments.boot import Bind, Overlay, View, bwrap_arguments
from orrery.environments.launcher import Account, NoSuchUser, find_account
from orrery.environments.limits import Limits, make_groups
from orrery.environments.output import Capture, HeadTail
from orrery.environments.processes import descendants, kill_tree
from orrery.environments.profiles import Layers
from orrery.environments.state import RunDirectory, require_space, state_dir
from orrery.images import ImageFile
from orrery_core.errors import InfrastructureError, UserError

PASSWD = "root:x:0:0:root:/root:/bin/bash\nworker:x:1000:1001::/home/worker:/bin/sh\nbroken\n"
GROUP = "root:x:0:\nworkers:x:1001:\ncrew:x:50:a,worker\n"


@pytest.mark.parametrize(
    ("user", "account"),
    [
        ("root", Account(0, 0, (), "/root")),
        ("worker", Account(1000, 1001, (50,), "/home/worker")),
        ("1000", Account(1000, 1001, (50,), "/home/worker")),
        ("worker:crew", Account(1000, 50, (), "/home/worker")),
        ("77", Account(77, 0, (), "/")),
        ("77:88", Account(77, 88, (), "/")),
    ],
)
def test_accounts(user, account):
    assert find_account(PASSWD, GROUP, user) == account


def test_unknown_accounts():
    assert find_account("", "", "root").uid == 0
    for user in ("stranger", "root:strangers"):
        with pytest.raises(NoSuchUser):
            find_account(PASSWD, GROUP, user)


def test_options_of_bubblewrap():
    view = View(
        (Overlay((Path("/a"), Path("/b")), "/", Path("/s")), Overlay((Path("/usr"),), "/usr", None)),
        (Bind(Path("/c"), "/opt/c"),),
    )
    text = " ".join(bwrap_arguments(view, share_network=False, single_uid=True))
    assert (
        "--overlay-src /a --overlay-src /b --overlay /s/up /s/work / --overlay-src /usr --ro-overlay /usr"
        in text
    )
    assert "--unshare-net" in text and "--unshare-user --uid 0 --gid 0" in text
    assert "--die-with-parent" in text and "--cap-drop ALL" in text
    assert "--ro-bind /c /opt/c" in text and "--ro-bind /proc/sys /proc/sys" in text
    shared = bwrap_arguments(view, share_network=True, single_uid=False)
    assert "--unshare-net" not in shared and "--unshare-user" not in shared


def test_built_layers_go_on_top_of_what_is_writable(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    layers = Layers({"/": (Path("/skeleton"),), "/usr": (Path("/usr"),)}).over(Path("/cache/k"))
    assert layers.lowers == {"/": (Path("/skeleton"), Path("/cache/k/root/up")), "/usr": (Path("/usr"),)}
    root, usr = layers.view(Path("/stores")).overlays
    assert (root.store, usr.store) == (Path("/stores/root"), None)


def test_wrappers_name_neutral_places_only():
    text = profiles.wrapper("orrery_worldedit", "/opt/orrery/python/bin/python3.12")
    assert "exec /opt/orrery/python/bin/python3.12 -P -m orrery_worldedit" in text
    assert str(Path(sys.base_prefix)) not in text


def test_unknown_tools_are_refused():
    with pytest.raises(UserError, match="unknown tool 'nonsense'"):
        profiles.require_host_tools(ImageFile(name="x", tools=("nonsense",)))


def test_packages_that_are_not_installed_are_refused():
    with pytest.raises(InfrastructureError, match="orrery_nonsense is not installed"):
        profiles.host_binds(ImageFile(name="x", packages=("orrery_nonsense",)))


def fake_hierarchy(root: Path, monkeypatch: pytest.MonkeyPatch, files: tuple[str, ...]) -> None:
    """Directories made below `root` get the control files that a kernel would put there."""
    mkdir = Path.mkdir

    def kernel(self, *args, **kwargs):
        mkdir(self, *args, **kwargs)
        if self.is_relative_to(root):
            for name in files:
                (self / name).write_text("")

    monkeypatch.setattr(Path, "mkdir", kernel)
    monkeypatch.setattr(limits.os, "geteuid", lambda: 0)


def test_control_groups_of_version_2(tmp_path, monkeypatch):
    (tmp_path / "cgroup.subtree_control").write_text("cpu")
    fake_hierarchy(
        tmp_path, monkeypatch, ("memory.max", "memory.swap.max", "cpu.max", "pids.max", "cgroup.procs")
    )
    groups = make_groups("n", Limits(100, 1.5), mounts=f"cgroup2 {tmp_path} cgroup2 rw 0 0")
    assert groups is not None and groups.kind == "cgroup2"
    (group,) = groups.paths
    assert group == tmp_path / "orrery-n"
    assert (group / "memory.max").read_text() == str(100 << 20)
    assert (group / "cpu.max").read_text() == "150000 100000"
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+memory +pids"


def test_no_half_enforced_limits(tmp_path, monkeypatch):
    (tmp_path / "cgroup.subtree_control").write_text("cpu memory pids")
    fake_hierarchy(tmp_path, monkeypatch, ("cpu.max", "pids.max"))
    mounts = f"cgroup2 {tmp_path} cgroup2 rw 0 0"
    assert make_groups("n", Limits(100, None), mounts) is None
    assert make_groups("m", Limits(None, 2), mounts) is not None
    assert make_groups("o", Limits(None, None), "") is None
    monkeypatch.setattr(limits.os, "geteuid", lambda: 1000)
    assert make_groups("p", Limits(None, 2), mounts) is None


def test_affinity(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {2, 3, 5, 7})
    assert limits.affinity(None) == limits.affinity(4) == []
    assert len(limits.affinity(1.5)) == 2
    assert limits.affinity(1) != limits.affinity(1)


def test_head_and_tail():
    kept = HeadTail(10)
    for chunk in (b"abc", b"defgh", b"ijklmnop", b"qr"):
        kept.add(chunk)
    assert kept.text() == "abcde\n[orrery: 8 bytes left out]\nnopqr"
    short = HeadTail(10)
    short.add(b"abcdefghij")
    assert short.text() == "abcdefghij"


def test_characters_split_between_chunks_reach_the_callback_whole():
    seen = []

    async def callback(text, stream):
        seen.append(text)

    async def main():
        output = Capture(callback)
        for byte in "é€".encode():
            await output.write(bytes([byte]), "stdout")
        assert output.stdout == "é€"

    asyncio.run(main())
    assert seen == ["é", "€"]


def test_a_tree_is_killed_with_its_root_and_no_shell_goes_on(tmp_path):
    script = f"(sleep 1000; touch {tmp_path}/inner) & sleep 1000; touch {tmp_path}/outer"
    process = subprocess.Popen(["bash", "-c", script])
    while len(descendants(process.pid)) < 3:
        os.sched_yield()
    assert kill_tree(process.pid)
    assert process.wait() == -9
    assert list(tmp_path.iterdir()) == []


def test_state_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("ORRERY_STATE", str(tmp_path / "s"))
    assert state_dir() == tmp_path / "s" and (tmp_path / "s").is_dir()
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ORRERY_STATE", str(tmp_path / "file/x"))
    with pytest.raises(InfrastructureError, match="set ORRERY_STATE"):
        state_dir()
    with pytest.raises(InfrastructureError, match="MiB are free"):
        require_space(tmp_path, 1 << 40)


def test_directories_of_dead_processes_are_swept_and_those_of_living_ones_stay(tmp_path):
    living = RunDirectory(tmp_path)
    dead = tmp_path / "run/1-dead/t-x/stores/root/work/work"
    dead.mkdir(parents=True)
    dead.chmod(0)
    fresh = RunDirectory(tmp_path)
    assert not (tmp_path / "run/1-dead").exists()
    assert living.path.exists() and fresh.path.exists()
