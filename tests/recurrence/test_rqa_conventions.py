"""What conventions differ in: denominators, the Theiler window of cross recurrence, and measures over no lines."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from rqa_oracle import matrix

import pyedmcl
from pyedmcl.errors import InputError, RecurrenceWarning
from pyedmcl.recurrence.arguments import CONVENTIONS, correlation_time

WITH_CROSS = [name for name, rules in CONVENTIONS.items() if rules.has_theiler]


def dyad(n=120, seed=0):
    """Two series in step, but for a millionth."""
    rng = np.random.default_rng(seed)
    x = rng.random(n)
    return x, x + 1e-6 * rng.standard_normal(n)


@pytest.mark.parametrize("convention", WITH_CROSS)
@pytest.mark.parametrize("call", [
    lambda x, y, **options: pyedmcl.rqa(x, y, **options),
    lambda x, y, **options: pyedmcl.rqa_batch([x], [y], **options)[0],
    lambda x, y, **options: pyedmcl.windowed_rqa(x, len(x), 1, y=y, **options)[0],
], ids=["rqa", "batch", "windowed"])  # fmt: skip
def test_a_dyad_in_step_recurs_at_lag_0(device, call, convention):
    x, y = dyad()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = call(x, y, radius=1e-4, convention=convention, device=device)
    told = [str(one.message) for one in caught if one.category is RecurrenceWarning and "lag 0" in str(one.message)]
    if convention == "pyrqa":
        assert (found.theiler, len(told)) == (1, 1)
    else:
        assert (found.theiler, found.Lmax, told) == (0, 120, [])
    assert call(x, y, radius=1e-4, convention=convention, theiler=0, device=device).Lmax == 120


@pytest.mark.parametrize("y", [None, np.cos(np.arange(120) * 0.21)], ids=["one", "cross"])
@pytest.mark.parametrize("theiler", [0, 1, 3, 10])
@pytest.mark.parametrize("convention", WITH_CROSS)
def test_denominators_of_the_recurrence_rate(device, convention, theiler, y):
    x = np.sin(np.arange(120) * 0.21)
    cells = matrix(x, y, radius=0.3, convention=convention)
    i, j = np.indices(cells.shape)
    outside = abs(i - j) >= theiler
    expected = {
        "pyrqa": cells.mean(),
        "crqa": (cells & outside).sum() / cells.size,
        "crqa-2.1": (cells & outside).sum() / outside.sum(),
        "recurrenceanalysis": (cells & outside).sum() / (outside.sum() if y is None else cells.size),
    }[convention]
    options = {"radius": 0.3, "theiler": theiler, "convention": convention, "device": device}
    assert pytest.approx(expected, rel=1e-12) == pyedmcl.rqa(x, y, **options).RR
    batch = pyedmcl.rqa_batch([x], None if y is None else [y], **options)
    assert pytest.approx(expected, rel=1e-12) == batch[0].RR
    rate = pyedmcl.rqa(x, y, **{**options, "radius": 0.1, "threshold": "recurrence_rate"})
    assert 0.1 <= rate.RR < 0.12


#: What the tools say of a matrix that has no line of two points: sources of PyRQA 8.1, RecurrenceAnalysis.jl 2, crqa 2.
OVER_NONE = {
    "pyrqa": {"ENTR": 0.0, "VENTR": 0.0, "L": math.nan, "TT": math.nan, "DET": math.nan},
    "accrqa": {"ENTR": 0.0, "TT": math.nan},  # of the main diagonal
    "recurrenceanalysis": {"ENTR": math.nan, "VENTR": math.nan, "L": 0.0, "TT": 0.0, "DET": 0.0, "LAM": 0.0},
    "crqa": {"ENTR": math.nan, "L": 0.0, "DET": math.nan},
    "crqa-2.1": {"ENTR": math.nan, "L": 0.0, "DET": math.nan},
}


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_measures_over_no_lines(device, convention):
    apart = np.arange(60.0) ** 2
    one = pyedmcl.rqa(apart, radius=0.5, convention=convention, device=device)
    many = pyedmcl.rqa_batch([apart, apart[:30]], radius=0.5, convention=convention, device=device)
    for name, value in OVER_NONE[convention].items():
        np.testing.assert_equal([one[name], many[0][name], many.measure(name)[1]], [value] * 3, err_msg=name)


@pytest.mark.parametrize("convention", [name for name, rules in CONVENTIONS.items() if not rules.strict])
@pytest.mark.parametrize(
    "options", [{}, {"m": 3}, {"metric": "maximum"}, {"dtype": "float64"}, {"exact": False}], ids=str
)
def test_radius_0_finds_equal_codes(device, convention, options):
    codes = np.random.default_rng(1).integers(0, 4, 150).astype(float)
    equal = pyedmcl.rqa(codes, radius=0, convention=convention, device=device, **options)
    assert equal.counts == pyedmcl.rqa(codes, radius=0.5, convention=convention, device=device, **options).counts
    batch = pyedmcl.rqa_batch([codes], radius=[0, 0.5], convention=convention, device=device, **options)
    assert batch[0].counts == equal.counts == batch[1].counts


def test_radius_0_is_refused_where_nothing_is_below_it():
    with pytest.raises(InputError, match=r"d < 0 holds for no pair.*radius=0.5"):
        pyedmcl.rqa([1.0, 2.0, 1.0], radius=0)


def test_a_radius_of_more_than_the_largest_distance_is_refused():
    for call in (pyedmcl.rqa, pyedmcl.recurrence_plot, pyedmcl.recurrence_network):
        with pytest.raises(InputError, match=r"radius=25: .*as a share, radius=0.25"):
            call(np.arange(30.0), radius=25, radius_unit="max_distance")


@pytest.mark.parametrize("period", [20, 63, 200])
def test_auto_theiler_is_the_correlation_time(one_device, period):
    wave = np.sin(2 * np.pi * np.arange(1000) / period)
    expected = math.ceil(math.acos(1 / math.e) * period / (2 * math.pi))
    assert abs(correlation_time(wave[:, None]) - expected) <= 1
    found = pyedmcl.rqa(wave, radius=0.2, theiler="auto", device=one_device)
    assert found.theiler == correlation_time(wave[:, None])
    assert found.counts == pyedmcl.rqa(wave, radius=0.2, theiler=found.theiler, device=one_device).counts
    noise = np.random.default_rng(0).standard_normal(1000)
    assert pyedmcl.rqa(noise, radius=0.2, theiler="auto", device=one_device).theiler == 1
    several = pyedmcl.rqa_batch([noise, wave], radius=0.2, theiler="auto", device=one_device)
    assert several.theiler == found.theiler
    assert pyedmcl.rqa(wave, noise, radius=0.2, theiler="auto", device=one_device).theiler == 0


def test_auto_theiler_does_not_depend_on_scale_and_gaps():
    wave = np.sin(np.arange(2000) * 0.1)
    width = correlation_time(wave[:, None])
    for scale in (1e-200, 1e150):
        assert correlation_time(wave[:, None] * scale) == width
    gappy = wave.copy()
    gappy[300:340] = np.nan
    assert abs(correlation_time(gappy[:, None]) - width) <= 1
    assert correlation_time(np.zeros((50, 1))) == 1
    assert correlation_time(np.full((50, 1), np.nan)) == 1


def test_auto_theiler_that_covers_the_matrix_is_refused():
    with pytest.raises(InputError, match=r"theiler='auto' is \d+, which leaves no cell of a 6 x 6 matrix"):
        pyedmcl.rqa(np.sin(np.arange(60) / 7), radius=0.2, theiler="auto", m=55)


@pytest.mark.parametrize("name", ["neighbors", "Neighbors", "FAN", "fan"])
def test_neighbours_by_other_names(one_device, name):
    x = np.random.default_rng(0).random(80)
    wanted = pyedmcl.rqa(x, radius=4, threshold="neighbours", device=one_device)
    assert pyedmcl.rqa(x, radius=4, threshold=name, device=one_device).counts == wanted.counts


@pytest.mark.parametrize(("given", "here"), [
    ({"metric": "supremum"}, "'maximum'"), ({"metric": "maxnorm"}, "'maximum'"), ({"metric": "L2"}, "'euclidean'"),
    ({"threshold": "fixed-RR"}, "'recurrence_rate'"), ({"threshold": "rate"}, "'recurrence_rate'"),
])  # fmt: skip
def test_names_of_other_packages_are_explained(given, here):
    with pytest.raises(InputError, match=f"which is called {here} here"):
        pyedmcl.rqa(np.arange(30.0), radius=0.2, **given)
