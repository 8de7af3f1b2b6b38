"""Series on a common scale and radii in other units, in every recurrence function."""

from __future__ import annotations

import numpy as np
import pytest
from rqa_oracle import expected
from scipy.spatial.distance import cdist, pdist

import pyedmcl
from pyedmcl.errors import InputError
from pyedmcl.recurrence.arguments import spread


def series(n, seed=0, scale=3.0):
    return 5 + scale * np.cumsum(np.random.default_rng(seed).standard_normal(n))


def zscored(x):
    return (x - np.nanmean(x)) / np.nanstd(x)


@pytest.mark.parametrize("gaps", [False, True])
def test_normalised_series_are_quantified(one_device, gaps):
    x = series(120)
    if gaps:
        x[[0, 50]] = np.nan
    for how, wanted in (("zscore", zscored(x)), ("range", (x - np.nanmin(x)) / (np.nanmax(x) - np.nanmin(x)))):
        # At the radii of random data, no distance is so near that the last digits of the scale decide.
        found = pyedmcl.rqa(x, m=2, radius=0.213, normalize=how, device=one_device)
        assert found.counts == expected(wanted, m=2, radius=0.213)
        assert found.provenance["normalize"] == how and found.radius == 0.213


@pytest.mark.parametrize(
    ("unit", "length"),
    [("std", np.std), ("range", np.ptp), ("max_distance", lambda x: pdist(np.stack([x[:-1], x[1:]], axis=1)).max())],
)
def test_radius_in_units_of_the_spread(one_device, unit, length):
    x = series(120, 1)
    found = pyedmcl.rqa(x, m=2, radius=[0.1, 0.2], radius_unit=unit, device=one_device)
    assert found.labels == (0.1, 0.2)
    for asked, result in zip(found.labels, found, strict=True):
        assert result.radius == pytest.approx(asked * length(x), rel=1e-14)
        assert result.counts == pyedmcl.rqa(x, m=2, radius=result.radius, device=one_device).counts
        assert result.provenance["radius_unit"] == unit and result.provenance["wanted"] == asked


def test_unit_is_of_what_is_compared(one_device):
    x, options = series(120, 2), {"m": 2, "device": one_device}
    both = pyedmcl.rqa(x, radius=0.2, radius_unit="range", normalize="zscore", **options)
    assert both.radius == pytest.approx(0.2 * np.ptp(zscored(x)))
    corridor = pyedmcl.rqa(x, radius=(0.1, 0.2), threshold="corridor", radius_unit="std", **options)
    assert corridor.radius == pytest.approx((0.1 * np.std(x), 0.2 * np.std(x)))


def test_two_series_and_several_columns_share_a_unit(one_device):
    x, y = series(120, 3), series(100, 4, 0.5)
    options = {"radius": 0.2, "device": one_device}
    root = np.sqrt((np.var(x) + np.var(y)) / 2)
    assert pyedmcl.rqa(x, y, radius_unit="std", **options).radius == pytest.approx(0.2 * root)
    assert pyedmcl.rqa(x, y, radius_unit="range", **options).radius == pytest.approx(0.2 * np.ptp(x))
    farthest = max(x.max() - y.min(), y.max() - x.min())
    assert pyedmcl.rqa(x, y, radius_unit="max_distance", **options).radius == pytest.approx(0.2 * farthest)
    together = np.stack([x[:100], y], axis=1)
    root = np.sqrt((np.var(x[:100]) + np.var(y)) / 2)
    assert pyedmcl.rqa(together, radius_unit="std", **options).radius == pytest.approx(0.2 * root)
    apart = pyedmcl.rqa(x, y, radius=0.231, normalize="zscore", device=one_device)
    assert apart.counts == pyedmcl.rqa(zscored(x), zscored(y), radius=0.231, device=one_device).counts
    joint = pyedmcl.joint_rqa(x[:100], y, radius_unit="std", **options)
    alone = pyedmcl.joint_rqa(
        x[:100], y, radius=0.2 * np.std(x[:100]), radius_y=0.2 * np.std(y), device=one_device
    )
    assert joint.counts == alone.counts


def test_windows_networks_and_plots_know_units(one_device):
    x = series(120, 5)
    options = {"radius": 0.3, "radius_unit": "std", "device": one_device}
    radius = 0.3 * np.std(x)
    windows = pyedmcl.windowed_rqa(x, 40, 20, **options)
    assert [window.radius for window in windows] == pytest.approx([radius] * 5)
    assert windows[2].counts == expected(x[40:80], radius=radius)
    largest = pyedmcl.windowed_rqa(x, 40, 20, radius=0.3, radius_unit="max_distance", device=one_device)
    assert largest[0].radius == pytest.approx(0.3 * np.ptp(x))
    assert pyedmcl.recurrence_network(x, **options).radius == pytest.approx(radius)
    assert pyedmcl.recurrence_plot(x, **options).radius == pytest.approx(radius)
    means = pyedmcl.distance_plot(x, normalize="range", device=one_device).means
    assert means.max() == pytest.approx(1, rel=1e-5)


@pytest.mark.parametrize("exponent", [-1020, 0, 990])
def test_scale_does_not_matter(one_device, exponent):
    x = np.ldexp(series(120, 6), exponent)
    options = {"m": 2, "device": one_device}
    wanted = pyedmcl.rqa(np.ldexp(x, -exponent), radius=0.2, radius_unit="std", **options)
    assert pyedmcl.rqa(x, radius=0.2, radius_unit="std", **options).counts == wanted.counts
    assert pyedmcl.rqa(x, radius=0.2, normalize="zscore", **options).counts == wanted.counts


def test_spread_of_a_row_does_not_depend_on_others():
    rows = np.stack([series(n_rows, seed)[:333] for seed, n_rows in enumerate((333, 400, 500))])
    rows[1, 7] = np.nan
    together = spread(rows)
    for place, row in enumerate(rows):
        assert [field[place] for field in together] == [field[0] for field in spread(row[None])]
    np.testing.assert_allclose(together.std, np.nanstd(rows, axis=1), rtol=1e-13)


def test_constant_series(one_device):
    constant = np.full(40, 0.1)
    assert pyedmcl.rqa(constant, radius=0.1, normalize="zscore", device=one_device).recurrence_rate == 1
    for unit in ("std", "range", "max_distance"):
        with pytest.raises(InputError, match=f"x: radius_unit='{unit}' cannot be used, since there are no two"):
            pyedmcl.rqa(constant, radius=0.1, radius_unit=unit, device=one_device)


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"normalize": "sd"}, "normalize='sd': one of 'zscore', 'range' is needed"),
     ({"radius_unit": "sd"}, "radius_unit='sd': one of 'data', 'std'"),
     ({"radius_unit": None}, "radius_unit=None"),
     ({"radius_unit": "std", "threshold": "recurrence_rate"}, "radius_unit='std' scales a radius, and threshold="),
     ({"radius_unit": "std", "metric": "cosine", "m": 2}, "radius_unit='std' contradicts metric='cosine'"),
     ({"radius_unit": "std", "radius": 1e308}, r"radius=1e\+308: times")],
)  # fmt: skip
def test_bad_input(one_device, changes, message):
    with pytest.raises(InputError, match=message):
        pyedmcl.rqa(series(60), device=one_device, **{"radius": 0.3, **changes})


@pytest.mark.parametrize("convention", ["pyrqa", "recurrenceanalysis", "crqa", "crqa-2.1"])
@pytest.mark.parametrize(
    "case", ["plain", "gaps", "cross", "state", "large", "small", "offset", "maximum", "manhattan", "cosine", "long"]
)
def test_mean_distance(device, case, convention):
    """crqa's ``rescale = 1`` takes the mean of the whole matrix, RecurrenceAnalysis.jl that of pairs of points."""
    options = {"m": 3, "tau": 2, "device": device, "convention": convention, "radius_unit": "mean_distance"}
    x, y = series(150, 5), None
    if case == "gaps":
        x[[3, 70]] = np.nan
    if case == "cross":
        y, options["theiler"] = series(90, 6), 0
    if case == "state":
        x = np.stack([x, series(150, 7)], axis=1)
    if case in ("maximum", "manhattan", "cosine"):
        options["metric"] = case
    x = {"large": x * 1e200, "small": x * 1e-200, "offset": x + 1e9, "long": series(1111, 8)}.get(case, x)

    def points(values):
        n = len(values) - 4
        return np.concatenate([values[e : n + e].reshape(n, -1) for e in (0, 2, 4)], axis=1)

    first = points(x)
    first = first[~np.isnan(first).any(axis=1)]
    scale = np.abs(first).max()
    name = {"maximum": "chebyshev", "manhattan": "cityblock", "cosine": "cosine"}.get(case, "euclidean")
    d = cdist(first / scale, (first if y is None else points(y)) / scale, name) * (1 if case == "cosine" else scale)
    pairs = y is None and not convention.startswith("crqa")
    length = d.sum() / (d.size - len(d)) if pairs else d.mean()
    found = pyedmcl.rqa(x, y, radius=0.5, **options)
    assert found.radius == pytest.approx(0.5 * length, rel=1e-6 if case == "offset" else 1e-9)
    batch = pyedmcl.rqa_batch([x], None if y is None else [y], radius=0.5, **options)
    assert batch[0].radius == found.radius and batch[0].counts == found.counts


def test_the_mean_distance_is_the_same_on_every_device(both_devices):
    x = series(700, 9)
    first, second = (pyedmcl.rqa(x, m=2, radius=0.3, radius_unit="mean_distance", device=d) for d in both_devices)
    assert first.radius == second.radius and first.counts == second.counts
