"""The sandbox of an ordinary user: the same tests again, in a process without any rights."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

UID = 64123

REPOSITORY = Path(__file__).parents[2]


@pytest.mark.e2e
@pytest.mark.skipif(os.geteuid() != 0, reason="already runs as an ordinary user")
def test_the_sandbox_works_for_an_ordinary_user(tmp_path):
    from orrery.environments.boot import find_bwrap

    home = tmp_path / "home"
    home.mkdir()
    os.chown(home, UID, UID)
    shown = []
    for path in dict.fromkeys([sys.base_prefix, sys.prefix, str(REPOSITORY)]):
        for parent in reversed(Path(path).parents):
            if parent.is_relative_to("/root"):
                shown += ["--perms", "0755", "--dir", str(parent)]
        shown += ["--ro-bind", path, path]
    command = [
        # Only makes interpreter and checkout reachable, wherever they lie; it isolates nothing.
        str(find_bwrap()), "--dev-bind", "/", "/", "--perms", "0755", "--tmpfs", "/root", *shown,
        "--bind", str(home), "/root/home",
        "setpriv", "--reuid", str(UID), "--regid", str(UID), "--clear-groups",
        "env", "-i", "HOME=/root/home", "PATH=/usr/bin:/bin", "LANG=C.UTF-8", "TMPDIR=/root/home",
        sys.executable, "-m", "pytest", "--timeout=120", "-p", "no:cacheprovider", "--basetemp=/root/home/t",
        "tests/harnesses/test_sandbox.py",
    ]  # fmt: skip
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    print(done.stdout[-5000:], done.stderr[-2000:])
    assert done.returncode == 0
    assert done.stdout.count(".") > 20  # they ran, and only those that need root were skipped
