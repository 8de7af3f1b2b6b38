"""Remarks on tables: each thing that misleads in silence is named once, and sound tables are left alone."""

from __future__ import annotations

import numpy as np
import pytest

import pyedmcl
from pyedmcl.errors import InputError
from pyedmcl.series.series import Series
from pyedmcl.states.arguments import remarks_on_times

RNG = np.random.default_rng(5)
NOISE = RNG.standard_normal((400, 2))
MONTHS = np.arange("1990-01", "2023-05", dtype="datetime64[M]").astype("datetime64[D]")
SEASON = 2 * np.sin(2 * np.pi * np.arange(400) / 12)


def codes(data, **options):
    return [remark.code for remark in pyedmcl.check(data, **options).remarks]


def table(values, time=None):
    return Series(np.ascontiguousarray(values), tuple("abcdefgh"[: values.shape[1]]), time)


def test_a_sound_table_has_nothing_to_remark():
    found = pyedmcl.check(table(NOISE, MONTHS))
    assert found.remarks == () and str(found) == "nothing to remark" and (found.n_steps, found.n_series) == (400, 2)


@pytest.mark.parametrize(
    ("time", "code", "words"),
    [
        (np.delete(np.arange(403), [10, 11, 200])[:400], "time-gaps", "3 rows are missing in 2 places"),
        (np.tile(np.arange(100.0), 4), "time-back", "goes back 3 times, first in row 100"),
        (np.repeat(np.arange(200), 2), "time-double", "200 rows have the time"),
        (np.cumsum(np.where(np.arange(400) % 5, 1.0, 0.2)), "time-uneven", "79 of 399 steps"),
        (np.delete(MONTHS, 7)[:399], "time-gaps", "1 row is missing"),
    ],
)
def test_times(time, code, words):
    found = pyedmcl.check(table(NOISE[: len(time)], time))
    assert [remark.code for remark in found.remarks] == [code]
    assert words in str(found)


def test_text_of_an_index_is_read_as_dates():
    pandas = pytest.importorskip("pandas", reason="frames as input need pandas")
    days = np.delete(MONTHS, [7, 8]).astype(str)
    frame = pandas.DataFrame({"a": NOISE[: len(days), 0]}, index=days[: len(NOISE)])
    assert codes(frame) == ["time-gaps"] and "2 rows are missing" in str(pyedmcl.check(frame))
    for row in (0, len(days) - 1):
        frame.index = [*days[:row], "spring 1990", *days[row + 1 :]]
        with pytest.raises(InputError, match=f"the index holds times, but 'spring 1990' in row {row} is none"):
            pyedmcl.check(frame)
    frame.index = [f"week {i}" for i in range(len(days))]
    assert codes(frame) == ["reading"] and "does not read as dates" in str(pyedmcl.check(frame))


def test_times_that_say_nothing():
    assert remarks_on_times(None) == [] and remarks_on_times(np.array(["x", "y", "z"])) == []
    assert remarks_on_times(np.arange(2)) == []
    assert remarks_on_times(MONTHS) == [], "months and years differ in length"


def test_seasons_trends_walks_ties_gaps_and_constants():
    assert codes(NOISE + SEASON[:, None]) == ["season", "season", "common-season"]
    assert "share a cycle of 12 rows ('x0', 'x1'): they" in str(pyedmcl.check(NOISE + SEASON[:, None]))
    assert codes(NOISE + np.column_stack([SEASON, 0 * SEASON])) == ["season"]
    assert codes(NOISE[:, :1] + 0.01 * np.arange(400)[:, None]) == ["trend"]
    assert codes(np.cumsum(NOISE[:, :1], axis=0)) == ["wanders"]
    assert codes(np.round(NOISE[:, :1])) == ["ties"]
    gaps = NOISE.copy()
    gaps[3, 0] = np.nan
    assert codes(gaps) == ["gaps"] and codes(np.ones((400, 1))) == ["constant"]
    assert "of 12 rows explains" in str(pyedmcl.check(NOISE + SEASON[:, None]))


def test_sizes():
    assert codes(NOISE[:60]) == ["few-rows"] and codes(NOISE[:60], E_max=2) == []
    assert codes(RNG.standard_normal((60, 61)), E_max=2)[0] == "on-its-side"
    with pytest.raises(InputError, match="E_max=0"):
        pyedmcl.check(NOISE, E_max=0)


def test_networks_tell_of_times(one_device):
    data = table(NOISE[:100], np.tile(np.arange(50.0), 2))
    options = {"E": 2, "lags": None, "surrogate": None, "convergence": False, "partial": False, "device": one_device}
    with pytest.raises(InputError, match="the time goes back 1 time, first in row 50"):
        pyedmcl.causal_network(data, **options)
    with pytest.warns(RuntimeWarning, match="the time goes back 1 time, first in row 50"):
        pyedmcl.causal_network(data, regular="ignore", **options)


def test_check_tells_of_its_progress():
    told, data = [], np.random.default_rng(1).random((60, 3))
    pyedmcl.check(data, progress=lambda done, total, unit: told.append((done, unit)))
    assert told == [(1, "series"), (2, "series"), (3, "series")]
    with pytest.raises(InputError, match="progress=1"):
        pyedmcl.check(data, progress=1)


def test_groups_are_looked_at_one_by_one():
    """A time that begins anew is none, and neither is a level that differs between recordings a trend."""
    time = np.tile(np.arange(100.0), 4)
    time[150:200] += 3  # three rows are missing in the second
    values = NOISE + np.repeat([0.0, 9, 18, 27], 100)[:, None]
    values[200:, 1] = 1.0
    labels = np.repeat(["r", "s", "t", "u"], 100)
    assert "time-back" in codes(table(values, time))
    found = {remark.code: str(remark) for remark in pyedmcl.check(table(values, time), groups=labels, E_max=3).remarks}
    assert sorted(found) == ["constant", "time-gaps"]
    assert found["time-gaps"].startswith("group s: 3 rows are missing")
    assert found["constant"].startswith("b: group t: ") and "(and so in 1 more groups)" in found["constant"]
    short = np.where(np.arange(400) < 395, "a", "b")
    assert "short-groups" in codes(table(NOISE), groups=short) and "short-groups" not in codes(table(NOISE))
    with pytest.raises(InputError, match="groups"):
        pyedmcl.check(table(NOISE), groups=labels[:-1])
