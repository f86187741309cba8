"""The Python that has torch: models run in it, nothing of the judge does."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from orrery_core.errors import InfrastructureError

VARIABLE = "ORRERY_TORCH_PYTHON"
MEND = f"scripts/setup-torch, or name a Python with torch in {VARIABLE}"

_PROBE = """
import importlib.util, json, os, sys, sysconfig
places = {}
for name in ("torch", "numpy", "numba", "llvmlite", "pyarrow", "safetensors", "worldmodel_kit"):
    found = importlib.util.find_spec(name)
    places[name] = found and os.path.dirname(os.path.dirname(os.path.realpath(found.origin)))
print(json.dumps({
    "prefix": os.path.realpath(sys.base_prefix),
    "version": "%d.%d" % sys.version_info[:2],
    "library": sysconfig.get_config_var("INSTSONAME") if sysconfig.get_config_var("Py_ENABLE_SHARED") else None,
    "places": places,
}))
"""


@dataclass(frozen=True)
class TorchPython:
    """An interpreter that imports torch and the kit.

    Attributes:
        prefix: of the interpreter below any virtual environment.
        sites: folders on its path that hold torch and what the kit imports.
        kit: the folder that holds `worldmodel_kit`.
        version: such as "3.11".
        library: name of its shared library, None where it has none.
    """

    prefix: Path
    sites: tuple[Path, ...]
    kit: Path
    version: str
    library: str | None

    @property
    def executable(self) -> Path:
        """The interpreter itself; run it with `path` as PYTHONPATH."""
        return self.prefix / "bin" / f"python{self.version}"

    @property
    def path(self) -> str:
        """PYTHONPATH."""
        return os.pathsep.join(map(str, (self.kit, *self.sites)))


def _candidates() -> Iterator[Path]:
    named = os.environ.get(VARIABLE)
    if named:
        yield Path(named)
        return
    for above in Path(__file__).resolve().parents:
        if (above / ".venv-torch").is_dir():
            yield above / ".venv-torch" / "bin" / "python"
    yield Path(sys.executable)


@functools.cache
def find() -> TorchPython:
    """The interpreter named by ORRERY_TORCH_PYTHON, else the checkout's .venv-torch, else this one.

    Raises:
        InfrastructureError: none of them has torch and the kit.
    """
    reasons = []
    for candidate in _candidates():
        try:
            done = subprocess.run(
                [candidate, "-P", "-c", _PROBE], capture_output=True, text=True, timeout=60, check=True
            )
            found = json.loads(done.stdout)
        except (OSError, subprocess.SubprocessError, ValueError) as problem:
            reasons.append(f"{candidate} does not run ({problem})")
            continue
        missing = [name for name, place in found["places"].items() if place is None]
        if missing:
            reasons.append(f"{candidate} lacks {', '.join(missing)}")
            continue
        kit = found["places"].pop("worldmodel_kit")
        return TorchPython(
            prefix=Path(found["prefix"]),
            sites=tuple(map(Path, dict.fromkeys(found["places"].values()))),
            kit=Path(kit),
            version=found["version"],
            library=found["library"],
        )
    raise InfrastructureError(f"no Python with torch: {'; '.join(reasons)}", mend=MEND)
