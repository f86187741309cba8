"""Sizes and tests for claims other than one probability: always, each value, independently, more often."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

from orrery_core.statistics.binomial import Band, binomial_band

EXPECTED_MIN = 20.0
ROUNDS = 10_000
PRECISION = 1e-16


def zero_violation_size(rate: float, *, miss: float = 0.01) -> int:
    """Trials after which "always" or "never" has met a violation of `rate` with chance 1 - miss."""
    if not 0 < rate < 1:
        raise ValueError(f"need 0 < rate < 1, not {rate}")
    return math.ceil(math.log(miss) / math.log1p(-rate))


def support_size(p_min: float, values: int, *, miss: float = 1e-3) -> int:
    """Trials after which each of `values` values came up with chance 1 - miss, the rarest having p_min."""
    if not 0 < p_min < 1 or values < 1:
        raise ValueError(f"need 0 < p_min < 1 and at least one value, not {p_min} and {values}")
    return math.ceil(math.log(miss / values) / math.log1p(-p_min))


def occurrence_range(n: int, *, miss: float = 1e-3) -> tuple[float, float]:
    """Range of true rates for which n trials show a success and a failure with chance 1 - miss."""
    rarest = 1 - miss ** (1 / n)
    return rarest, 1 - rarest


def hoeffding_half_width(n: int, value_range: float, alpha: float) -> float:
    """Half width of the interval for the mean of n independent values within a range of `value_range`."""
    return value_range * math.sqrt(math.log(2 / alpha) / (2 * n))


@dataclass(frozen=True)
class ChiSquare:
    """Result of a test of equal frequencies."""

    statistic: float
    freedom: int
    p_value: float


def uniform_chi_square(counts: Sequence[int]) -> ChiSquare:
    """Test whether all values come up equally often.

    Raises:
        ValueError: fewer than two values, or fewer than 20 expected of each, where the test does not hold.
    """
    if len(counts) < 2:
        raise ValueError("need the counts of at least two values")
    expected = sum(counts) / len(counts)
    if expected < EXPECTED_MIN:
        raise ValueError(f"need {EXPECTED_MIN:.0f} expected of each value, not {expected:.1f}")
    statistic = math.fsum((count - expected) ** 2 / expected for count in counts)
    freedom = len(counts) - 1
    return ChiSquare(statistic, freedom, chi_square_tail(statistic, freedom))


def chi_square_tail(statistic: float, freedom: int) -> float:
    """P(X > statistic) for a chi-square: the regularised upper incomplete gamma function."""
    a, x = freedom / 2, statistic / 2
    if x <= 0:
        return 1.0
    front = math.exp(a * math.log(x) - x - math.lgamma(a))
    if x < a + 1:
        term = total = 1 / a
        for step in range(1, ROUNDS):
            term *= x / (a + step)
            total += term
            if term < total * PRECISION:
                break
        return max(0.0, 1.0 - front * total)
    return front * _continued_fraction(a, x)


def _continued_fraction(a: float, x: float) -> float:
    """Lentz's evaluation of the continued fraction of the upper incomplete gamma function."""
    b = x + 1 - a
    c, d = math.inf, 1 / b
    value = d
    for step in range(1, ROUNDS):
        factor = -step * (step - a)
        b += 2
        d = 1 / (factor * d + b)
        c = b + factor / c
        change = c * d
        value *= change
        if abs(change - 1) < PRECISION * 4:
            break
    return value


def independence_bands(n: int, p: float, q: float, *, alpha: float = 1e-3) -> tuple[Band, Band, Band, Band]:
    """Bands of the four cells (both, only the first, only the second, neither) of two independent events."""
    cells = (p * q, p * (1 - q), (1 - p) * q, (1 - p) * (1 - q))
    both, first, second, neither = (binomial_band(n, cell, alpha / 4) for cell in cells)
    return both, first, second, neither


def independence_power(n: int, correlation: float, *, alpha: float = 1e-3) -> float:
    """Least chance to expose this correlation of two events of 50 %: that of the best single cell."""
    bands = independence_bands(n, 0.5, 0.5, alpha=alpha)
    return max(
        band.power(0.25 * (1 + sign * correlation)) for band, sign in zip(bands, (1, -1, -1, 1), strict=True)
    )


def two_sample_size(p_old: float, p_new: float, *, alpha: float = 1e-3, power: float = 0.99) -> int:
    """Trials of each of two samples that show a rise from p_old to p_new (pooled score test, one-sided)."""
    if not 0 <= p_old < p_new <= 1:
        raise ValueError(f"need p_old < p_new, not {p_old} and {p_new}")
    normal, mean = NormalDist(), (p_old + p_new) / 2
    spread = normal.inv_cdf(1 - alpha) * math.sqrt(2 * mean * (1 - mean))
    spread += normal.inv_cdf(power) * math.sqrt(p_old * (1 - p_old) + p_new * (1 - p_new))
    return math.ceil((spread / (p_new - p_old)) ** 2)


def two_sample(k_old: int, n_old: int, k_new: int, n_new: int) -> float:
    """One-sided p-value of "the new rate is not higher" (pooled score test); small means more often now."""
    if not (0 <= k_old <= n_old and 0 <= k_new <= n_new and n_old and n_new):
        raise ValueError(f"{k_old} of {n_old} against {k_new} of {n_new}")
    pooled = (k_old + k_new) / (n_old + n_new)
    variance = pooled * (1 - pooled) * (1 / n_old + 1 / n_new)
    if variance == 0:
        return 1.0
    z = (k_new / n_new - k_old / n_old) / math.sqrt(variance)
    return math.erfc(z / math.sqrt(2)) / 2
