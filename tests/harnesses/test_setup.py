"""`scripts/setup` without installing anything: how it finds an interpreter, what it says when it cannot."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = ("sh", "dirname", "cat", "cksum", "mkdir", "rm", "sleep", "grep", "ls", "env")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of what the script reads, with a folder `bin` of tools in front of PATH."""
    place = tmp_path / "checkout"
    for name in ("scripts", "requirements", "harnesses", "verifiers/core", "bin", "home"):
        (place / name).mkdir(parents=True)
    for name in (
        "scripts/setup",
        "scripts/apt.sh",
        "pyproject.toml",
        "harnesses/pyproject.toml",
        "verifiers/core/pyproject.toml",
    ):
        shutil.copy(ROOT / name, place / name)
    for name in ("requirements/base.txt", "requirements/dev.txt"):
        (place / name).touch()
    return place


def tool(checkout: Path, name: str, text: str) -> Path:
    path = checkout / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def setup(checkout: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {
        "PATH": f"{checkout}/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": str(checkout / "home"),
        "PYENV_ROOT": str(checkout / "pyenv"),
        **variables,
    }
    return subprocess.run(
        ["scripts/setup", *arguments],
        cwd=checkout,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_an_unknown_option_is_usage(checkout: Path) -> None:
    result = setup(checkout, "--prod")
    assert result.returncode == 2
    assert "the only one is --dev" in result.stderr


def needs_system_packages() -> None:
    servers = ("/usr/libexec/luanti/luantiserver", "/usr/lib/minetest/minetestserver")
    if not any(os.access(server, os.X_OK) for server in servers):
        pytest.skip("the system packages are not installed here")


def test_candidates_are_run_and_a_shim_that_fails_is_passed_over(checkout: Path) -> None:
    needs_system_packages()
    for name in ("python3.14", "python3.13", "python3.12", "python3"):
        tool(checkout, f"bin/{name}", "exit 127")
    tool(checkout, "pyenv/versions/3.12.0-broken/bin/python3", "exit 1")
    good = tool(checkout, "pyenv/versions/3.13.9/bin/python3", '[ "$1" = -c ] && exit 0\nexit 9')
    result = setup(checkout)
    assert f"using {good}" in result.stderr
    assert result.returncode == 3
    assert "cannot make a virtual environment here" in result.stderr


def test_the_named_interpreter_comes_before_all_others(checkout: Path) -> None:
    needs_system_packages()
    tool(checkout, "bin/python3.14", '[ "$1" = -c ] && exit 0\nexit 9')
    mine = tool(checkout, "mine/python", '[ "$1" = -c ] && exit 0\nexit 9')
    assert f"using {mine}" in setup(checkout, ORRERY_PYTHON=str(mine)).stderr
    assert "using " + str(checkout / "bin/python3.14") in setup(checkout).stderr


def test_a_named_interpreter_that_does_not_fit_is_refused(checkout: Path) -> None:
    needs_system_packages()
    old = tool(checkout, "mine/python", "exit 1")
    result = setup(checkout, ORRERY_PYTHON=str(old))
    assert result.returncode == 3
    assert f"ORRERY_PYTHON={old} is not a Python from 3.12 on" in result.stderr
    assert "mend: name another, or unset it" in result.stderr


def test_a_home_that_cannot_be_written_is_said(checkout: Path) -> None:
    needs_system_packages()
    (checkout / "home").rmdir()
    (checkout / "home").touch()
    result = setup(checkout)
    assert result.returncode == 3
    assert "cannot be written" in result.stderr
    assert "XDG_CACHE_HOME" in result.stderr


def test_an_ordinary_user_gets_the_exact_command(checkout: Path) -> None:
    for name in TOOLS:
        (checkout / "bin" / name).symlink_to(shutil.which(name) or "/nonexistent")
    tool(checkout, "bin/id", "echo 1000")
    tool(checkout, "bin/apt-get", "exit 1")
    tool(checkout, "bin/apt-cache", '[ "$2" = luanti-server ]')
    result = setup(checkout, PATH=str(checkout / "bin"))
    assert result.returncode == 3
    command = result.stderr.split("mend: ")[1]
    assert command.startswith("sudo apt-get update && sudo apt-get install --no-install-recommends -y ")
    assert {"gcc"} <= set(command.split())
    assert not (checkout / ".venv").exists()


def apt_get(checkout: Path, *arguments: str, waits: int = 5) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-euc", '. scripts/apt.sh; apt_get "$@"', "sh", *arguments],
        cwd=checkout,
        env={
            "PATH": f"{checkout}/bin:/usr/bin:/bin",
            "ORRERY_APT_WAITS": str(waits),
            "ORRERY_APT_PAUSE": "0",
        },
        capture_output=True,
        text=True,
        timeout=60,
    )


LOCKED = "echo 'E: Could not get lock /var/lib/apt/lists/lock. Held by process 7' >&2; exit 100"


def test_a_lock_that_another_program_holds_is_waited_for(checkout: Path) -> None:
    calls = checkout / "calls"
    tool(checkout, "bin/apt-get", f'echo "$*" >>{calls}; [ "$(wc -l <{calls})" -ge 3 ] && exit 0\n{LOCKED}')
    result = apt_get(checkout, "update")
    assert result.returncode == 0, result.stderr
    assert calls.read_text() == "-q -o DPkg::Lock::Timeout=300 update\n" * 3
    assert result.stderr.count("waiting for it") == 2
    assert result.stdout == ""


def test_a_lock_that_is_never_freed_ends_with_the_message_of_apt_get(checkout: Path) -> None:
    tool(checkout, "bin/apt-get", LOCKED)
    result = apt_get(checkout, "install", "gcc", waits=2)
    assert result.returncode == 100
    assert result.stderr.count("Held by process 7") == 3


def test_any_other_failure_of_apt_get_is_not_repeated(checkout: Path) -> None:
    calls = checkout / "calls"
    tool(checkout, "bin/apt-get", f"echo called >>{calls}; echo 'E: Unable to locate package' >&2; exit 100")
    result = apt_get(checkout, "install", "nothing")
    assert result.returncode == 100
    assert calls.read_text() == "called\n"
    assert "Unable to locate" in result.stderr


def test_without_apt_the_needs_are_named(checkout: Path) -> None:
    for name in TOOLS:
        (checkout / "bin" / name).symlink_to(shutil.which(name) or "/nonexistent")
    result = setup(checkout, PATH=str(checkout / "bin"))
    assert result.returncode == 3
    assert "install a Luanti server from 5.6 on" in result.stderr


def test_nothing_is_done_when_nothing_changed(checkout: Path) -> None:
    needs_system_packages()
    tool(checkout, ".venv/bin/orrery", "exit 9")
    sums = subprocess.run(
        'echo "$PWD  base" | cat - scripts/setup requirements/*.txt pyproject.toml harnesses/pyproject.toml '
        "verifiers/core/pyproject.toml | cksum",
        shell=True,
        cwd=checkout,
        capture_output=True,
        text=True,
        check=True,
    )
    (checkout / ".venv/orrery-setup").write_text(sums.stdout)
    result = setup(checkout)
    assert result.returncode == 0, result.stderr
    assert result.stderr == "setup: ready, nothing changed\n"
    (checkout / "requirements/base.txt").write_text("changed==1\n")
    tool(checkout, "bin/python3.14", '[ "$1" = -c ] && exit 0\nexit 9')
    assert "using" in setup(checkout).stderr
