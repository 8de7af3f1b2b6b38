"""Remarks on tables whose columns or rows are not what they seem, in Python and in networks."""

from __future__ import annotations

import numpy as np
import pytest

import pyedmcl
from pyedmcl.table_check import remarks_on_table

N = 300
RNG = np.random.default_rng(8)
NOISE = RNG.standard_normal((N + 10, 3))
SERIES = {"a": NOISE[:N, 0], "b": NOISE[:N, 1]}


def said(data):
    return {remark.code: str(remark) for remark in pyedmcl.check(data, E_max=1).remarks}


def test_a_sound_table_has_none():
    walk = np.cumsum(RNG.standard_normal(N))
    counts = RNG.poisson(0.4, N).astype(float)  # neurons: few values, many rows that are equal
    told = said({**SERIES, "slow": np.convolve(NOISE[:, 2], np.ones(11), "valid"), "walk": walk, "counts": counts})
    assert not told.keys() & {"copies", "repeats", "gap-code", "labels", "few-returns"}
    assert "repeats" not in said({"spikes": counts, "others": RNG.poisson(0.4, N).astype(float)})


@pytest.mark.parametrize("gaps", [(), (7, 8, 100)])
def test_copies_in_other_units_and_shifted_ones(gaps):
    fahrenheit = np.round(32 + 1.8 * (15 + 5 * SERIES["a"]), 1)
    later = NOISE[3 : N + 3, 1].copy()
    for row in gaps:
        fahrenheit[row] = later[row] = np.nan
    found = [str(remark) for remark in pyedmcl.check({**SERIES, "F": fahrenheit, "later": later}, E_max=1).remarks
             if remark.code == "copies"]  # fmt: skip
    assert len(found) == 2
    assert found[0].startswith("'a', 'F' are one and the same series, perhaps in other units")
    assert found[1].startswith("'b', 'later' are one and the same series, some rows apart")


def test_chains_of_lags_are_one_group():
    lagged = {f"x(t-{lag})": NOISE[6 - lag : N + 6 - lag, 0] for lag in (0, 2, 6)}
    assert said(lagged)["copies"].startswith("'x(t-0)', 'x(t-2)', 'x(t-6)' are one")


def test_rows_that_occur_again():
    table = np.column_stack([*SERIES.values()])
    table[200:230] = table[50:80]
    table[55, 0] = table[205, 0] = np.nan
    told = said(table)["repeats"]
    assert told.startswith("rows 200 to 229 are equal to rows 50 to 79 in all columns: ")
    table[250:260] = table[10:20]
    assert "columns, and so do 10 others: " in said(table)["repeats"]
    table[:, 1] += np.arange(N)
    assert "repeats" not in said(table), "one column is another"


def test_numbers_that_stand_for_gaps():
    values = 12 + SERIES["a"]
    values[[3, 9, 200]] = -999.9
    assert "-999.9 occurs 3 times" in said({"a": values})["gap-code"] and "few-returns" not in said({"a": values})
    values[[3, 9, 200]] = 9.96921e36
    assert "9.96921e+36 occurs 3 times" in said({"a": values})["gap-code"]
    percent = RNG.integers(0, 100, N).astype(float)
    percent[4] = 99.0
    assert "gap-code" not in said({"a": percent}), "a value among others"
    percent[4] = 5000.0
    assert "gap-code" not in said({"a": percent}), "a value of its own"


def test_labels_are_no_series_and_told_once():
    site = np.repeat([4, 2, 9], N // 3)
    table = {"site": site, **SERIES}
    remarks = [remark for remark in pyedmcl.check(table, E_max=1).remarks if remark.series == "site"]
    assert [remark.code for remark in remarks] == ["labels"] and "groups='site'" in str(remarks[0])
    assert "labels" not in said({"site": np.repeat([0, 1, 0], N // 3), **SERIES}), "0, 1 and 0 again is a state"


def test_series_that_hardly_return():
    angle = 2 * np.pi * np.arange(N) / 150
    told = said({"x": np.sin(angle), "y": np.cos(angle) ** 3, **SERIES})["few-returns"]
    assert told.startswith("'x', 'y' pass their mean fewer than 8 times")
    assert "few-returns" not in said({"x": np.sin(8 * angle), **SERIES})


def test_short_tables_are_left_alone():
    assert remarks_on_table(pyedmcl.series.series.as_series(np.column_stack([np.arange(19.0)] * 2))) == []


def test_networks_tell_of_them(one_device):
    table = {**SERIES, "again": NOISE[1 : N + 1, 0]}
    options = {"E": 2, "surrogate": None, "convergence": False, "partial": False, "device": one_device}
    with pytest.warns(RuntimeWarning, match="'a', 'again' are one and the same series"):
        pyedmcl.causal_network(table, **options)
    with pytest.warns(RuntimeWarning, match="there are 40 rows"):
        pyedmcl.causal_network(NOISE[:40], **options)
