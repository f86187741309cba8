"""Wall-clock measuring shared by the benchmarks."""

from __future__ import annotations

import statistics
import subprocess
import time
from collections.abc import Sequence


def seconds(argv: Sequence[str], runs: int) -> float:
    """Median wall seconds of a command over `runs` runs, after one run that warms the caches."""
    found = []
    for _ in range(runs + 1):
        begin = time.perf_counter()
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
        found.append(time.perf_counter() - begin)
    return statistics.median(found[1:])


def percentile(values: Sequence[float], share: float) -> float:
    """Nearest-rank percentile of a non-empty sample."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, round(share * len(ordered) + 0.5) - 1))]
