"""Thresholds selected among the distances: exactly the wanted order statistic, without the matrix."""

from __future__ import annotations

import numpy as np
import pytest

import pyedmcl
from pyedmcl.errors import DeviceMemoryError, InputError
from pyedmcl.recurrence import thresholds
from pyedmcl.recurrence.arguments import CONVENTIONS, METRICS
from pyedmcl.reference.recurrence import compared, points_of
from pyedmcl.tuning.parameters import using

RATES = [0.05, 0.3, 0.0013]
CASES = {
    "plain": ({}, False),
    "window": ({"theiler": 7, "metric": "maximum"}, False),
    "window-everywhere": ({"theiler": 7, "convention": "recurrenceanalysis", "metric": "manhattan"}, False),
    "float32": ({"exact": False, "theiler": 0, "convention": "crqa"}, False),
    "cross": ({"theiler": 3, "convention": "recurrenceanalysis"}, True),
    "cross-pyrqa": ({"metric": "maximum"}, True),
}


def data(cross):
    rng = np.random.default_rng(5)
    x = rng.standard_normal(230)
    x[50] = np.nan
    return x, rng.integers(0, 6, 171) / 4 if cross else None


def distances(x, y, exact, metric="euclidean", columns="x"):
    points = points_of(x, 3, 2, "float64" if exact else "float32")
    others = points if y is None else points_of(y, 3, 2, points.dtype)
    d = compared(points, others, metric).astype(float)
    return d.T if y is not None and columns == "x" else d


@pytest.mark.parametrize(
    ("case", "gathered"), [*((case, 1 << 20) for case in CASES), ("plain", 40), ("float32", 40), ("cross", 40)]
)
def test_recurrence_rate_is_reached_by_the_smallest_radius(device, monkeypatch, case, gathered):
    monkeypatch.setattr(thresholds, "_GATHERED", gathered)
    options, cross = CASES[case]
    x, y = data(cross)
    table = pyedmcl.rqa(x, y, m=3, tau=2, radius=RATES, threshold="recurrence_rate", device=device, **options)
    everywhere = options.get("convention", "pyrqa") != "pyrqa"
    window = options.get("theiler", 1) if everywhere else 0
    d = distances(x, y, options.get("exact", True), options.get("metric", "euclidean"))
    i, j = np.indices(d.shape)
    kept = np.sort(d[~np.isnan(d) & (np.abs(i - j) >= window)])
    every = cross or options.get("convention") in (None, "crqa")
    cells = np.count_nonzero(~np.isnan(d)) if every else len(kept)
    for rate, found in zip(RATES, table, strict=True):
        k = next(k for k in range(int(rate * cells), len(kept)) if k / cells >= rate)
        limit = kept[k - 1]
        assert found.counts.points == np.count_nonzero(kept <= limit)
        assert found.recurrence_rate >= rate
        assert within(kept, found.radius, options) == found.counts.points
        arithmetic = np.float64 if options.get("exact", True) else np.float32
        smaller = np.nextafter(arithmetic(found.radius), arithmetic(0))
        assert limit == 0 or smaller == 0 or within(kept, smaller, options) < k


@pytest.mark.parametrize("values", ["continuous", "codes"])
def test_several_rates_are_found_in_one_pass_over_the_matrix(one_device, monkeypatch, values):
    rng = np.random.default_rng(7)
    x = rng.standard_normal(3000) if values == "continuous" else rng.integers(0, 40, 3000).astype(float)
    passes = []
    sweep = thresholds.Ranks._sweep
    monkeypatch.setattr(thresholds.Ranks, "_sweep", lambda *args, **more: passes.append(0) or sweep(*args, **more))
    for rates in ([0.1], [0.05, 0.1, 0.2, 0.3]):
        passes.clear()
        found = pyedmcl.rqa(x, radius=rates, threshold="recurrence_rate", device=one_device)
        assert (found.measure("RR") >= rates).all()
        assert len(passes) <= (1 if values == "continuous" else 2)


def within(compared, radius, options):
    """How many distances lie within a radius, as the convention compares them."""
    number = np.float64(radius) if options.get("exact", True) else np.float32(radius)
    limit = number * number if options.get("metric", "euclidean") == "euclidean" else number
    limit = max(limit, np.finfo(number.dtype).tiny)  # a distance of 0 is below any radius
    return np.count_nonzero(compared < limit if options.get("convention", "pyrqa") == "pyrqa" else compared <= limit)


@pytest.mark.parametrize("case", CASES)
def test_neighbours_are_the_wanted_number(device, case):
    options, cross = CASES[case]
    x, y = data(cross)
    rules = options.get("convention", "pyrqa")
    d = distances(x, y, options.get("exact", True), options.get("metric", "euclidean"),
                  "y" if rules == "recurrenceanalysis" else "x")  # fmt: skip
    i, j = np.indices(d.shape)
    theiler = options.get("theiler", 1)
    outside = np.abs(i - j) >= (theiler if cross else max(theiler, 1))
    for k, found in zip(
        (1, 40), pyedmcl.rqa(x, y, m=3, tau=2, radius=[1, 40], threshold="neighbours", device=device, **options),
        strict=True,
    ):  # fmt: skip
        limit = np.sort(np.where(outside, d, np.nan), axis=0)[k - 1]
        recurrent = d <= limit
        if rules != "pyrqa":
            recurrent &= np.abs(i - j) >= theiler
        np.testing.assert_array_equal(found.recurrences, recurrent.sum(axis=0))
        assert ((recurrent & outside).sum(axis=0)[~np.isnan(limit)] >= k).all()


def test_joint_recurrence_takes_each_systems_own_rate(one_device):
    x, _ = data(False)
    y = np.random.default_rng(6).standard_normal(230)
    both = pyedmcl.joint_rqa(x, y, radius=0.2, radius_y=0.1, threshold="recurrence_rate", device=one_device)
    alone = pyedmcl.rqa(y, radius=0.1, threshold="recurrence_rate", device=one_device)
    assert 0 < both.counts.points < alone.counts.points
    found = pyedmcl.joint_rqa(x, y, radius=5, threshold="neighbours", device=one_device)
    assert found.recurrences.max() <= 6


def test_a_point_with_few_neighbours_recurs_with_all_it_has(device):
    x = np.random.default_rng(8).standard_normal(30)
    x[10:28] = np.nan
    found = pyedmcl.rqa(x, radius=15, threshold="neighbours", theiler=2, device=device)
    # Points 0 to 9, 28 and 29 are left: 12, of which those within the window recur if they are near enough.
    assert not found.recurrences[10:28].any()
    assert (found.recurrences[[0, 29]] >= 10).all() and (found.recurrences[5] >= 9)


def test_blocks_of_columns_change_nothing(one_device, monkeypatch):
    x, _ = data(False)
    options = {"m": 3, "tau": 2, "radius": 9, "threshold": "neighbours", "device": one_device}
    whole = pyedmcl.rqa(x, **options).counts
    rate = {**options, "radius": 0.1, "threshold": "recurrence_rate"}
    whole_rate = pyedmcl.rqa(x, **rate).counts
    monkeypatch.setattr(thresholds, "_COLUMNS", 64)
    assert pyedmcl.rqa(x, **options).counts == whole
    assert pyedmcl.rqa(x, **rate).counts == whole_rate


def test_tuned_parameters_change_nothing(device):
    x, _ = data(False)
    options = {"m": 3, "tau": 2, "threshold": "recurrence_rate", "radius": 0.07, "device": device}
    near = {**options, "threshold": "neighbours", "radius": 30}
    wanted, wanted_near = pyedmcl.rqa(x, **options).radius, pyedmcl.rqa(x, **near).recurrences
    for wg, candidates, after in ((32, 7, 1), (64, 31, 4)):
        with using(recurrence_ranks={"wg": wg, "candidates": candidates, "next": after}):
            assert pyedmcl.rqa(x, **options).radius == wanted
            np.testing.assert_array_equal(pyedmcl.rqa(x, **near).recurrences, wanted_near)


def test_ties_make_more_recurrences_never_fewer(one_device):
    x = np.resize([0.0, 1.0, 2.0], 90)
    found = pyedmcl.rqa(x, radius=0.1, threshold="recurrence_rate", device=one_device)
    assert 0 < found.radius < 1 and found.recurrence_rate == pytest.approx(1 / 3)
    assert pyedmcl.rqa(x, radius=found.radius, device=one_device).counts == found.counts
    assert (pyedmcl.rqa(x, radius=4, threshold="neighbours", device=one_device).recurrences == 30).all()


@pytest.mark.parametrize("arithmetic", [("float32", True), ("float64", True), ("float32", False)])
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("convention", CONVENTIONS)
def test_the_radius_of_a_rate_gives_its_result(one_device, convention, metric, arithmetic):
    """Also with ties, and where only equal points recur."""
    tied = np.random.default_rng(0).integers(0, 6, 170).astype(float)
    walk = np.cumsum(np.random.default_rng(1).standard_normal(170))
    options = {"convention": convention, "metric": metric, "m": 3, "tau": 2, "device": one_device}
    options |= dict(zip(("dtype", "exact"), arithmetic, strict=True))
    for x in (tied, walk, np.resize([1.0, 2.0, 4.0], 60), walk * 1e200, walk * 1e-200, tied * 1e-310):
        rates = [0.05, 0.3]
        table = pyedmcl.rqa(x, radius=rates, threshold="recurrence_rate", **options)
        for rate, found in zip(rates, table, strict=True):
            assert rate <= found.recurrence_rate <= 1 and found.radius >= 0
            assert found.radius > 0 or (convention != "pyrqa" and found.counts.points)
            assert pyedmcl.rqa(x, radius=found.radius, **options).counts == found.counts


def test_the_radius_of_a_rate_gives_its_network_and_its_plot(one_device):
    x = np.random.default_rng(0).integers(0, 6, 170).astype(float)
    for strict in (True, False):
        options = {"m": 3, "tau": 2, "metric": "maximum", "strict": strict, "device": one_device}
        found = pyedmcl.recurrence_network(x, radius=0.1, threshold="recurrence_rate", **options)
        np.testing.assert_array_equal(
            pyedmcl.recurrence_network(x, radius=found.radius, **options).degree, found.degree
        )
    plot = pyedmcl.recurrence_plot(x, m=3, tau=2, radius=0.1, threshold="recurrence_rate", device=one_device)
    again = pyedmcl.recurrence_plot(x, m=3, tau=2, radius=plot.radius, device=one_device)
    np.testing.assert_array_equal(again.counts, plot.counts)


def test_a_rate_that_the_window_forbids(one_device):
    x = np.random.default_rng(1).standard_normal(100)
    with pytest.raises(InputError, match=r"radius=0.99: the recurrence rate can reach 0.912 at most"):
        pyedmcl.rqa(
            x, radius=0.99, threshold="recurrence_rate", convention="crqa", theiler=5, device=one_device
        )


@pytest.mark.parametrize("function", [pyedmcl.rqa, pyedmcl.recurrence_network])
def test_a_rate_of_no_cell_is_refused(one_device, function):
    with pytest.raises(InputError, match="no cell of which a share"):
        function(np.full(40, np.nan), m=1, radius=0.5, threshold="recurrence_rate", device=one_device)


def test_selection_that_does_not_fit_is_refused_with_the_numbers(one_device, monkeypatch):
    monkeypatch.setenv("PYEDMCL_MEMORY_LIMIT", "1000000")
    with pytest.raises(DeviceMemoryError, match="1,000,000 may be used"):
        pyedmcl.rqa(np.arange(100.0), radius=0.1, threshold="recurrence_rate", device=one_device)
