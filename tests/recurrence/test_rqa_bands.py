"""Bands of recurrence measures: values are those of rqa, ends those of the definition."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import pyedmcl
from pyedmcl.errors import InputError, RecurrenceWarning
from pyedmcl.recurrence_tests import BANDED, _student_reach


def series(n=600, seed=1):
    x = np.random.default_rng(seed).standard_normal(n)
    for t in range(1, n):
        x[t] += 0.6 * x[t - 1]
    return x


def by_definition(x, y, name, options):
    """The value and its standard error: stretches left out one by one, and cosines fitted to what that changes."""
    sides = [side for side in (x, y) if side is not None]
    whole = pyedmcl.rqa(*sides, **options)
    n = np.count_nonzero(whole.complete[0] & whole.complete[1])
    edges = np.linspace(0, len(x), 11).astype(int)
    moved = []
    rows = np.arange(len(x))
    for first, end in itertools.pairwise(edges):
        gaps = [np.where((rows >= first) & (rows < end), np.nan, side) for side in sides]
        part = pyedmcl.rqa(*gaps, **options)
        left = np.count_nonzero(part.complete[0] & part.complete[1])
        moved.append(left / (n - left) * (whole[name] - part[name]))
    at = (np.arange(10) + 0.5) / 10
    waves = [np.dot(moved, np.cos(np.pi * wave * at)) * np.sqrt(2 / 10) for wave in range(1, 7)]
    return whole[name], np.sqrt(np.mean(np.square(waves)) / 10)


@pytest.mark.parametrize("cross", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        {"radius": 0.5, "m": 2, "theiler": 2}, {"radius": 0.2, "radius_unit": "std"},
        {"radius": 0.1, "threshold": "recurrence_rate", "m": 2}, {"radius": 0.3, "normalize": "zscore", "lmin": 3},
    ],
)  # fmt: skip
def test_bands_are_those_of_the_definition(device, cross, options):
    x, y = series(), series(seed=2) if cross else None
    x[[40, 41, 300]] = np.nan
    options = {"theiler": 1, **options, "device": device}
    names = ["DET", "laminarity", "ENTR"]
    bands = pyedmcl.rqa_bands(x, y, window=300, measures=names, level=0.9, **options)
    assert bands.starts == (0, 300) and bands.measures == ("DET", "LAM", "ENTR")
    for row, start in enumerate(bands.starts):
        sides = [None if side is None else side[start : start + 300] for side in (x, y)]
        for at, name in enumerate(names):
            value, error = by_definition(*sides, name, options)
            assert bands.value[row, at] == value
            np.testing.assert_allclose(bands.standard_error[row, at], error, rtol=1e-9)
            np.testing.assert_allclose(bands.low[row, at], max(value - 1.9431802805 * error, 0), rtol=1e-6)
            np.testing.assert_allclose(bands.high[row, at], value + 1.9431802805 * error, rtol=1e-6)


def test_quantiles_are_those_of_student():
    stats = pytest.importorskip("scipy.stats")
    for level in (0.01, 0.5, 0.9, 0.95, 0.999):
        np.testing.assert_allclose(_student_reach(level), stats.t.ppf((1 + level) / 2, 6), rtol=1e-9)


def test_bands_hold_the_mean_of_many_series(one_device):
    """Fixed seeds: of 200 series at least as many as 0.95 allows, and no band is too wide to be of use."""
    many = np.concatenate([series(500, seed) for seed in range(200)])
    bands = pyedmcl.rqa_bands(many, window=500, radius=0.5, m=2, measures=BANDED, device=one_device)
    mean = bands.value.mean(axis=0)
    held = ((bands.low <= mean) & (mean <= bands.high)).mean(axis=0)
    assert (held > 0.9).all(), dict(zip(BANDED, held, strict=True))
    width = (bands.high - bands.low).mean(axis=0) / bands.value.std(axis=0)
    assert (width < 2 * 2.447 * 1.6).all()


def test_a_periodic_series_has_no_width(one_device):
    bands = pyedmcl.rqa_bands(np.tile([0.0, 1.0], 300), radius=0.5, measures=["DET", "RR"], device=one_device)
    np.testing.assert_allclose(bands.low[0], bands.high[0], atol=0.02)
    assert bands.high[0, 0] == 1.0


def test_short_stretches_are_told(one_device):
    slow = np.sin(np.arange(300) * 0.05)
    with pytest.warns(RecurrenceWarning, match="may hold another level"):
        pyedmcl.rqa_bands(slow, radius=0.2, theiler=5, device=one_device)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"measures": ["Lmax"]}, "Lmax has no band"), ({"measures": ["W"]}, "W has no band"),
        ({"level": 1.0}, "level"), ({"radius": [0.1, 0.2]}, "one number is needed"), ({"step": 5}, "need window="),
        ({"m": 30, "tau": 5}, "longer than points reach"), ({"y": series(300)}, "the same rows"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_refused(options, match):
    with pytest.raises(InputError, match=match):
        pyedmcl.rqa_bands(series(), **{"radius": 0.1, **options})
