"""Exact binomial tails, acceptance bands and intervals, summed term by term from logarithms of factorials."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

NEGLIGIBLE = 1e-18
BISECTIONS = 200
SEARCH_MAX = 1_000_000


def log_mass(k: int, n: int, p: float) -> float:
    """Natural logarithm of P(X = k) for X ~ Binomial(n, p)."""
    if not 0 <= k <= n:
        return -math.inf
    if p == 0.0:
        return 0.0 if k == 0 else -math.inf
    if p == 1.0:
        return 0.0 if k == n else -math.inf
    choose = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    return choose + k * math.log(p) + (n - k) * math.log1p(-p)


def cdf(k: int, n: int, p: float) -> float:
    """P(X <= k) for X ~ Binomial(n, p), accurate in relative terms in the far tails too."""
    _check(n, p)
    if k < 0:
        return 0.0
    if k >= n:
        return 1.0
    if k > n * p:
        return max(0.0, 1.0 - _upper(k + 1, n, p))
    return _upper(n - k, n, 1.0 - p)


def tail(k: int, n: int, p: float) -> float:
    """P(X > k) for X ~ Binomial(n, p)."""
    return cdf(n - k - 1, n, 1.0 - p)


def _upper(k: int, n: int, p: float) -> float:
    """P(X >= k), summed upwards from k: for k at or above the mean the terms fall at once."""
    first = math.exp(log_mass(k, n, p))
    if first == 0.0 or p == 1.0:
        return first
    terms, term, odds = [first], first, p / (1.0 - p)
    for j in range(k, n):
        term *= (n - j) / (j + 1) * odds
        terms.append(term)
        if term < NEGLIGIBLE * first:
            break
    return min(1.0, math.fsum(terms))


def _check(n: int, p: float) -> None:
    if n < 0 or not 0.0 <= p <= 1.0:
        raise ValueError(f"need n >= 0 and 0 <= p <= 1, not n={n}, p={p}")


@dataclass(frozen=True)
class Band:
    """Accept a claimed probability `p0` when the successes in `n` independent trials lie in low..high.

    Accepting means that p0 lies in the Clopper-Pearson interval of the observed count at level 1 - alpha.
    """

    n: int
    p0: float
    alpha: float
    low: int
    high: int

    def accepts(self, k: int) -> bool:
        """Whether `k` successes agree with the claim."""
        if not 0 <= k <= self.n:
            raise ValueError(f"{k} successes in {self.n} trials")
        return self.low <= k <= self.high

    def power(self, p1: float) -> float:
        """Chance that the claim is rejected when the true probability is `p1`."""
        return cdf(self.low - 1, self.n, p1) + tail(self.high, self.n, p1)

    @property
    def false_reject(self) -> float:
        """Chance that a correct claim is rejected; at most alpha."""
        return self.power(self.p0)


def binomial_band(n: int, p0: float, alpha: float) -> Band:
    """The exact two-sided band with at most alpha/2 on either side."""
    _check(n, p0)
    half = alpha / 2
    deviation = NormalDist().inv_cdf(1 - half) * math.sqrt(n * p0 * (1 - p0))
    low = min(n, max(0, round(n * p0 - deviation)))
    while low > 0 and cdf(low - 1, n, p0) > half:
        low -= 1
    while low < n and cdf(low, n, p0) <= half:
        low += 1
    high = max(0, min(n, round(n * p0 + deviation)))
    while high < n and tail(high, n, p0) > half:
        high += 1
    while high > 0 and tail(high - 1, n, p0) <= half:
        high -= 1
    return Band(n, p0, alpha, low, high)


def sample_size(
    p0: float, alternatives: Sequence[float], *, alpha: float = 1e-3, power: float = 0.99
) -> Band:
    """The band of the smallest size from which the power stays at or above `power` at every alternative.

    Power is a saw-tooth in n; so the search goes down from a size that is safely large to the last one
    that fails.

    Raises:
        ValueError: no alternative, or one that equals p0 or is too close to it to be told apart.
    """
    if not alternatives or any(p1 == p0 for p1 in alternatives):
        raise ValueError(f"need alternatives other than {p0}, not {list(alternatives)}")
    n = max(_normal_size(p0, p1, alpha / 2, power) for p1 in alternatives)
    n = math.ceil(n * 1.25) + 100
    if n > SEARCH_MAX:
        raise ValueError(f"{p0} and {list(alternatives)} are too close: more than {SEARCH_MAX} trials")
    smallest: Band | None = None
    while n > 0:
        band = binomial_band(n, p0, alpha)
        if any(band.power(p1) < power for p1 in alternatives):
            break
        smallest, n = band, n - 1
    if smallest is None:
        raise ValueError(f"no size with power {power} was found for {p0} against {list(alternatives)}")
    return smallest


def _normal_size(p0: float, p1: float, side: float, power: float) -> float:
    normal = NormalDist()
    spread = normal.inv_cdf(1 - side) * math.sqrt(p0 * (1 - p0))
    spread += normal.inv_cdf(power) * math.sqrt(p1 * (1 - p1))
    return (spread / (p1 - p0)) ** 2


def wilson(k: float, n: int, level: float = 0.95) -> tuple[float, float]:
    """Wilson score interval of a proportion; (0, 1) where there are no trials.

    `k` may be the sum of n shares in [0, 1]: a share never varies more than a yes or no with the same
    mean, so the interval of their mean is then at least as wide as needed.
    """
    _check_count(k, n)
    if n == 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf((1 + level) / 2)
    scale = 1 + z * z / n
    centre = (k / n + z * z / (2 * n)) / scale
    half = z / scale * math.sqrt(k / n * (1 - k / n) / n + z * z / (4 * n * n))
    return (0.0 if k == 0 else centre - half), (1.0 if k == n else centre + half)


def clopper_pearson(k: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Exact interval of a proportion; (0, 1) where there are no trials."""
    _check_count(k, n)
    half = (1 - level) / 2
    low = 0.0 if k == 0 else _bisect(lambda p: tail(k - 1, n, p) >= half)
    high = 1.0 if k == n else _bisect(lambda p: cdf(k, n, p) < half)
    return low, high


def _bisect(holds: Callable[[float], bool]) -> float:
    """The p in [0, 1] from which `holds` is true."""
    low, high = 0.0, 1.0
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _check_count(k: float, n: int) -> None:
    if not 0 <= k <= n:
        raise ValueError(f"{k} successes in {n} trials")


def mcnemar_exact(only_first: int, only_second: int) -> float:
    """Two-sided exact p-value that two paired systems succeed equally often.

    Args:
        only_first: pairs in which only the first succeeded.
        only_second: pairs in which only the second did.
    """
    n = only_first + only_second
    return min(1.0, 2 * cdf(min(only_first, only_second), n, 0.5)) if n else 1.0
