"""Wald's sequential test, two-sided, for trials that cost game time."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from orrery_core.statistics.binomial import Band, binomial_band, sample_size

STRETCH = 1.5
"""Longest run relative to the fixed size: cutting off at the fixed size itself costs a percent of power."""


@dataclass(frozen=True)
class Decision:
    """Outcome of a sequential test: `accepted` is None while it is open."""

    accepted: bool | None
    n: int
    k: int


@dataclass(frozen=True)
class SequentialTest:
    """Two one-sided tests of p0, against `p_low` and `p_high`, each with alpha/2 and beta.

    At `n_max` trials without a decision, the exact band of that size decides.
    """

    p0: float
    p_low: float
    p_high: float
    alpha: float
    beta: float
    last: Band

    @property
    def n_max(self) -> int:
        """Most trials it takes."""
        return self.last.n

    @property
    def reject_at(self) -> float:
        """Log likelihood ratio from which an alternative is believed."""
        return math.log((1 - self.beta) / (self.alpha / 2))

    @property
    def clear_at(self) -> float:
        """Log likelihood ratio down to which an alternative is excluded."""
        return math.log(self.beta / (1 - self.alpha / 2))

    def decide(self, outcomes: Iterable[bool]) -> Decision:
        """Run over `outcomes` up to the first decision; no more of them are taken than needed."""
        sides = [(_ratio(p, self.p0), _ratio(1 - p, 1 - self.p0)) for p in (self.p_low, self.p_high)]
        sums = [0.0, 0.0]
        cleared = [False, False]
        n = k = 0
        for outcome in outcomes:
            n += 1
            k += outcome
            for side, (success, failure) in enumerate(sides):
                sums[side] += success if outcome else failure
                cleared[side] = cleared[side] or sums[side] <= self.clear_at
            if any(total >= self.reject_at for total in sums):
                return Decision(False, n, k)
            if all(cleared):
                return Decision(True, n, k)
            if n == self.n_max:
                return Decision(self.last.accepts(k), n, k)
        return Decision(None, n, k)


def sequential_test(
    p0: float, p_low: float, p_high: float, *, alpha: float = 1e-3, beta: float = 0.01
) -> SequentialTest:
    """The test of p0 against p_low < p0 < p_high, with its longest run from the fixed size."""
    if not 0 <= p_low < p0 < p_high <= 1:
        raise ValueError(f"need p_low < p0 < p_high, not {p_low}, {p0}, {p_high}")
    fixed = sample_size(p0, (p_low, p_high), alpha=alpha, power=1 - beta)
    last = binomial_band(math.ceil(STRETCH * fixed.n), p0, alpha)
    return SequentialTest(p0, p_low, p_high, alpha, beta, last)


def _ratio(p: float, q: float) -> float:
    return math.log(p / q) if p > 0 else -math.inf
