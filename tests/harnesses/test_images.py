"""Descriptions of base images, the layer that is staged from them, and what makes a copy outdated."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from engine_support import need_engine
from orrery import images
from orrery.environments.engine_service import connect
from orrery.images import content, files
from orrery.images.content import content_hash, stage
from orrery_core.errors import InfrastructureError, UserError


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of images/ that a test may change."""
    copy = tmp_path / "images"
    shutil.copytree(files.images_directory(), copy)
    monkeypatch.setattr(files, "images_directory", lambda: copy)
    return copy


@pytest.mark.parametrize("name", sorted(images.known_images()))
def test_every_image_starts_from_a_root_and_stages(name: str, tmp_path: Path) -> None:
    assert images.root_of(name) in images.known_roots()
    stage(name, tmp_path)
    described = images.image_file(name)
    sources = tmp_path / "opt/orrery/src"
    assert {path.name for path in sources.iterdir()} == set(described.packages)
    assert not list(sources.rglob("__pycache__"))
    for command in described.commands:
        wrapper = tmp_path / "usr/local/bin" / command
        assert os.access(wrapper, os.X_OK)
        module = sources / command.replace("-", "_") / "__main__.py"
        assert module.exists(), f"{name}: the command {command} has no module to run"
    assert (tmp_path / "logs/verifier").stat().st_mode & 0o777 == 0o777


def test_unknown_names_are_refused_with_the_choice() -> None:
    with pytest.raises(UserError, match="orrery/luanti-agent:1"):
        images.build(["luanti-agnet"])


def test_short_names_mean_the_image() -> None:
    for name in ("luanti-agent", "orrery/luanti-agent", "orrery/luanti-agent:1"):
        assert files.full_name(name) == "orrery/luanti-agent:1"


def test_a_mistake_in_a_description_names_the_file(library: Path) -> None:
    (library / "luanti-agent/image.toml").write_text('name = "orrery/x:1"\ntoolz = []\n')
    with pytest.raises(UserError, match=r"luanti-agent/image\.toml.*"):
        images.known_images()


def test_whatever_is_built_in_changes_the_hash(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "orrery/luanti-verifier:1"
    before = content_hash(name)
    assert content_hash(name) == before
    with (library / "debian-luanti/root.toml").open("a") as file:
        file.write("# another root\n")
    root_changed = content_hash(name)
    with (library / "luanti-verifier/Dockerfile").open("a") as file:
        file.write("ENV X=1\n")
    recipe_changed = content_hash(name)
    source = library / "source.py"
    source.write_text("one")
    monkeypatch.setattr(content, "_package_files", lambda _package: [(source, Path("p/source.py"))])
    one = content_hash(name)
    source.write_text("two")
    assert len({before, root_changed, recipe_changed, one, content_hash(name)}) == 5


def test_a_missing_tool_is_named_with_its_mend(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from orrery.images.roots import debian_archive

    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InfrastructureError, match="setup-engine"):
        debian_archive(files.root_file("orrery/debian-luanti:1"), tmp_path / "x.tar", print)


@pytest.mark.e2e
@pytest.mark.engine
def test_a_changed_source_rebuilds_the_layer_and_nothing_else(library: Path) -> None:
    need_engine()
    name, said = "orrery/luanti-agent:1", []
    images.build([name], report=said.append)
    root = connect().client.images.get("docker.io/orrery/debian-luanti:1").id
    recipe = library / "luanti-agent/Dockerfile"
    original = recipe.read_text()
    recipe.write_text(original + "ENV ORRERY_TEST=1\n")
    states = {state.name: state.state for state in images.list_images()}
    assert states["orrery/debian-luanti:1"] == "current" and states[name] == "stale"
    try:
        assert images.build([name], report=said.append) == [name]
        assert {state.name: state.state for state in images.list_images()}[name] == "current"
        assert connect().client.images.get("docker.io/orrery/debian-luanti:1").id == root
    finally:
        shutil.copy(
            files.Path(__file__).parents[2] / "images/luanti-agent/Dockerfile", library / "luanti-agent"
        )
        images.build([name], report=said.append)


@pytest.mark.e2e
@pytest.mark.engine
def test_a_missing_root_is_an_error_with_the_mend(library: Path) -> None:
    need_engine()
    with (library / "debian-luanti/root.toml").open("a") as file:
        file.write("# not what the engine has\n")
    with pytest.raises(InfrastructureError, match="orrery images build"):
        images.ensure(connect(), "orrery/luanti-agent:1", print)


@pytest.mark.e2e
@pytest.mark.engine
def test_the_verifier_image_has_a_server_a_gate_and_our_command() -> None:
    need_engine()
    images.build(["luanti-verifier"])
    check = (
        "set -e; /usr/libexec/luanti/luantiserver --version | head -1; orrery-worldedit --help | head -1;"
        "PYTHONPATH=/opt/orrery/src python3 -c 'from orrery_worldedit.games.luanti import gate, install;"
        " print(gate.library().parent, install.find_install().gate_mode)'"
    )
    output = connect().client.containers.run(
        "docker.io/orrery/luanti-verifier:1", ["bash", "-c", check], network_mode="none", remove=True
    )
    lines = output.decode().splitlines()
    assert lines[0].startswith("Luanti 5.")
    assert lines[1].startswith("usage: orrery-worldedit")
    assert lines[2] == "/opt/orrery/lib 510"


@pytest.mark.e2e
@pytest.mark.full
@pytest.mark.skipif(shutil.which("mmdebstrap") is None, reason="no mmdebstrap: scripts/setup-engine")
def test_a_root_file_system_is_unpacked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from orrery.environments.state import rootfs_dir

    monkeypatch.setenv("ORRERY_STATE", str(tmp_path))
    assert images.build(["luanti-verifier"], rootfs=True) == ["orrery/luanti-verifier:1"]
    assert images.build(["luanti-verifier"], rootfs=True) == []
    tree = rootfs_dir("orrery/luanti-verifier:1")
    done = subprocess.run(
        ["chroot", tree, "/usr/local/bin/orrery-worldedit", "--help"], capture_output=True, text=True
    )
    assert done.stdout.startswith("usage: orrery-worldedit"), done.stderr


@pytest.mark.e2e
@pytest.mark.skipif(os.geteuid() != 0, reason="only root's mmdebstrap mounts outside of a user namespace")
def test_a_killed_build_leaves_no_mount_and_no_process(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys; from orrery.images.roots import contained;"
        "subprocess.run([*contained(), 'sh', '-c', sys.argv[1]])"
    )
    script = f"mount -t tmpfs none {tmp_path} && touch {tmp_path}/inside && echo ready && sleep 1000"
    builder = subprocess.Popen([sys.executable, "-c", code, script], stdout=subprocess.PIPE, text=True)
    assert builder.stdout is not None
    assert builder.stdout.readline() == "ready\n"
    assert not (tmp_path / "inside").exists(), "the mount is visible to this machine"
    builder.kill()
    builder.wait()
    assert builder.stdout.read() == "", "the pipe closes when the last process of the build has ended"
    builder.stdout.close()
    assert str(tmp_path) not in Path("/proc/self/mountinfo").read_text()
