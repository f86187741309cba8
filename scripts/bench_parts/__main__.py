"""`scripts/bench`: run the named parts and print their tables."""

from __future__ import annotations

import sys
from collections.abc import Callable

from rich.console import Console
from rich.table import Table

from scripts.bench_parts import environments, startup, verify

PARTS: dict[str, Callable[[], Table]] = {
    "startup": startup.measure,
    "verify": verify.measure,
    "environments": environments.measure,
}


def main(names: list[str]) -> int:
    """Run the parts in order; unknown names are a usage error."""
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        print(f"unknown part {unknown[0]!r}; there are: {', '.join(PARTS)}", file=sys.stderr)
        return 2
    console = Console(width=120)
    for name in names or PARTS:
        console.print(PARTS[name]())
    return 0


sys.exit(main(sys.argv[1:]))
