"""Exact answers about random behaviour: two scripted draws about a threshold, or all branches weighted."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

STEP = 2.0**-20
"""Distance of the scripted draws from the threshold; single-precision draws have 24 bits."""

DEPTH_MAX, PATHS_MAX, SECONDS_MAX = 6, 4096, 60.0
COVERED_MIN = 0.999


@dataclass(frozen=True)
class ForcedRun:
    """One run with a scripted draw.

    Args:
        succeeded: the event happened.
        read_as_expected: the forced source was read exactly where, how often and with the bounds expected.
        other_sources: some other source of randomness was read.
    """

    succeeded: bool
    read_as_expected: bool
    other_sources: bool


def boundary_draws(p: float) -> tuple[float, float]:
    """The draws just below and just above the threshold of "succeed if r < p", r in [0, 1)."""
    if not STEP < p < 1 - STEP:
        raise ValueError(f"no draws on both sides of {p}")
    return p - STEP, p + STEP


def judge_boundary(p: float, below: ForcedRun, above: ForcedRun) -> bool | None:
    """Whether the two runs prove the threshold p; None where they prove nothing and sampling has to decide.

    A candidate that draws from another source, or compares the other way round, is not wrong for that.
    """
    for run in (below, above):
        if not run.read_as_expected or run.other_sources:
            return None
    if below.succeeded == above.succeeded:
        return None
    # Success above the threshold has chance 1 - p, which is the claim only for an even chance.
    return below.succeeded or p == 0.5


@dataclass(frozen=True)
class Branching:
    """One run to its end: what came out, and the weights of the outcomes of each draw on the way."""

    outcome: float
    draws: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Enumeration:
    """Sum over the paths followed.

    Args:
        covered: total weight of the paths, 1 where nothing was cut off.
        expectation: sum of weight times outcome over them.
    """

    covered: float
    expectation: float
    paths: int

    def agrees(self, claimed: float, lowest: float, highest: float) -> bool | None:
        """Whether the claim is possible when outcomes lie in lowest..highest; None: sample instead."""
        if self.covered < COVERED_MIN:
            return None
        rest = max(0.0, 1 - self.covered)
        slack = 1e-12 * max(1.0, abs(claimed), abs(lowest), abs(highest))
        low, high = self.expectation + rest * lowest, self.expectation + rest * highest
        return low - slack <= claimed <= high + slack


def enumerate_branches(
    run: Callable[[Sequence[int]], Branching], *, clock: Callable[[], float] = time.monotonic
) -> Enumeration:
    """Follow every branch depth-first, up to 6 draws, 4096 paths and 60 s.

    Args:
        run: restores the fixture and runs it with these choices; draws after the last take their
            first outcome.

    Raises:
        ValueError: the weights of a draw do not sum to 1, or a path has fewer draws than choices (not
            replayable).
    """
    waiting: list[tuple[int, ...]] = [()]
    begin, paths = clock(), 0
    weights: list[float] = []
    values: list[float] = []
    while waiting and paths < PATHS_MAX and clock() - begin < SECONDS_MAX:
        choices = waiting.pop()
        path = run(choices)
        paths += 1
        _check_path(choices, path)
        draws = path.draws[:DEPTH_MAX]
        taken = choices + (0,) * (len(draws) - len(choices))
        for position in range(len(choices), len(draws)):
            waiting += [(*taken[:position], other) for other in range(1, len(draws[position]))]
        if len(path.draws) <= DEPTH_MAX:
            weight = math.prod(draw[choice] for draw, choice in zip(draws, taken, strict=True))
            weights.append(weight)
            values.append(weight * path.outcome)
    return Enumeration(math.fsum(weights), math.fsum(values), paths)


def _check_path(choices: tuple[int, ...], path: Branching) -> None:
    if len(path.draws) < len(choices):
        raise ValueError(f"a run with {len(choices)} choices made {len(path.draws)} draws")
    for draw in path.draws:
        if not draw or min(draw) < 0 or not math.isclose(math.fsum(draw), 1.0, abs_tol=1e-9):
            raise ValueError(f"weights {draw} do not sum to 1")
