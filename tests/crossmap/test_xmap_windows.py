"""Maps of windows along series: the same bits as a call for each, and skill over time."""

from __future__ import annotations

import numpy as np
import pandas
import pytest
import xarray
from window_helpers import GAPS, SLICES, TABLE

import pyedmcl
from pyedmcl.errors import InputError
from pyedmcl.series.regular import windows_of


@pytest.mark.parametrize("E", [2, [1, 3, 2], "auto"])
@pytest.mark.parametrize("values", [TABLE, GAPS], ids=["whole", "gaps"])
def test_maps_have_the_bits_of_a_call_for_each_window(device, E, values):
    own = {"E": E, "tau": 2, "Tp": 1, "exclusion_radius": 1, "E_max": 3, "device": device}
    found = pyedmcl.xmap(values, windows=(120, 35), **own)
    assert found.rho.shape == (3, 3, 3) and found.starts.tolist() == [0, 35, 70] and found.width == 120
    for window, rows in enumerate(SLICES):
        alone = pyedmcl.xmap(values[rows], **own)
        np.testing.assert_array_equal(found.rho[window], alone.rho)
        np.testing.assert_array_equal(found.E[window], alone.E)


@pytest.mark.parametrize(
    "own", [{"method": "smap", "theta": 1.5}, {"skill": "mae"}, {"folds": 2, "E": "auto", "E_max": 2}],
    ids=["smap", "mae", "folds"],
)
def test_maps_by_other_engines(own, one_device):
    own = {"E": 2, "Tp": 1, "device": one_device} | own
    found = pyedmcl.xmap(GAPS, windows=(120, 35), **own)
    assert found.skill == own.get("skill", "pearson")
    for window, rows in enumerate(SLICES):
        np.testing.assert_array_equal(found.rho[window], pyedmcl.xmap(GAPS[rows], **own).rho)
    best = found.edges(top=1)[0].rho
    means = found.mean()[~np.eye(3, dtype=bool)]
    assert best == pytest.approx(means.min() if "skill" in own else means.max())


def test_maps_of_other_targets(one_device):
    own = {"targets": TABLE[:, 1:], "E": [3, 2], "dtype": "float64", "device": one_device}
    found = pyedmcl.xmap(GAPS, windows=[120, 35], **own)
    assert found.targets == ("y0", "y1") and found.rho.shape == (3, 3, 2)
    for window, rows in enumerate(SLICES):
        alone = pyedmcl.xmap(GAPS[rows], **(own | {"targets": TABLE[rows, 1:]}))
        np.testing.assert_array_equal(found.rho[window], alone.rho)


def test_time_is_the_middle_of_a_window(tmp_path, one_device):
    days = pandas.date_range("2001-01-01", periods=200, freq="D")
    found = pyedmcl.xmap(pandas.DataFrame(TABLE, index=days), E=2, windows=(120, 80), device=one_device)
    assert found.time.tolist() == pandas.to_datetime(["2001-03-01 12:00", "2001-05-20 12:00"]).to_numpy().tolist()
    numbers = xarray.DataArray(TABLE, dims=("time", "x"), coords={"time": np.arange(200) * 0.5})
    assert windows_of((121, 79), 200).times(numbers["time"].values).tolist() == [30.0, 69.5]
    frame = found.to_frame()
    assert len(frame) == 2 * 6 and not (frame["cause"] == frame["effect"]).any()
    assert frame["start"].unique().tolist() == [0, 80]
    assert (frame["end"] - frame["start"]).unique().tolist() == [120]
    assert (frame["cause"] == frame["target"]).all() and (frame["effect"] == frame["library"]).all()
    one = frame[(frame["library"] == "1") & (frame["target"] == "0")]
    np.testing.assert_array_equal(one["rho"], found.rho[:, 1, 0])
    strongest = found.edges(top=1)[0]
    assert strongest.rho == pytest.approx(max(found.mean()[~np.eye(3, dtype=bool)]))
    figure = found.plot(tmp_path / "w.png")
    figure.draw_without_rendering()
    words = [label.get_text() for label in figure.axes[0].get_xticklabels()]
    assert "Apr" in words and max(map(len, words)) < 8, "dates in few words, as in other pictures"
    assert (tmp_path / "w.png").stat().st_size > 1000


@pytest.mark.parametrize(
    ("windows", "more", "said"),
    [
        (5, {}, "windows=5: a pair (width, step) of numbers of rows is needed"),
        ((300, 1), {}, "windows=(300, 1): a window of 300 rows is longer than the 200 there are"),
        ((3, 1), {}, "windows=(3, 1): E=2, tau=2, Tp=0 needs windows of at least 4 rows"),
        ((50, 0), {}, "windows=0: an integer of at least 1 is needed"),
        ((50, 5), {"keep": "top:1"}, "windows=(50, 5) cannot be used with keep="),
        ((50, 5), {"method": "smap", "theta": [0, 1]}, "theta=[0, 1] with windows=(50, 5): it takes one map"),
        ((50, 5), {"groups": np.arange(200) // 50}, "windows=(50, 5) cannot be used with groups=: windows may"),
        ((50, 5), {"lib_range": (0, 40)}, "windows=(50, 5) cannot be used with lib_range=: a window is its own"),
        ((50, 5), {"folds": 60}, "folds=60"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(windows, more, said):
    with pytest.raises(InputError) as caught:
        pyedmcl.xmap(TABLE, E=2, tau=2, windows=windows, **more)
    assert said in str(caught.value)
