"""Dense blocks of distances: bit-equal to NumPy's exact emulation on every device, whatever the shape and tuning."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from loopy_helpers import needs_loopy

from pyedmcl.device.session import open_device
from pyedmcl.engines import distances as dense
from pyedmcl.engines.distances import METRICS, distance_block
from pyedmcl.errors import DeviceMemoryError, InputError
from pyedmcl.reference import fma32, fma64, knn_float32_exact, knn_float64_exact
from pyedmcl.tuning.parameters import ParameterChoice

FMA = {"float32": fma32, "float64": fma64}


def noise(n, seed, dtype="float32"):
    return np.random.default_rng(seed).standard_normal(n).astype(dtype)


def gappy(n, seed, dtype="float32"):
    x = noise(n, seed, dtype)
    x[[n // 3, n // 2]] = np.nan, np.inf
    return x


def expected(x, y, E, tau, metric, dtype):
    """Every cell, by the definition; NaN where a row has no coordinates."""
    x, y = x.astype(dtype), y.astype(dtype)
    out = np.full((len(x), len(y)), np.nan, dtype)
    i = [t for t in range((E - 1) * tau, len(x)) if np.isfinite(x[t - tau * np.arange(E)]).all()]
    j = [t for t in range((E - 1) * tau, len(y)) if np.isfinite(y[t - tau * np.arange(E)]).all()]
    i, j = np.array(i, int), np.array(j, int)
    acc = np.zeros((len(i), len(j)), dtype)
    for e in range(E):
        diff = x[i - e * tau][:, None] - y[j - e * tau][None, :]
        if metric == "euclidean":
            acc = FMA[dtype](diff, diff, acc)
        else:
            acc = acc + np.abs(diff) if metric == "manhattan" else np.maximum(acc, np.abs(diff))
    out[np.ix_(i, j)] = acc
    return out


def assert_bits(got, want):
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    whole = f"i{got.itemsize}"
    where = np.isfinite(want)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_array_equal(got[where].view(whole), want[where].view(whole))
    np.testing.assert_array_equal(got[~where], want[~where])


@pytest.fixture
def executor(device):
    return open_device(device)


# Around the work-group (64) and the tile of rows (4), and series shorter than the embedding.
SHAPES = [(1, 1), (4, 64), (5, 65), (131, 257), (258, 63), (2, 3)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("E", [1, 2, 3])
def test_shipped_texts_are_bit_equal(executor, E, metric, dtype):
    for n, m in SHAPES:
        make = gappy if min(n, m) > 100 else noise
        x, y = make(n, 1, dtype), make(m, 2, dtype)
        got = distance_block(executor, x, y, E=E, metric=metric, dtype=dtype)
        assert_bits(got, expected(x, y, E, 1, metric, dtype))


@needs_loopy
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("E", "tau"), [(1, 3), (3, 3), (10, 1), (20, 3)])
def test_generated_texts_are_bit_equal(executor, E, tau, dtype):
    x, y = gappy(131, 3, dtype), gappy(201, 4, dtype)
    for metric in METRICS:
        got = distance_block(executor, x, y, E=E, tau=tau, metric=metric, dtype=dtype)
        want = expected(x, y, E, tau, metric, dtype)
        assert np.isfinite(want).sum() > 100
        assert_bits(got, want)


@needs_loopy
def test_tuning_changes_no_bit(executor, monkeypatch):
    x, y = gappy(67, 5), gappy(133, 6)
    want = expected(x, y, 3, 1, "euclidean", "float32")
    for wg, rows in product((1, 16, 256), (1, 2, 8)):
        choice = ParameterChoice({"wg": wg, "rows": rows}, "test")
        monkeypatch.setattr(dense, "parameters", lambda *_, choice=choice: choice)
        assert_bits(distance_block(executor, x, y, E=3), want)


def test_a_square_is_fused(executor):
    # Without this the bit comparison could not tell a fused step from a product and a sum.
    x, y = noise(200, 7) + np.float32(1e4), noise(200, 8)
    got = distance_block(executor, x, y, E=3)
    assert_bits(got, expected(x, y, 3, 1, "euclidean", "float32"))
    diffs = [x[2 - e : 200 - e, None] - y[None, 2 - e : 200 - e] for e in range(3)]
    plain = sum((d * d for d in diffs[1:]), diffs[0] * diffs[0])
    assert plain.dtype == np.float32
    assert np.mean(plain != got[2:, 2:]) > 0.1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sorted_rows_are_the_oracles_neighbours(executor, dtype):
    x = gappy(150, 9, dtype)
    oracle = {"float32": knn_float32_exact, "float64": knn_float64_exact}[dtype]
    squared, rows = oracle(x, E=3, k=len(x), exclusion_radius=-1)
    got = distance_block(executor, x, x, E=3, dtype=dtype)
    order = np.argsort(got, axis=1, kind="stable")
    there = rows >= 0
    assert there.sum() > 10_000
    np.testing.assert_array_equal(order[there], rows[there])
    np.testing.assert_array_equal(np.take_along_axis(got, order, 1)[there], squared[there])


def test_ranges_are_cut_out_of_the_whole(executor):
    x, y = gappy(140, 10), gappy(170, 11)
    whole = expected(x, y, 3, 1, "maximum", "float32")
    for a, b, c, d in [(0, 140, 0, 170), (1, 2, 3, 4), (37, 102, 69, 70), (139, 140, 0, 170), (5, 138, 64, 129)]:
        got = distance_block(executor, x, y, E=3, metric="maximum", rows=(a, b), columns=(c, d))
        assert_bits(got, whole[a:b, c:d])
    assert distance_block(executor, x, y, E=3, rows=(7, 7)).shape == (0, 170)
    assert distance_block(executor, x, [], E=3).shape == (140, 0)


@pytest.mark.parametrize("limit", [1 << 10, 5000, 60_000])
def test_a_large_block_is_split(executor, limit, monkeypatch):
    x, y = gappy(90, 12), gappy(300, 13)
    want = expected(x, y, 2, 1, "euclidean", "float32")
    monkeypatch.setattr(dense, "_BLOCK_BYTES_MOST", limit)
    launches = []
    launch = executor.launch
    monkeypatch.setattr(executor, "launch", lambda *a, **k: launches.append(a) or launch(*a, **k))
    assert_bits(distance_block(executor, x, y, E=2), want)
    assert len(launches) > 90 * 300 * 4 // limit
    monkeypatch.setattr(dense, "_GROUPS_MOST", 1)
    assert_bits(distance_block(executor, x, y, E=2), want)
    assert all(size[1] == 1 for _, size, _ in launches[-3:])


def test_no_room_is_an_error_with_the_numbers(executor, monkeypatch):
    monkeypatch.setenv("PYEDMCL_MEMORY_LIMIT", "8")
    with pytest.raises(DeviceMemoryError, match=r"16 bytes .* 8 may be used"):
        distance_block(executor, noise(10, 1), noise(10, 2), E=1)


def test_overflow_is_infinite_and_gaps_are_not_a_number(executor):
    x = np.array([0, 3e38, np.nan, 1, 1e39], np.float64)
    got = distance_block(executor, x, x, E=1)
    assert got[0, 1] == np.inf
    assert got[0, 3] == 1
    assert np.isnan(got[2]).all()
    assert np.isnan(got[:, 4]).all()  # not a float32


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"E": 0}, "E = 0"),
        ({"tau": 0}, "tau = 0"),
        ({"E": 1.5}, r"E = 1\.5"),
        ({"metric": "cosine"}, "metric = 'cosine'.*euclidean"),
        ({"dtype": "float16"}, "dtype = 'float16'"),
        ({"rows": (0, 6)}, r"rows = \(0, 6\).*\[0, 5\)"),
        ({"columns": (3, 2)}, r"columns = \(3, 2\)"),
        ({"query": np.zeros((2, 2))}, "query has 2 axes"),
        ({"library": ["a", "b"]}, "library holds something"),
    ],
)
def test_bad_input_is_named(executor, change, said):
    arguments = {"query": np.arange(5.0), "library": np.arange(5.0), "E": 1, **change}
    with pytest.raises(InputError, match=said):
        distance_block(executor, **arguments)
