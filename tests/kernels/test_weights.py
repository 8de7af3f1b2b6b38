"""Weights of neighbours: their header by itself, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from fragment_helpers import run_fragment

DTYPES = ("float32", "float64")
LANES = (1, 4, 8, 16)


def distances_of(dtype):
    """Sixteen rows of distances: one begins with 0, one is 0 altogether, one is very long."""
    distances = np.sort(np.abs(np.random.default_rng(8).standard_normal((16, 6))), axis=1)
    distances[0, 0] = 0
    distances[1] = 0
    distances[2, 1:] *= 1e4
    return distances.astype(dtype)


def close(dtype):
    """Roundings of a distance are as many in its exponential as the distance is large."""
    return {"rtol": 200 * np.finfo(dtype).eps, "atol": 1e-12}


def weights_of(d):
    nearest_one = d[:, :1]
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(nearest_one > 0, np.exp(-d / nearest_one), d == 0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_simplex_weights_have_the_same_bits_everywhere(both_devices, dtype):
    """In any vector, and whether the device divides exactly or is corrected; and they are right to two units."""
    d = distances_of(dtype)
    squared = (d * d).T
    body = """
  const realv d_min = root(LOADV(squared + i * LANES));
  const rowv at_zero = d_min == (realv)(0);
  const realv inverse = INVERSE_DISTANCE(d_min, at_zero);
  STOREV(inverse, inverses + i * LANES);
  for (int place = 0; place < 6; ++place) {
    const realv far = root(LOADV(squared + place * 16 + i * LANES));
    STOREV(SIMPLEX_WEIGHT(far, inverse, at_zero), weights + place * 16 + i * LANES);
  }
"""
    outputs = {"weights": np.zeros((6, 16), dtype), "inverses": np.zeros(16, dtype)}
    found = [
        run_fragment(
            device, '#include "weights.clh"', body, {"squared": squared}, outputs, items=16 // lanes, dtype=dtype,
            lanes=lanes, exact_division=exact,
        )
        for device in both_devices for lanes in LANES for exact in (True, False)
    ]  # fmt: skip
    for other in found[1:]:
        np.testing.assert_array_equal(found[0]["weights"], other["weights"])
    weights, inverse = found[0]["weights"].T, found[0]["inverses"][:, None].astype(np.float64)
    d = np.sqrt(squared.T)  # as it is rounded
    at_zero = d[:, :1] == 0
    np.testing.assert_array_equal(inverse, np.where(at_zero, 0, 1 / np.where(at_zero, 1, d[:, :1])))
    # Powers that the last digits of 1 / d_min enlarge are compared where they are small.
    exact = np.where(at_zero, d == 0, np.exp(1 - d.astype(np.float64) * inverse))
    near = d * inverse < 8
    np.testing.assert_allclose(weights[near], exact[near], rtol=8 * np.finfo(dtype).eps)
    assert weights[~near].max() < 1e-3
    unit = np.where(at_zero, 1.0, np.e)
    np.testing.assert_allclose(weights / unit, weights_of(d.astype(np.float64)), **close(dtype))
    assert weights[2, 1:].min() > np.finfo(dtype).tiny * 1000, "normal numbers, also after they were normalised"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lanes", [1, 8])
def test_smap_weights(device, dtype, lanes):
    d = distances_of(dtype)
    slope = (3 / d.mean(axis=1).clip(0.1)).astype(dtype)
    body = """
  const realv d_nearest = LOADV(d + i * LANES), steepness = LOADV(slope + i * LANES);
  for (int place = 0; place < 6; ++place)
    STOREV(SMAP_WEIGHT(LOADV(d + place * 16 + i * LANES), d_nearest, steepness), weights + place * 16 + i * LANES);
"""
    found = run_fragment(
        device, '#include "weights.clh"', body, {"d": d.T, "slope": slope}, {"weights": np.zeros((6, 16), dtype)},
        items=16 // lanes, dtype=dtype, lanes=lanes,
    )["weights"]  # fmt: skip
    away = (d - d[:, :1]).astype(np.float64) * slope[:, None]
    np.testing.assert_allclose(found.T, np.exp(-away), **close(dtype))
