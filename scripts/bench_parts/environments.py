"""What an environment adds to a trial, against podman-compose in the same run.

The trial does nothing: agent and verifier commands take no time of their own, so all of it is overhead.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import logging
import os
import shutil
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from orrery.environments.engine_service import service_environment
from rich.table import Table

from scripts.bench_parts import engine

SANDBOX = "orrery.environments.sandbox:SandboxEnvironment"
ROUNDS = 3
TARGETS = {"sandbox": 1.5, "engine": 4.0}


def measure() -> Table:
    """The same empty task in the sandbox, the engine and Harbor's own podman environment."""
    logging.disable(logging.WARNING)
    os.environ.setdefault("HARBOR_TELEMETRY", "0")
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    with tempfile.TemporaryDirectory() as folder:
        # What our own Podman service gets on this machine, Harbor's command-line Podman needs as well.
        os.environ.update(service_environment(Path(folder)))
        return _table(_measure_all())


def _measure_all() -> dict[str, float | str]:
    return {
        "sandbox": _median(SANDBOX, "no-network"),
        "engine": _median(engine.ENGINE, "no-network"),
        # Offline, podman-compose refuses every task without network: its egress control needs images to pull.
        "podman-compose": _median("podman", "public"),
    }


def _table(medians: dict[str, float | str]) -> Table:
    anchor = medians["podman-compose"]
    table = Table(
        "environment", "s / trial", "target s", "podman-compose / this", title=f"trial overhead, n = {ROUNDS}"
    )
    for name, seconds in medians.items():
        shown = seconds if isinstance(seconds, str) else f"{seconds:.2f}"
        ratio = "" if isinstance(seconds, str) or isinstance(anchor, str) else f"{anchor / seconds:.0f}"
        table.add_row(name, shown, str(TARGETS.get(name, "")), ratio)
    return table


def _median(environment: str, network: str) -> float | str:
    """Seconds, or why there are none."""
    if environment != SANDBOX and not (shutil.which("podman") or shutil.which("docker")):
        return "no engine (scripts/setup-engine)"
    if environment == "podman" and not shutil.which("podman-compose"):
        return "no podman-compose (scripts/setup --dev)"
    rounds = ROUNDS if environment != "podman" else 1
    found: list[dict[str, Any]] = []
    for _ in range(rounds):
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                found.append(asyncio.run(engine.measure_trial(environment, network=network)))
        except RuntimeError as failure:
            return f"failed: {str(failure)[-120:]}"
    return statistics.median(row["trial"] for row in found)
