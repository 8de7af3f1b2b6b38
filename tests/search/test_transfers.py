"""What a search sends to the device and fetches from it: each series once, and nothing but the result."""

from __future__ import annotations

import numpy as np
import pytest

import pyedmcl
from pyedmcl.device.opencl import OpenCLExecutor
from pyedmcl.search import choose, searcher

N = 4096


def smooth(n, seed=0):
    t = np.arange(n)
    return (np.sin(0.1 * t + seed) + 0.7 * np.sin(0.1 * np.sqrt(2) * t)).astype(np.float32)


@pytest.fixture
def transfers(monkeypatch):
    """Arrays that were uploaded, and those that were downloaded."""
    up, down = [], []
    upload, download = OpenCLExecutor.upload, OpenCLExecutor.download

    def counted_upload(self, array, *rest):
        up.append(np.array(array))
        return upload(self, array, *rest)

    def counted_download(self, buffer, into, *rest):
        down.append(into)
        return download(self, buffer, into, *rest)

    monkeypatch.setattr(OpenCLExecutor, "upload", counted_upload)
    monkeypatch.setattr(OpenCLExecutor, "download", counted_download)
    return up, down


def long_floats(arrays):
    """The arrays of numbers that are as long as a series."""
    return [array for array in arrays if array.dtype.kind == "f" and array.size >= N]


def check(up, down, k, *series):
    sent = long_floats(up)
    assert len(sent) == len(series)
    for array, values in zip(sent, series, strict=True):
        # Conditioned: a shift and a power of two, so that differences keep their order.
        assert array.size == len(values)
        np.testing.assert_array_equal(np.argsort(array.ravel(), kind="stable"), np.argsort(values, kind="stable"))
    (distances,) = long_floats(down)
    assert distances.shape == (len(series[-1]), k)
    (rows,) = [array for array in down if array.shape == distances.shape and array.dtype == np.int32]
    # What is left are numbers of visited leaves, one for each tile of queries.
    rest = [array for array in down if array is not rows and array is not distances]
    assert all(array.dtype == np.int32 and array.size <= N // 8 for array in rest)


@pytest.mark.parametrize("name", ["exhaustive", "pruned", "exact"])
def test_a_search_of_a_series_in_itself(one_device, transfers, name, monkeypatch):
    # "exact" is to look at the data: its probe and its search read the same copy of the series.
    monkeypatch.setattr(choose, "surely_exhaustive", lambda info, problem: (None,))
    monkeypatch.setattr(choose, "_not_worth_it", lambda *_: None)
    monkeypatch.setattr(choose, "_PROBE_MOST", np.inf)
    x = smooth(N)
    result = pyedmcl.knn(x, E=3, neighbors=name, device=one_device)
    why = {record["asked"]: record["why"] for record in result.provenance["neighbors"]}
    assert set(why) == ({name} if name != "exhaustive" else set())
    assert all("of all pairs" in reason for reason in why.values())  # pairs were probed, or searched
    check(*transfers, 4, x)


def test_a_search_with_a_horizon_lays_the_series_out_twice_on_the_device(one_device, transfers):
    x = smooth(N)
    pyedmcl.knn(x, E=3, Tp=2, neighbors="pruned", device=one_device)
    check(*transfers, 4, x)


def test_a_search_of_one_series_in_another(one_device, transfers):
    x, query = smooth(N), smooth(N + 100, 1)
    pyedmcl.knn(x, E=3, query=query, neighbors="pruned", device=one_device)
    check(*transfers, 4, x, query)


def test_sums_along_diagonals_read_the_same_copy(one_device, transfers, monkeypatch):
    for room in (choose, choose, searcher):
        monkeypatch.setattr(room, "shared_sums_pay", lambda *_: True)
    x = smooth(N)
    result = pyedmcl.knn(x, E=9, device=one_device)
    assert "shared along diagonals" in result.provenance["neighbors"][0]["why"]
    check(*transfers, 10, x)
