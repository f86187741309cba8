"""Roots: Debian systems, made with mmdebstrap where that is installed, else from Docker Hub's Debian."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from orrery_core.errors import InfrastructureError

from orrery.images.files import RootFile

Report = Callable[[str], None]


def debian_archive(root: RootFile, archive: Path, report: Report) -> None:
    """Makes a Debian system with mmdebstrap, as a tar file. Needs a Debian mirror, no registry.

    The host's certificate bundle goes in, so that TLS works behind a proxy with a certificate of its own.

    Raises:
        InfrastructureError: mmdebstrap is missing or failed.
    """
    if shutil.which("mmdebstrap") is None:
        raise InfrastructureError(
            f"{root.name}: mmdebstrap is not installed", mend="scripts/setup-engine (as root)"
        )
    report(f"{root.name}: Debian {root.suite} with {len(root.packages)} packages (about a minute)")
    command = [*contained(), "mmdebstrap", "--variant=minbase", "--include=" + ",".join(root.packages)]
    command.append("--dpkgopt=force-unsafe-io")  # what a crash would leave half-written is thrown away anyway
    bundle = Path("/etc/ssl/certs/ca-certificates.crt")
    if bundle.exists() and "ca-certificates" in root.packages:
        command.append(f"--customize-hook=copy-in {bundle} /etc/ssl/certs/")
    environment = {
        key: os.environ[key] for key in ("PATH", "HOME", "http_proxy", "https_proxy") if key in os.environ
    }
    archive.parent.chmod(0o755)  # apt drops to a user of its own
    environment["TMPDIR"] = str(archive.parent)
    done = subprocess.run(
        [*command, root.suite, str(archive)], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        tail = "\n".join(done.stderr.strip().splitlines()[-8:])
        raise InfrastructureError(
            f"{root.name}: mmdebstrap failed\n{tail}", mend="check that a Debian mirror is reachable"
        )


def contained() -> list[str]:
    """What to put before a command that mounts things, so that its mounts and processes die with us.

    mmdebstrap binds the host's /dev/shm, /sys and /proc into the tree it builds. Killed, it would leave them
    there for the next one who deletes that tree, and with it the host's own files. In mount and process
    namespaces of their own they are never visible outside. An ordinary user's mmdebstrap makes its own.
    """
    if os.geteuid() != 0:
        return []
    namespaces = ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child"]
    return ["setpriv", "--pdeathsig", "KILL", *namespaces, "--mount-proc", "--"]
