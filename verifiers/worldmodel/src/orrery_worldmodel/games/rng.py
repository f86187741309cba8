"""Random numbers that depend on a key and a counter only, never on threads or order (splitmix64)."""

from __future__ import annotations

import numba
import numpy as np

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_A = np.uint64(0xBF58476D1CE4E5B9)
_B = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S32 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(32)


@numba.njit(inline="always")
def mix(z):  # type: ignore[no-untyped-def]
    """The finaliser of splitmix64: uint64 to uint64."""
    z = (z ^ (z >> _S30)) * _A
    z = (z ^ (z >> _S27)) * _B
    return z ^ (z >> _S31)


@numba.njit(inline="always")
def below(key, counter, n):  # type: ignore[no-untyped-def]
    """The `counter`-th number of the stream `key`, as int64 in 0 .. n - 1 (n at most 2**31)."""
    z = mix(key + np.uint64(counter + 1) * _GOLDEN)
    return np.int64(((z >> _S32) * np.uint64(n)) >> _S32)


@numba.njit(cache=True)
def stream(key, number):  # type: ignore[no-untyped-def]
    """The key of an independent stream: one for each episode, and for its environment and its policy."""
    return mix(mix(key + np.uint64(number) * _GOLDEN) ^ _A)
