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
    command = ["mmdebstrap", "--variant=minbase", "--include=" + ",".join(root.packages)]
    bundle = Path("/etc/ssl/certs/ca-certificates.crt")
    if bundle.exists():
        command.append(f"--customize-hook=copy-in {bundle} /etc/ssl/certs/")
    environment = {
        key: os.environ[key]
        for key in ("PATH", "HOME", "TMPDIR", "http_proxy", "https_proxy")
        if key in os.environ
    }
    done = subprocess.run(
        [*command, root.suite, str(archive)], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        tail = "\n".join(done.stderr.strip().splitlines()[-8:])
        raise InfrastructureError(
            f"{root.name}: mmdebstrap failed\n{tail}", mend="check that a Debian mirror is reachable"
        )
