"""What an environment adds to a trial, against podman-compose in the same run.

The trial does nothing: agent and verifier commands take no time of their own, so all of it is overhead.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import shutil
import statistics
import sys
from pathlib import Path
from typing import Any

from rich.table import Table

from scripts.bench_parts import engine

SANDBOX = "orrery.environments.sandbox:SandboxEnvironment"
ROUNDS = 3
TARGETS = {"sandbox": 1.5, "engine": 4.0}


def measure() -> Table:
    """The same empty task in the sandbox, the engine and Harbor's own podman environment."""
    os.environ.setdefault("HARBOR_TELEMETRY", "0")
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    medians = {
        "sandbox": _median(SANDBOX, "no-network"),
        "engine": _median(engine.ENGINE, "no-network"),
        # Offline, podman-compose refuses every task without network: its egress control needs images to pull.
        "podman-compose": _median("podman", "public"),
    }
    anchor = medians["podman-compose"]
    table = Table(
        "environment", "s / trial", "target s", "podman-compose / this", title=f"trial overhead, n = {ROUNDS}"
    )
    for name, seconds in medians.items():
        shown = "not measured (podman and podman-compose needed)" if seconds is None else f"{seconds:.2f}"
        ratio = f"{anchor / seconds:.0f}" if anchor and seconds else ""
        table.add_row(name, shown, str(TARGETS.get(name, "")), ratio)
    return table


def _median(environment: str, network: str) -> float | None:
    if environment != SANDBOX and not (shutil.which("podman") or shutil.which("docker")):
        return None
    if environment == "podman" and not shutil.which("podman-compose"):
        return None
    rounds = ROUNDS if environment != "podman" else 1
    found: list[dict[str, Any]] = []
    for _ in range(rounds):
        with contextlib.redirect_stdout(io.StringIO()):
            found.append(asyncio.run(engine.measure_trial(environment, network=network)))
    return statistics.median(row["trial"] for row in found)
