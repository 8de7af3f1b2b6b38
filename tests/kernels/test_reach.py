"""What sums in another order are compared with: the header by itself, against many orders and error analysis."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from fragment_helpers import run_fragment

from pyedmcl.kernels.texts import SENTINELS
from pyedmcl.reference import fma32, fma64

DTYPES = ("float32", "float64")


def reach_of(device, bounds, E, lanes):
    body = "  STOREV(REACH(LOADV(bound + i * LANES), E), reach + i * LANES);"
    return run_fragment(
        device, f'#define E {E}\n#include "reach.clh"', body, {"bound": bounds}, {"reach": np.zeros_like(bounds)},
        items=len(bounds) // lanes, dtype=bounds.dtype.name, lanes=lanes,
    )["reach"]  # fmt: skip


def sum_in_order(differences, fused):
    """Of squares, one after the other; each is rounded before it is added, unless it is fused."""
    total = np.zeros(differences.shape[0], differences.dtype)
    for d in differences.T:
        total = fused(d, d, total) if fused else total + d * d
    return total


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("E", [1, 3, 20])
def test_no_order_of_a_sum_exceeds_the_reach_of_the_exact_one(device, dtype, lanes, E):
    rng = np.random.default_rng(E)
    size = 10 ** rng.uniform(-18 if dtype == "float32" else -150, 6, (4000, 1))  # squares of the least ones underflow
    differences = (rng.standard_normal((4000, E)) * size).astype(dtype)
    fused = fma32 if dtype == "float32" else fma64
    exact = sum_in_order(differences, fused)
    reach, largest = reach_of(device, exact, E, lanes), exact
    for way in (None, fused):
        for _ in range(20):
            largest = np.maximum(largest, sum_in_order(rng.permuted(differences, axis=1), way))
    assert (largest <= reach).all()
    assert E == 1 or (largest > exact).any(), "the exact sum would have done"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("E", [1, 3, 20, 100])
def test_the_reach_is_what_the_roundings_of_both_sums_need_and_not_much_more(device, dtype, E):
    """Both are off by E roundings at most: one of each square, and one of each addition."""
    bounds = np.exp2(np.random.default_rng(5).uniform(-90, 60, 256)).astype(dtype)
    unit = Fraction(float(np.finfo(dtype).eps)) / 2
    needed, enough = (1 + E * unit) / (1 - E * unit), 1 + 64 * (E + 1) * unit
    for bound, reach in zip(bounds, reach_of(device, bounds, E, 1), strict=True):
        assert Fraction(float(bound)) * needed <= Fraction(float(reach)) <= Fraction(float(bound)) * enough


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lanes", [1, 4])
def test_a_bound_of_zero_admits_what_underflows_and_a_negative_one_nothing(device, dtype, lanes):
    tiny, far = np.finfo(dtype).tiny, SENTINELS["FAR"]
    bounds = np.resize(np.array([0.0, -1.0, tiny, -tiny, far, -far], dtype), 12)
    reach = reach_of(device, bounds, 20, lanes)
    assert (reach[bounds < 0] == -1).all()
    assert (reach[bounds == 0] >= 20 * tiny).all() and (reach[bounds == 0] < 1e-30).all()
    assert (reach[bounds == far] > far).all() and np.isfinite(reach).all()
