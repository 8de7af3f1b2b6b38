"""Times of rows beyond the ends of a series: dates go on as the calendar does."""

from __future__ import annotations

import matplotlib.dates
import numpy as np
import pandas
import pytest

import pyedmcl
from pyedmcl.series.calendar import times_at
from pyedmcl.simulate import coupled_maps

X = coupled_maps(n_series=4, n_steps=400).values[:, 0].astype(np.float32)


@pytest.mark.parametrize("freq", ["D", "W", "h", "MS", "YS", "QS", "7D", "15min", "ME", "YE", "QE"])
@pytest.mark.parametrize("missing", [False, True])
def test_dates_go_on_as_pandas_would(freq, missing):
    whole = pandas.date_range("2001-01-31", periods=32, freq=freq)
    known = whole[2:30]
    known = known.delete(5) if missing else known
    n = len(known)
    found = times_at(np.asarray(known.values), np.array([-2, -1, 0, n - 1, n, n + 1]))
    assert found.tolist() == np.asarray(whole[[0, 1, 2, 29, 30, 31]].values).tolist()


def test_numbers_go_on_by_their_step():
    assert times_at(np.arange(1900, 1950), np.array([-1, 3, 50])).tolist() == [1899, 1903, 1950]
    np.testing.assert_allclose(times_at(np.arange(8) / 12 + 1958, np.array([7, 8])), [1958 + 7 / 12, 1958 + 8 / 12])
    assert times_at(None, np.arange(3)) is None


def test_what_has_no_step_is_unknown():
    found = times_at(np.array([1, 5, 6, 20]), np.array([2, 4]))
    assert found[0] == 6 and np.isnan(found[1])
    assert times_at(np.array(["a", "b"]), np.array([1, 2])).tolist() == ["b", ""]
    uneven = np.array(["2001-01-01", "2001-01-05", "2001-02-17"], "datetime64[D]")
    assert np.isnat(times_at(uneven, np.array([3]))[0])
    assert times_at(uneven, np.array([2]))[0] == uneven[2]


def dated(values):
    return pandas.Series(values, pandas.date_range("1990-01-31", periods=len(values), freq="ME"), name="algae")


def test_frames_of_predictions_have_dates(one_device):
    days, later = dated(X), pandas.Timestamp("1990-01-31") + pandas.offsets.MonthEnd(400)
    for result in (
        pyedmcl.simplex(days, E=3, device=one_device), pyedmcl.smap(days, E=3, theta=2.0, device=one_device),
        pyedmcl.multiview(pandas.DataFrame({"algae": days, "b": days * 2}), "algae", D=2, E=2, device=one_device),
    ):  # fmt: skip
        frame = result.to_frame()
        assert frame.time.iloc[-1] == later and result.time[-1] == 400
        assert frame.time.iloc[0] == days.index[result.time[0]]
        assert result.name == "algae"
    ahead = pyedmcl.simplex(days, E=3, generate_steps=3, device=one_device).to_frame()
    assert ahead.time.tolist() == [later + pandas.offsets.MonthEnd(steps) for steps in range(3)]
    sweep = pyedmcl.smap(days, E=3, theta=[0.0, 2.0], device=one_device)
    assert sweep.at(2.0).to_frame().time.equals(pyedmcl.smap(days, E=3, theta=2.0, device=one_device).to_frame().time)


def test_predictions_of_another_series_have_its_dates(one_device):
    result = pyedmcl.simplex(X[:200], dated(X)[200:], E=3, device=one_device)
    assert result.dates[0] == np.datetime64("2006-12-31")
    assert pyedmcl.simplex(X, E=3, device=one_device).dates is None


def test_the_axis_of_a_picture_has_dates(one_device):
    pytest.importorskip("matplotlib")
    result = pyedmcl.smap(dated(X), E=3, theta=2.0, device=one_device)
    course = result.plot().axes[0]
    assert course.get_xlabel().startswith("date") and course.get_ylabel() == "algae"
    slopes = result.plot_coefficients()
    slopes.canvas.draw()
    assert any("2020" in tick.get_text() for tick in slopes.axes[-1].get_xticklabels())


def test_windows_of_recurrence_have_dates(one_device, tmp_path):
    x = dated(X)
    table = pyedmcl.windowed_rqa(x, 100, 50, m=2, tau=3, radius=0.1, device=one_device)
    middle = x.index[[0, 99]].to_numpy().astype("M8[h]").astype(np.int64).mean()
    assert table.time[0] == np.datetime64(int(middle), "h") and len(table.time) == len(table)
    assert table[1:].time[0] == table.time[1]
    assert table.to_frame()["time"].to_numpy().astype("M8[h]").tolist() == table.time.astype("M8[h]").tolist()
    assert table.plot().axes[-1].get_xlabel() == "date"
    table.save(tmp_path / "t.edm")
    np.testing.assert_array_equal(pyedmcl.open_result(tmp_path / "t.edm").time, table.time)
    plain = pyedmcl.windowed_rqa(X, 100, 50, m=2, tau=3, radius=0.1, device=one_device)
    assert plain.time is None and "time" not in plain.to_frame()


def test_recurrence_plots_have_dates_where_points_are_even(one_device):
    x = dated(X)
    plot = pyedmcl.recurrence_plot(x, x.iloc[:300], m=2, tau=3, radius=0.1, pixels=50, device=one_device)
    assert [len(time) for time in plot.times] == [297, 397] and plot.times[1][0] == x.index[0]
    axes = plot.plot().axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("date of x", "date of y")
    assert matplotlib.dates.num2date(axes.get_xlim()[1]).date() >= x.index[396].date()
    uneven = x.set_axis(x.index[:200].append(x.index[:200] + pandas.Timedelta(days=5000)))
    taken = pyedmcl.distance_plot(uneven, pixels=50, regular="ignore", device=one_device)
    assert taken.plot().axes[0].get_xlabel() == "point"
