"""Seconds per verification: the whole verifier on each task's reference solution, both arms."""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from pathlib import Path

from orrery_core.errors import InfrastructureError
from orrery_worldedit.spec import load_spec
from orrery_worldedit.verify import verify
from rich.table import Table

from scripts.bench_parts.timing import percentile

TASKS = Path("tasks/luanti")


def measure() -> Table:
    """Verify every Luanti task once, one after the other."""
    table = Table(
        "task",
        "criteria",
        "game s",
        "wall s",
        "game s / wall s",
        title="seconds per verification, oracle, n = 1 each",
    )
    walls = []
    for folder in sorted(TASKS.iterdir()):
        spec = load_spec(folder / "spec.toml")
        with tempfile.TemporaryDirectory() as place:
            out = Path(place) / "out"
            begin = time.perf_counter()
            report = verify(spec, folder / "solution" / "mod", out, Path(place))
            wall = time.perf_counter() - begin
            if report.reward != 1.0:
                raise InfrastructureError(
                    f"{folder.name}: the oracle got {report.reward}", f"orrery check {folder}"
                )
            game = json.loads((out / "evidence.json").read_text())["candidate"]["game_seconds"]
        walls.append(wall)
        table.add_row(
            folder.name, str(len(report.criteria)), f"{game:.0f}", f"{wall:.1f}", f"{game / wall:.0f}"
        )
    table.add_section()
    table.add_row("median", "", "", f"{statistics.median(walls):.1f}", "")
    table.add_row("p95", "", "", f"{percentile(walls, 0.95):.1f}", "")
    return table
