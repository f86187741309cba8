"""Start-up of the command line, against the bare interpreter."""

from __future__ import annotations

import sys
from pathlib import Path

from rich.table import Table

from scripts.bench_parts.timing import seconds

RUNS = 9


def measure() -> Table:
    """`orrery --help` and `python -c pass` in turn."""
    orrery = Path(sys.executable).with_name("orrery")
    bare = seconds([sys.executable, "-c", "pass"], RUNS)
    shown = seconds([str(orrery), "--help"], RUNS)
    table = Table("command", "median s", "times the bare interpreter", title=f"start-up, n = {RUNS}")
    table.add_row("python -c pass", f"{bare:.3f}", "1.0")
    table.add_row("orrery --help", f"{shown:.3f}", f"{shown / bare:.1f}")
    return table
