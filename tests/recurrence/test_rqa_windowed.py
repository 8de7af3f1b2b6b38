"""Windowed quantification: each window is what it would be alone, however windows overlap and share work."""

from __future__ import annotations

import numpy as np
import pytest
from rqa_oracle import expected

import pyedmcl
from pyedmcl.errors import InputError
from pyedmcl.recurrence import windowed as sharing
from pyedmcl.tuning.parameters import using


def series(n, seed=0):
    return np.cumsum(np.random.default_rng(seed).standard_normal(n)) / 3


CASES = {
    "plain": (400, 100, 30, {"radius": 0.8}),
    "embedded-lags": (330, 97, 41, {"m": 3, "tau": 2, "radius": 1.3, "theiler": 4, "metric": "maximum"}),
    "everywhere": (300, 64, 7, {"m": 2, "radius": 1.0, "theiler": 5, "convention": "recurrenceanalysis"}),
    "identity": (200, 33, 50, {"radius": 0.5, "theiler": 0, "metric": "manhattan", "exact": False}),
    "accrqa": (150, 32, 1, {"radius": 0.5, "convention": "accrqa", "dtype": "float64"}),
    "corridor": (260, 129, 60, {"m": 2, "radius": (0.3, 1.1), "threshold": "corridor"}),
    "one": (90, 90, 5, {"radius": 30.0}),
}


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_each_window_is_what_it_is_alone(device, case, gaps):
    n, window, step, options = CASES[case]
    x = series(n, n)
    if gaps:
        x[[0, n // 2, n - 1]] = np.nan
    table = pyedmcl.windowed_rqa(x, window, step, device=device, **options)
    assert table.label == "start" and table.labels == tuple(range(0, n - window + 1, step))
    for start, found in zip(table.labels, table, strict=True):
        wanted = expected(x[start : start + window], **options)
        assert found.counts == wanted, (start, found.counts.differences(wanted))


def test_several_states_and_given_points(one_device):
    x = np.stack([series(120, 1), series(120, 2)], axis=1)
    table = pyedmcl.windowed_rqa(x, 40, 16, m=2, tau=3, radius=1.5, device=one_device)
    for start, found in zip(table.labels, table, strict=True):
        part = x[start : start + 40]
        assert found.counts == expected(np.concatenate([part[:-3], part[3:]], axis=1), radius=1.5)
    given = pyedmcl.windowed_rqa(x, 40, 16, embedded=True, radius=1.0, device=one_device)
    assert given[3].counts == expected(x[48:88], radius=1.0)


@pytest.mark.parametrize("together", [1, 3, 8])
def test_parts_of_the_series_change_nothing(one_device, monkeypatch, together):
    x, options = series(300, 3), {"m": 2, "radius": 0.9, "device": one_device}
    whole = pyedmcl.windowed_rqa(x, 80, 20, **options)
    monkeypatch.setattr("pyedmcl.recurrence.windowed.part_size", lambda *_: together)
    for one, other in zip(whole, pyedmcl.windowed_rqa(x, 80, 20, **options), strict=True):
        assert one.counts == other.counts


def test_windows_whose_bits_do_not_fit_are_divided_like_any_matrix(one_device, monkeypatch):
    x, options = series(200, 4), {"radius": 0.9, "device": one_device}
    whole = pyedmcl.windowed_rqa(x, 80, 40, **options)
    monkeypatch.setattr("pyedmcl.recurrence.windowed.part_size", lambda *_: 0)
    for one, other in zip(whole, pyedmcl.windowed_rqa(x, 80, 40, **options), strict=True):
        assert one.counts == other.counts


def test_memory_decides_how_many_windows_go_together(one_device, monkeypatch):
    from pyedmcl.device.select import open_device

    executor = open_device(one_device)
    many = sharing.part_size(executor, 1000, 100, 500, 80_000)
    monkeypatch.setenv("PYEDMCL_MEMORY_LIMIT", "1000000")
    few = sharing.part_size(executor, 1000, 100, 500, 80_000)
    assert many > few >= 1
    monkeypatch.setenv("PYEDMCL_MEMORY_LIMIT", "200000")
    assert sharing.part_size(executor, 1000, 100, 500, 80_000) == 0


def test_tuned_parameters_change_nothing(device):
    x, options = series(260, 5), {"m": 2, "radius": 0.9, "device": device}
    wanted = pyedmcl.windowed_rqa(x, 90, 30, **options)
    for wg, counting in ((32, 32), (8, 1), (64, 128)):
        with using(recurrence_windows={"wg": wg, "counting_wg": counting}):
            for one, other in zip(wanted, pyedmcl.windowed_rqa(x, 90, 30, **options), strict=True):
                assert one.counts == other.counts


@pytest.mark.parametrize("together", [0, 2])
def test_progress_counts_windows_and_nothing_else(one_device, monkeypatch, together):
    monkeypatch.setattr("pyedmcl.recurrence.windowed.part_size", lambda *_: together)
    seen = []
    pyedmcl.windowed_rqa(series(200, 6), 50, 50, radius=0.7, progress=lambda *at: seen.append(at), device=one_device)
    assert seen == [(n, 4, "windows") for n in range(0, 5, max(together, 1))]


def test_several_devices_share_the_windows(both_devices, monkeypatch):
    monkeypatch.setattr(sharing, "_POINTS", 1)  # blocks of two windows
    x, options = series(400, 7), {"m": 2, "radius": 0.9}
    whole = pyedmcl.windowed_rqa(x, 60, 30, device=both_devices[0], **options)
    shared = pyedmcl.windowed_rqa(x, 60, 30, device=list(both_devices), **options)
    assert shared.labels == whole.labels and len(shared.labels) > 4
    for one, other in zip(whole, shared, strict=True):
        assert one.counts == other.counts


def test_table_of_windows(one_device):
    seen = []
    x = series(200, 6)
    table = pyedmcl.windowed_rqa(
        x, 50, 25, radius=0.7, progress=lambda *at: seen.append(at), device=one_device
    )
    assert seen[-1] == (7, 7, "windows")
    frame = table.to_frame()
    assert list(frame.index) == [0, 25, 50, 75, 100, 125, 150] and frame.index.name == "start"
    np.testing.assert_array_equal(frame["determinism"], table.measure("DET"))
    assert table.with_minimum(lmin=4)[2].DET == table[2].with_minimum(lmin=4).DET
    with pytest.raises(InputError, match="measure 'XYZ'"):
        table.measure("XYZ")


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"window": 101}, "window=101: .* at most the 100 of x"), ({"window": 5}, "window=5: a window has at least 6"),
     ({"step": 0}, "step=0"), ({"progress": 3}, "progress=3: a function is needed"),
     ({"theiler": 46}, "theiler=46 leaves no cell of a 46 x 46 matrix"),
     ({"radius": [1.0, 2.0]}, "one radius"), ({"threshold": "recurrence_rate", "radius": 0.1}, "threshold="),
     ({"threshold": "neighbours", "radius": 3}, "threshold=")],
)  # fmt: skip
def test_bad_input(one_device, changes, message):
    given = {"window": 50, "step": 10, "m": 3, "tau": 2, "radius": 1.0, **changes}
    with pytest.raises(InputError, match=message):
        pyedmcl.windowed_rqa(series(100), given.pop("window"), given.pop("step"), device=one_device, **given)


def test_a_step_beyond_the_series_leaves_one_window(one_device):
    table = pyedmcl.windowed_rqa(series(100), 50, 2**40, radius=1.0, device=one_device)
    assert len(table) == 1 and table[0].counts == expected(series(100)[:50], radius=1.0)
    assert table[0].provenance["step"] == 2**40


def test_short_or_close_windows_share_distances(one_device, monkeypatch):
    from pyedmcl.recurrence import windowed

    ways = []
    monkeypatch.setattr("pyedmcl.recurrence.windowed.part_size", lambda *_: ways.append("shared") or 0)
    monkeypatch.setattr(windowed, "_SHORT", 50)
    monkeypatch.setattr(windowed, "_CLOSE", 10)
    options = {"radius": 1.0, "device": one_device}
    for window, step, way in ((50, 50, ["shared"]), (90, 10, ["shared"]), (90, 45, [])):
        ways.clear()
        assert pyedmcl.windowed_rqa(series(180), window, step, **options)[1].counts == expected(
            series(180)[step : step + window], radius=1.0
        )
        assert ways == way


@pytest.mark.parametrize("case", ["plain", "embedded-lags", "everywhere", "corridor"])
def test_windows_of_two_series(device, case):
    n, window, step, options = CASES[case]
    x, y = series(n, n), series(n, n + 1)
    y[n // 2] = np.nan
    table = pyedmcl.windowed_rqa(x, window, step, y=y, device=device, **options)
    for start, found in zip(table.labels, table, strict=True):
        here = slice(start, start + window)
        alone = pyedmcl.rqa(x[here], y[here], device=device, **options)
        assert found.counts == alone.counts, (start, found.counts.differences(alone.counts))
        assert found.to_dict() == pytest.approx(alone.to_dict(), nan_ok=True) and not found.symmetric


def test_windows_of_two_series_share_a_unit_and_are_counted(one_device):
    x, y, seen = series(120, 1), series(120, 2), []
    table = pyedmcl.windowed_rqa(
        x, 40, 20, y=y, radius=0.3, radius_unit="std", progress=lambda *at: seen.append(at), device=one_device
    )
    assert {window.radius for window in table} == {pyedmcl.rqa(x, y, radius=0.3, radius_unit="std",
                                                               device=one_device).radius}  # fmt: skip
    assert seen[-1] == (5, 5, "windows")
    with pytest.raises(InputError, match="y: 50 points, and x has 120"):
        pyedmcl.windowed_rqa(x, 40, 20, y=y[:50], radius=0.3, device=one_device)
    with pytest.raises(InputError, match="accrqa"):
        pyedmcl.windowed_rqa(x, 40, 20, y=y, radius=0.3, convention="accrqa", device=one_device)
