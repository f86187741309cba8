"""What a person sees while trials run: a line per finished trial, and on a terminal one per running trial."""

from __future__ import annotations

import sys
import time
from collections import Counter
from typing import TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from orrery.jobs import TrialOutcome

MARKS = {"solved": "green", "unsolved": "yellow", "rejected": "yellow", "error": "red"}


def verdict(outcome: TrialOutcome) -> str:
    """One word for an outcome: solved, unsolved, rejected or error."""
    if outcome.status != "scored":
        return str(outcome.status)
    return "solved" if outcome.solved else "unsolved"


class Progress:
    """Follows a job on standard error; use as a context manager around `run_job`."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.console = Console(file=stream or sys.stderr, highlight=False)
        self._planned = 0
        self._counts: Counter[str] = Counter()
        self._running: dict[str, tuple[str, float]] = {}
        self._stopping = False
        self._live = Live(
            get_renderable=self._render, console=self.console, refresh_per_second=4, transient=True
        )

    def __enter__(self) -> Progress:
        if self.console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def begin(self, planned: int, kept: list[TrialOutcome]) -> None:
        self._planned = planned
        self._counts.update(verdict(outcome) for outcome in kept)
        if kept:
            self.console.print(f"resuming: {len(kept)} of {planned} trials are kept")

    def phase(self, trial: str, name: str) -> None:
        _, started = self._running.get(trial, ("", time.monotonic()))
        self._running[trial] = (name, started)

    def ended(self, trial: str, outcome: TrialOutcome | None) -> None:
        self._running.pop(trial, None)
        if outcome is None:
            return
        word = verdict(outcome)
        self._counts[word] += 1
        line = Text.assemble((f"{word:9}", MARKS[word]), f"{outcome.task}  {outcome.seconds:.1f} s")
        if outcome.agent:
            line.append(f"  {outcome.agent}", "dim")
        if outcome.reason:
            line.append(f"  {outcome.reason}", "dim")
        self.console.print(line, soft_wrap=True)

    def stopping(self) -> None:
        if not self._stopping:
            self._stopping = True
            self.console.print("stopping: running trials are ended, finished ones are kept")

    def _render(self) -> RenderableType:
        now = time.monotonic()
        lines = [
            Text(f"  {trial:42.42} {name:12} {now - started:6.0f} s")
            for trial, (name, started) in sorted(self._running.items())
        ]
        done = sum(self._counts.values())
        counts = ", ".join(f"{self._counts[word]} {word}" for word in MARKS)
        return Group(*lines, Text(f"{done} of {self._planned} trials: {counts}"))
