"""Acceptance rules for random behaviour, exact where they can be, in plain Python.

A false reject is a correct submission failing; power is the chance that a stated wrong value is rejected.
Use alpha 1e-4 where trials are cheap and 1e-3 where each costs game time, and report n, k and the seed
with each verdict.
"""

from orrery_core.statistics.binomial import (
    Band,
    binomial_band,
    cdf,
    clopper_pearson,
    mcnemar_exact,
    sample_size,
    tail,
    wilson,
)
from orrery_core.statistics.claims import (
    ChiSquare,
    hoeffding_half_width,
    independence_bands,
    independence_power,
    occurrence_range,
    support_size,
    two_sample,
    two_sample_size,
    uniform_chi_square,
    zero_violation_size,
)
from orrery_core.statistics.exact import (
    Branching,
    Enumeration,
    ForcedRun,
    boundary_draws,
    enumerate_branches,
    judge_boundary,
)
from orrery_core.statistics.sequential import Decision, SequentialTest, sequential_test

__all__ = [
    "Band",
    "Branching",
    "ChiSquare",
    "Decision",
    "Enumeration",
    "ForcedRun",
    "SequentialTest",
    "binomial_band",
    "boundary_draws",
    "cdf",
    "clopper_pearson",
    "enumerate_branches",
    "hoeffding_half_width",
    "independence_bands",
    "independence_power",
    "judge_boundary",
    "mcnemar_exact",
    "occurrence_range",
    "sample_size",
    "sequential_test",
    "support_size",
    "tail",
    "two_sample",
    "two_sample_size",
    "uniform_chi_square",
    "wilson",
    "zero_violation_size",
]
