"""Windows that overlap share their search: the same bits as a search for each."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from window_helpers import TABLE

import pyedmcl
from pyedmcl.device.quirks import quirks_for
from pyedmcl.device.select import open_device
from pyedmcl.search import searcher


@pytest.mark.parametrize(
    ("own", "kind"),
    [
        ({}, "ties"), ({"E": [1, 4, 2], "tau": 3, "exclusion_radius": 5}, "gaps"), ({"targets": [1]}, "gaps"),
        ({"E": 8}, "smooth"), ({"knn": 9, "dtype": "float64"}, "ties"),
    ],
)  # fmt: skip
def test_windows_that_overlap_share_their_search(device, own, kind):
    """Numbers of float32 are the same in all windows, so that distances are found once; near rows tie, or lie apart."""
    values = TABLE.astype(np.float32)
    if kind == "ties":
        values = np.round(values * 4) / 4
        values[60:120, 2] = 1.0
    elif kind == "gaps":
        values[90, 1] = np.nan
    own = {"E": 3, "device": device} | own
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a series that never changes within a window
        found = pyedmcl.xmap(values, windows=(61, 5), **own)
        for window, start in list(enumerate(found.starts))[::7]:
            alone = pyedmcl.xmap(values[start : start + 61], **own)
            np.testing.assert_array_equal(found.rho[window], alone.rho)


def test_shared_searches_are_those_of_the_kernel(one_device, monkeypatch):
    """Where windows overlap, data are float32 and states lead to their own row; in small tables, too."""
    if quirks_for(open_device(one_device).info).scalar_work_items:
        pytest.skip("GPUs search each window by itself")
    made = []
    fill = searcher.WindowSearch._fill
    monkeypatch.setattr(searcher.WindowSearch, "_fill", lambda *args: made.append(args[1]) or fill(*args))
    values = TABLE.astype(np.float32)
    expected = pyedmcl.xmap(values, E=2, windows=(61, 5), device=one_device).rho
    assert len(made) == 1
    for skipped in ({"windows": (61, 40)}, {"Tp": 1}):
        pyedmcl.xmap(values, **({"E": 2, "windows": (61, 5), "device": one_device} | skipped))
    pyedmcl.xmap(TABLE, E=2, windows=(61, 5), device=one_device)
    assert len(made) == 1
    monkeypatch.setattr("pyedmcl.search.tables._TABLE_LEAST", 1 << 13)
    monkeypatch.setattr("pyedmcl.search.tables._TIMES_DATA", 0)
    np.testing.assert_array_equal(pyedmcl.xmap(values, E=2, windows=(61, 5), device=one_device).rho, expected)
    assert len(made) > 5
