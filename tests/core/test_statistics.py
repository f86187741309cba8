from __future__ import annotations

import math
import random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from orrery_core.statistics import (
    Branching,
    ForcedRun,
    binomial_band,
    boundary_draws,
    cdf,
    clopper_pearson,
    enumerate_branches,
    hoeffding_half_width,
    independence_bands,
    independence_power,
    judge_boundary,
    mcnemar_exact,
    occurrence_range,
    sample_size,
    sequential_test,
    support_size,
    tail,
    two_sample,
    two_sample_size,
    uniform_chi_square,
    wilson,
    zero_violation_size,
)
from orrery_core.statistics.claims import chi_square_tail
from scipy import stats

# Table of section 6.2, alpha 1e-3: claim, alternatives, size, band, false reject rounded up to one digit.
TABLE = [
    (0.01, (0.0025, 0.02), 4592, 25, 70, 6e-4),
    (0.02, (0.01, 0.04), 4787, 66, 129, 9e-4),
    (0.05, (0.025, 0.1), 1858, 64, 125, 1e-3),
    (0.1, (0.05, 0.2), 897, 62, 121, 8e-4),
    (0.15, (0.1, 0.2), 1835, 226, 327, 9e-4),
    (0.2, (0.1, 0.3), 594, 88, 152, 8e-4),
    (0.2, (0.15, 0.25), 2219, 383, 507, 9e-4),
    (0.25, (0.15, 0.35), 669, 131, 205, 8e-4),
    (0.25, (0.2, 0.3), 2537, 563, 707, 9e-4),
    (1 / 3, (0.25, 0.42), 1000, 285, 383, 9e-4),
    (0.4, (0.3, 0.5), 791, 271, 362, 8e-4),
    (0.5, (0.4, 0.6), 792, 350, 442, 9e-4),
    (0.5, (0.35, 0.65), 349, 144, 205, 9e-4),
    (0.75, (0.65, 0.85), 669, 464, 538, 8e-4),
    (0.8, (0.7, 0.9), 594, 442, 506, 8e-4),
    (0.9, (0.8, 0.97), 398, 337, 376, 8e-4),
]
STRICT_TABLE = [
    (0.05, (0.025, 0.1), 2299, 77, 158),
    (0.1, (0.05, 0.2), 1103, 74, 151),
    (0.2, (0.1, 0.3), 723, 104, 188),
    (0.25, (0.15, 0.35), 815, 157, 253),
    (0.5, (0.4, 0.6), 971, 425, 546),
]


@pytest.mark.parametrize(("p0", "alternatives", "n", "low", "high", "false_reject"), TABLE)
def test_size_and_band_of_the_table(p0, alternatives, n, low, high, false_reject):
    band = sample_size(p0, alternatives)
    assert (band.n, band.low, band.high) == (n, low, high)
    assert band.false_reject == pytest.approx(false_reject, abs=5.5e-5)
    assert all(band.power(p1) >= 0.99 for p1 in alternatives)


@pytest.mark.parametrize(("p0", "alternatives", "n", "low", "high"), STRICT_TABLE)
def test_size_and_band_at_the_strict_level(p0, alternatives, n, low, high):
    band = sample_size(p0, alternatives, alpha=1e-4)
    assert (band.n, band.low, band.high) == (n, low, high)


def test_power_stays_from_the_size_on():
    p0, alternatives = 0.5, (0.35, 0.65)
    n = sample_size(p0, alternatives).n
    assert any(binomial_band(n - 1, p0, 1e-3).power(p1) < 0.99 for p1 in alternatives)
    for later in range(n, n + 60):
        assert all(binomial_band(later, p0, 1e-3).power(p1) >= 0.99 for p1 in alternatives)


@settings(deadline=None)
@given(st.integers(0, 3000), st.floats(0, 1), st.data())
def test_tails_agree_with_scipy(n, p, data):
    k = data.draw(st.integers(-1, n + 1))
    assert cdf(k, n, p) == pytest.approx(stats.binom.cdf(k, n, p), rel=1e-8, abs=1e-13)
    assert tail(k, n, p) == pytest.approx(stats.binom.sf(k, n, p), rel=1e-8, abs=1e-13)


@settings(deadline=None)
@given(st.integers(1, 1500), st.floats(0.001, 0.999), st.sampled_from([0.05, 1e-3, 1e-4]))
def test_band_is_the_largest_allowed(n, p0, alpha):
    band = binomial_band(n, p0, alpha)
    assert stats.binom.cdf(band.low - 1, n, p0) <= alpha / 2 * (1 + 1e-9)
    assert stats.binom.cdf(band.low, n, p0) > alpha / 2 * (1 - 1e-9)
    assert stats.binom.sf(band.high, n, p0) <= alpha / 2 * (1 + 1e-9)
    assert band.high == 0 or stats.binom.sf(band.high - 1, n, p0) > alpha / 2 * (1 - 1e-9)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 300), st.floats(0.02, 0.98), st.data())
def test_band_inverts_the_exact_interval(n, p0, data):
    k = data.draw(st.integers(0, n))
    low, high = clopper_pearson(k, n, 1 - 1e-3)
    assume(min(abs(p0 - low), abs(p0 - high)) > 1e-9)
    assert binomial_band(n, p0, 1e-3).accepts(k) == (low <= p0 <= high)


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 400), st.data(), st.sampled_from([0.9, 0.95, 0.999]))
def test_intervals_agree_with_scipy(n, data, level):
    k = data.draw(st.integers(0, n))
    result = stats.binomtest(k, n)
    for ours, method in ((wilson, "wilson"), (clopper_pearson, "exact")):
        theirs = result.proportion_ci(level, method=method)
        assert ours(k, n, level) == pytest.approx((theirs.low, theirs.high), abs=1e-9)


def test_intervals_without_trials_say_nothing():
    assert wilson(0, 0) == clopper_pearson(0, 0) == (0.0, 1.0)


@settings(deadline=None)
@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_agrees_with_scipy(first, second):
    expected = stats.binomtest(first, first + second).pvalue if first + second else 1.0
    assert mcnemar_exact(first, second) == pytest.approx(min(1.0, expected), rel=1e-9)


def test_bands_refuse_impossible_counts_and_sizes():
    band = binomial_band(10, 0.5, 1e-3)
    for k in (-1, 11):
        with pytest.raises(ValueError):
            band.accepts(k)
    for alternatives in ((), (0.5,), (0.50001,)):
        with pytest.raises(ValueError):
            sample_size(0.5, alternatives)


# Section 6.3: claim, alternatives, mean trials where correct, at the low and at the high alternative.
SEQUENTIAL = [
    (0.2, 0.1, 0.3, 214, 206, 267),
    (0.5, 0.4, 0.6, 332, 371, 370),
    (0.05, 0.025, 0.1, 569, 931, 376),
]


@pytest.mark.parametrize(("p0", "low", "high", "mean0", "mean_low", "mean_high"), SEQUENTIAL)
def test_sequential_means_and_error_rates(p0, low, high, mean0, mean_low, mean_high):
    test = sequential_test(p0, low, high)
    assert test.reject_at == pytest.approx(7.59, abs=0.005)
    assert test.clear_at == pytest.approx(-4.60, abs=0.006)
    runs = 200
    for p, mean, right in ((p0, mean0, True), (low, mean_low, False), (high, mean_high, False)):
        source = random.Random(f"{p0} {p}")
        decisions = [test.decide(source.random() < p for _ in range(test.n_max)) for _ in range(runs)]
        assert all(decision.accepted is not None for decision in decisions)
        assert sum(decision.n for decision in decisions) / runs == pytest.approx(mean, rel=0.12)
        assert sum(decision.accepted is right for decision in decisions) / runs >= 0.97


def test_sequential_takes_no_more_trials_than_needed():
    test = sequential_test(0.5, 0.4, 0.6)
    outcomes = iter([True] * 1000)
    decision = test.decide(outcomes)
    assert decision.accepted is False
    assert decision.n == decision.k == 1000 - len(list(outcomes))
    assert test.decide([True, False]).accepted is None
    alternating = [bool(i % 2) for i in range(test.n_max)]
    assert test.decide(alternating).accepted is True


def test_sequential_falls_back_to_the_band_at_its_end():
    test = sequential_test(0.2, 0.0, 1.0)
    never = test.decide([False] * test.n_max)
    assert never.accepted is False
    with pytest.raises(ValueError):
        sequential_test(0.2, 0.3, 0.4)


def test_always_and_never_sizes():
    assert [zero_violation_size(rate) for rate in (0.25, 0.1, 0.05, 0.02, 0.01)] == [17, 44, 90, 228, 459]


def test_support_size():
    assert support_size(1 / 3, 3) == 20


def test_sometimes_in_200():
    low, high = occurrence_range(200)
    assert low == pytest.approx(0.035, abs=0.0015)
    assert high == pytest.approx(0.965, abs=0.0015)


@pytest.mark.parametrize(("n", "correlation"), [(35, 1.0), (580, 0.4), (1085, 0.3)])
def test_independence_sizes(n, correlation):
    assert independence_power(n, correlation) >= 0.99
    assert independence_power(n - 15, correlation) < 0.99


def test_independent_events_lie_in_the_cells():
    source = random.Random(5)
    cells = [0, 0, 0, 0]
    for _ in range(600):
        cells[2 * (source.random() >= 0.5) + (source.random() >= 0.3)] += 1
    assert all(band.accepts(k) for band, k in zip(independence_bands(600, 0.5, 0.3), cells, strict=True))
    correlated = [300, 0, 0, 300]
    assert not all(
        band.accepts(k) for band, k in zip(independence_bands(600, 0.5, 0.5), correlated, strict=True)
    )


@settings(deadline=None)
@given(st.floats(0, 300), st.integers(1, 60))
def test_chi_square_tail_agrees_with_scipy(statistic, freedom):
    assert chi_square_tail(statistic, freedom) == pytest.approx(
        stats.chi2.sf(statistic, freedom), rel=1e-8, abs=1e-14
    )


@settings(deadline=None)
@given(st.lists(st.integers(20, 200), min_size=2, max_size=10))
def test_uniform_test_agrees_with_scipy(counts):
    ours, theirs = uniform_chi_square(counts), stats.chisquare(counts)
    assert ours.statistic == pytest.approx(theirs.statistic)
    assert ours.p_value == pytest.approx(theirs.pvalue, rel=1e-8)


def test_uniform_test_needs_enough_of_each():
    for counts in ([19, 20], [5], []):
        with pytest.raises(ValueError):
            uniform_chi_square(counts)


@pytest.mark.parametrize(
    ("old", "new", "n"), [(0.1, 0.2, 745), (0.2, 0.3, 1095), (0.3, 0.6, 155), (0.05, 0.15, 525)]
)
def test_two_sample_sizes(old, new, n):
    """The table of section 6.5 is in steps of five."""
    assert n - 5 < two_sample_size(old, new) <= n


def test_two_sample_power_and_level():
    n = two_sample_size(0.1, 0.2)
    low, high = [stats.binom.pmf(range(n + 1), n, p) for p in (0.1, 0.2)]

    def accepted(new_mass) -> float:
        total = 0.0
        for k_old in range(n + 1):
            if low[k_old] < 1e-9:
                continue
            first = next((k for k in range(k_old, n + 1) if two_sample(k_old, n, k, n) <= 1e-3), n + 1)
            total += low[k_old] * new_mass[first:].sum()
        return total

    assert accepted(high) == pytest.approx(0.99, abs=0.003)
    assert accepted(low) <= 1.3e-3


def test_two_sample_without_any_difference():
    assert two_sample(0, 10, 0, 10) == 1.0
    assert two_sample(5, 10, 5, 10) == pytest.approx(0.5)
    with pytest.raises(ValueError):
        two_sample(1, 0, 0, 10)


def test_hoeffding():
    width = hoeffding_half_width(200, 4.0, 1e-3)
    assert 2 * math.exp(-2 * 200 * width**2 / 16) == pytest.approx(1e-3)


def run(succeeded: bool, read_as_expected: bool = True, other_sources: bool = False) -> ForcedRun:
    return ForcedRun(succeeded, read_as_expected, other_sources)


def test_boundary_pair():
    below, above = boundary_draws(0.3)
    assert above - below == 2 * 2**-20
    assert judge_boundary(0.3, run(True), run(False)) is True
    assert judge_boundary(0.3, run(False), run(True)) is False
    assert judge_boundary(0.5, run(False), run(True)) is True
    with pytest.raises(ValueError):
        boundary_draws(1.0)


def test_boundary_pair_never_fails_another_source():
    for below, above in (
        (run(True), run(True)),
        (run(False), run(False)),
        (run(False, read_as_expected=False), run(True)),
        (run(False), run(True, other_sources=True)),
    ):
        assert judge_boundary(0.3, below, above) is None


def drops(choices) -> Branching:
    """1 to 3 drops equally often, doubled in one of four cases; the second draw is made for 2 and 3 alone."""
    path = list(choices) + [0] * 2
    count, draws = path[0] + 1, [(1 / 3,) * 3]
    if count > 1:
        draws.append((0.75, 0.25))
        count *= 1 + path[1]
    return Branching(float(count), tuple(draws))


def test_enumeration_is_exact():
    result = enumerate_branches(drops)
    expected = (1 + 2 * 1.25 + 3 * 1.25) / 3
    assert result.paths == 5
    assert result.covered == pytest.approx(1)
    assert result.expectation == pytest.approx(expected)
    assert result.agrees(expected, 1, 6) is True
    assert result.agrees(2.0, 1, 6) is False


def test_enumeration_falls_back_where_it_is_cut_off():
    def endless(choices) -> Branching:
        return Branching(0.0, ((0.5, 0.5),) * 7)

    result = enumerate_branches(endless)
    assert result.covered == 0
    assert result.agrees(0.5, 0, 1) is None

    def wide(choices) -> Branching:
        return Branching(1.0, ((0.01,) * 100,) * 3)

    many = enumerate_branches(wide)
    assert many.paths == 4096
    assert many.agrees(1.0, 0, 1) is None

    times = iter(range(0, 1000, 25))
    slow = enumerate_branches(drops, clock=lambda: float(next(times)))
    assert slow.paths == 2
    assert slow.agrees(1.0, 1, 6) is None


def test_enumeration_accepts_a_rare_long_path():
    def geometric(choices) -> Branching:
        path = list(choices) + [0] * 7
        draws: list[tuple[float, ...]] = []
        while len(draws) < 7:
            draws.append((0.9, 0.1))
            if path[len(draws) - 1] == 0:
                break
        return Branching(float(len(draws)), tuple(draws))

    result = enumerate_branches(geometric)
    assert 0.999 <= result.covered < 1
    assert result.agrees(1 / 0.9, 1, 20) is True
    assert result.agrees(1.2, 1, 20) is False


def test_enumeration_refuses_runs_that_do_not_replay():
    with pytest.raises(ValueError, match="choices"):
        enumerate_branches(lambda choices: Branching(0.0, ((0.5, 0.5),) if not choices else ()))
    with pytest.raises(ValueError, match="sum to 1"):
        enumerate_branches(lambda choices: Branching(0.0, ((0.5, 0.4),)))
