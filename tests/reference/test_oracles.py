"""The oracles of neighbours by the second opinion, and their fused operations, which round once."""

from __future__ import annotations

from fractions import Fraction

import naive
import numpy as np
import pytest
from knn_helpers import CASES

from pyedmcl.reference import fma32, fma64, knn_float32_exact, knn_float64_exact


def exact_fma(a, b, c, dtype):
    """a*b + c rounded once, ties to even, by rational arithmetic."""
    value = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    guess = dtype(float(value))
    near = [np.nextafter(guess, dtype(-np.inf)), guess, np.nextafter(guess, dtype(np.inf))]
    gaps = [abs(Fraction(float(v)) - value) for v in near]
    nearest = [v for v, gap in zip(near, gaps, strict=True) if gap == min(gaps)]
    bits = np.int32 if dtype is np.float32 else np.int64
    return nearest[0] if len(nearest) == 1 else next(v for v in nearest if v.view(bits) % 2 == 0)


@pytest.mark.parametrize(("fma", "dtype", "digits"), [(fma32, np.float32, 24), (fma64, np.float64, 53)])
def test_emulated_fma_rounds_once(fma, dtype, digits):
    rng = np.random.default_rng(70)
    n = 2000
    a = (rng.standard_normal(n) * 10.0 ** rng.integers(-8, 3, n)).astype(dtype)
    b = np.where(rng.random(n) < 0.5, a, rng.standard_normal(n).astype(dtype))
    c = (rng.standard_normal(n) * 10.0 ** rng.integers(-16, 6, n)).astype(dtype)
    # a*b a hair below half an ulp of an odd c: a sum rounded on the way would round up a second time.
    m = rng.integers(1, 200, n)
    half = dtype(2.0 ** -(digits // 2))
    ulp = 2.0 ** (1 - digits)
    near_a = (half * (1 + m * ulp)).astype(dtype)
    near_b = (dtype(2.0 ** (digits // 2 - digits)) * (1 - m * ulp)).astype(dtype)
    odd = (1 + ulp * (2 * rng.integers(0, 1000, n) + 1)).astype(dtype)
    a, b, c = np.concatenate([a, near_a]), np.concatenate([b, near_b]), np.concatenate([c, odd])
    expected = [exact_fma(*values, dtype) for values in zip(a, b, c, strict=True)]
    np.testing.assert_array_equal(fma(a, b, c), np.array(expected, dtype))
    twice = (a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)).astype(dtype)
    assert (twice != np.array(expected, dtype)).any(), "the sample holds cases that a plain sum gets wrong"


def test_emulated_fma_of_subnormal_squares():
    a = np.array([1e-23, 3.7e-23, 1.2e-22], np.float32)
    expected = [exact_fma(v, v, np.float32(0), np.float32) for v in a]
    np.testing.assert_array_equal(fma32(a, a, np.zeros(3, np.float32)), np.array(expected, np.float32))


# "tiny-and-huge" is left out: float32 differences of values 24 orders apart tie by the hundred.
@pytest.mark.parametrize("case", [case for case in CASES if case != "tiny-and-huge"])
def test_oracles_agree_with_the_second_opinion(case):
    x, options = CASES[case]()
    indices, distances = naive.knn(x, 3, 1, 4, **options)
    squared, rows = knn_float64_exact(x, E=3, k=4, **options)
    np.testing.assert_array_equal(rows, indices)
    np.testing.assert_allclose(np.sqrt(squared), distances, rtol=1e-14)
    squared32, rows32 = knn_float32_exact(x, E=3, k=4, **options)
    np.testing.assert_allclose(np.sqrt(squared32.astype(np.float64)), distances, rtol=1e-6)
    assert (rows32 != indices).sum() <= 4
