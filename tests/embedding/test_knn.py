"""All-kNN: bit-equal to the float32 oracle on every device, and right by the float64 second opinion."""

from __future__ import annotations

import re
from functools import cache

import naive
import numpy as np
import pytest
from knn_helpers import CASES, noise, quantised, with_gaps

import pyedmcl
from pyedmcl.errors import InputError
from pyedmcl.reference import knn_float32_exact, knn_float64_exact

# Few specialisations with many data sets each: a kernel is compiled per (E, tau, k) and device.
COMBOS = [(1, 1, 2), (3, 1, 4), (3, 3, 1), (3, 1, 64), (10, 3, 11), (20, 1, 21), (20, 3, 40)]
EPS32 = 2.0**-24


def fits(combo, case):
    """Whether the series holds an embedded row and some rows that could be neighbours."""
    (E, tau, _), (x, options) = combo, CASES[case]()
    shortest = min(len(x), len(options.get("query", x)))
    return shortest - (E - 1) * tau > abs(options.get("Tp", 0)) + 1


SWEEP = [pytest.param(combo, case, id=f"E{combo[0]}-tau{combo[1]}-k{combo[2]}-{case}")
         for combo in COMBOS for case in CASES if fits(combo, case)]  # fmt: skip


@cache
def float32_oracle(combo, case):
    (E, tau, k), (x, options) = combo, CASES[case]()
    return knn_float32_exact(x, E=E, tau=tau, k=k, **options)


@pytest.mark.parametrize(("combo", "case"), SWEEP)
def test_bit_equal_to_the_float32_oracle(device, combo, case):
    (E, tau, k), (x, options) = combo, CASES[case]()
    squared, rows = float32_oracle(combo, case)
    result = pyedmcl.knn(x, E=E, tau=tau, k=k, device=device, **options)
    assert result.indices.dtype == np.int32
    assert result.indices.shape == result.distances.shape == (len(options.get("query", x)), k)
    np.testing.assert_array_equal(result.indices, rows)
    np.testing.assert_array_equal(np.asarray(result.distances, np.float32), np.sqrt(squared))


@pytest.mark.parametrize("combo", COMBOS, ids=str)
def test_devices_agree_to_the_last_bit(both_devices, combo):
    E, tau, k = combo
    x = with_gaps(naive.noisy_maps(1, 1000, 30)[:, 0], 30)
    first, second = (pyedmcl.knn(x, E=E, tau=tau, k=k, Tp=1, device=device) for device in both_devices)
    assert (first.indices >= 0).any()
    np.testing.assert_array_equal(first.indices, second.indices)
    np.testing.assert_array_equal(first.distances, second.distances)


@cache
def series_with_opinion(combo):
    E, tau, k = combo
    several = (noise(1000, 40), naive.noisy_maps(1, 1000, 41)[:, 0], naive.coupled_maps(3, 1000, 42)[:, 2])
    return [(x, *naive.knn(x, E, tau, k)) for x in several]


@pytest.mark.parametrize("combo", COMBOS, ids=str)
def test_indices_differ_from_float64_only_in_near_ties(device, combo):
    E, tau, k = combo
    slots = differing = 0
    for x, indices, distances in series_with_opinion(combo):
        got = pyedmcl.knn(x, E=E, tau=tau, k=k, device=device).indices
        slots += got.size
        for t, slot in zip(*np.nonzero(got != indices), strict=True):
            differing += 1
            j = got[t, slot]
            steps = np.arange(E) * tau
            squared = ((x[t - steps].astype(np.float64) - x[j - steps]) ** 2).sum()
            # Each of E differences, squares and sums rounds once: two distances this near may swap.
            assert abs(squared - distances[t, slot] ** 2) <= 4 * (E + 2) * EPS32 * squared, (t, slot)
    assert differing <= 1e-3 * slots


@pytest.mark.parametrize(("E", "tau", "k"), [(3, 1, 4), (10, 3, 11)])
@pytest.mark.parametrize("case", ["257", "gaps-negative-Tp", "ties", "cross-longer", "few-legal"])
def test_float64(device, E, tau, k, case):
    x, options = CASES[case]()
    x = x.astype(np.float64) + (0 if "ties" in case else 1e-9 * np.arange(len(x)))  # not representable in float32
    if "query" in options:
        options = options | {"query": options["query"].astype(np.float64) * 1.000000001}
    result = pyedmcl.knn(x, E=E, tau=tau, k=k, dtype="float64", device=device, **options)
    indices, distances = naive.knn(x, E, tau, k, **options)
    np.testing.assert_array_equal(result.indices, indices)
    np.testing.assert_allclose(result.distances, distances, rtol=1e-10, atol=1e-10)
    squared, rows = knn_float64_exact(x, E=E, tau=tau, k=k, **options)
    np.testing.assert_array_equal(result.indices, rows)
    np.testing.assert_array_equal(result.distances, np.sqrt(squared))


def test_rules_by_hand(device):
    x = np.array([0, 5, 1, 6, 2, 7, 3, np.nan, 4, 9], dtype=np.float32)
    result = pyedmcl.knn(x, E=1, k=2, Tp=1, device=device)
    # Row 6 has no finite target (row 7 is a gap), row 9 none at all: neither is a neighbour, both are asked.
    expected = [[2, 4], [3, 8], [0, 4], [1, 5], [2, 0], [3, 1], [4, 8], [-1, -1], [1, 3], [5, 3]]
    np.testing.assert_array_equal(result.indices, expected)
    assert np.isinf(result.distances[7]).all()
    np.testing.assert_array_equal(result.distances[9], [2, 3])


def test_defaults_are_one_more_than_dimensions_and_the_row_itself_left_out(device):
    x = quantised(257, 50)
    result = pyedmcl.knn(x, E=3, device=device)
    assert result.indices.shape == (257, 4)
    assert (result.indices[:2] == -1).all() and np.isinf(result.distances[:2]).all()
    assert (result.indices[2:] != np.arange(2, 257)[:, None]).all()
    assert (result.distances[2:, 0] == 0).any(), "exclusion is by row, never by distance"


def test_input_is_left_alone_and_layout_does_not_matter(one_device):
    table = naive.noisy_maps(3, 257, 51)
    before = table.copy()
    plain = pyedmcl.knn(table[:, 1].copy(), E=3, device=one_device)
    strided = pyedmcl.knn(table[:, 1], E=3, device=one_device)
    np.testing.assert_array_equal(plain.indices, strided.indices)
    np.testing.assert_array_equal(plain.distances, strided.distances)
    np.testing.assert_array_equal(table, before)
    pyedmcl.knn(np.arange(300), E=3, device=one_device)  # integers are numbers too


SERIES = noise(100, 60)
INFINITE = SERIES.copy()
INFINITE[37] = np.inf


@pytest.mark.parametrize(
    ("x", "options", "words"),
    [
        (SERIES, {"E": 0}, r"\bE\b"),
        (SERIES, {"E": -3}, r"\bE\b"),
        (SERIES, {"E": 2.5}, r"\bE\b.*2\.5"),
        (SERIES, {"E": 3, "tau": 0}, r"\btau\b"),
        (SERIES, {"E": 3, "tau": -1}, r"\btau\b"),
        (SERIES, {"E": 3, "k": 0}, r"\bk\b"),
        (SERIES, {"E": 3, "exclusion_radius": -1}, r"exclusion_radius"),
        (SERIES, {"E": 3, "Tp": 0.5}, r"\bTp\b"),
        (SERIES, {"E": 3, "dtype": "float16"}, r"float16.*float32|float32.*float16"),
        (INFINITE, {"E": 3}, r"(?i)inf.*\b37\b"),
        (SERIES, {"E": 3, "query": INFINITE}, r"(?i)query.*\b37\b"),
        (np.array(["a", "b", "c", "d"] * 10), {"E": 3}, r"(?i)numeric|numbers"),
        (np.zeros((20, 3, 2), np.float32), {"E": 3}, r"(?i)one series|1-D|shape"),
        (np.zeros((100, 3), np.float32), {"E": 3}, r"(?i)one series|1-D|shape|\b3 series"),
        (np.zeros(0, np.float32), {"E": 3}, r"(?i)no values|empty|rows"),
    ],
)
def test_bad_input_is_refused_with_the_reason(x, options, words):
    with pytest.raises(InputError, match=words):
        pyedmcl.knn(x, **options)


def test_too_short_a_series_says_how_many_rows_are_needed():
    with pytest.raises(InputError) as caught:
        pyedmcl.knn(noise(20, 61), E=10, tau=3)
    numbers = {int(digits) for digits in re.findall(r"\d+", str(caught.value))}
    assert 20 in numbers, "how many rows there are"
    assert numbers & set(range(28, 28 + 12)), "how many are needed: (E-1)*tau + 1, and some neighbours"
