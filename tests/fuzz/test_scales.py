"""Data of any scale from 1e-300 to 1e300, with offsets, ties and gaps, give what slow oracles find at scale 1."""

from __future__ import annotations

import warnings

import naive
import numpy as np
import pytest
import rqa_oracle
import tally
from hypothesis import given
from hypothesis import strategies as st
from scaled_data import scaled

import pyedmcl
from pyedmcl.reference import edm as ccm_oracle
from pyedmcl.reference import recurrence
from pyedmcl.reference import recurrence as rqa_reference
from pyedmcl.reference.edm import knn_float32_exact, knn_float64_exact, smap_rows

DTYPES = st.sampled_from(["float32", "float64"])
DIMENSIONS = st.sampled_from([(2, 1), (3, 2)])  # E and tau: few, since each is a text to compile
SURROGATES = st.sampled_from(["shuffle", "phase", "iaaft", "twin"])
LEADS = st.sampled_from([-1, 0, 1])
FITS = {"float32": 1e-3, "float64": 1e-7}  # what a local fit is trusted to, before it is made again
CLOSE = {"float32": 2e-5, "float64": 1e-11}  # of predictions, in parts of the data's range


@pytest.fixture(autouse=True)
def squares_may_not_fit():
    """Variances are squares of the data: that those beyond float64 are told is tested below."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "variances of data")
        yield


def same(found, expected, dtype, what, scale=1.0, rounding=0.0):
    """Equal but for rounding, and NaN in the same places."""
    tally.count("scales", what)
    np.testing.assert_allclose(found, expected, rtol=0, atol=CLOSE[dtype] * scale + rounding, err_msg=what)


def same_skill(found, predicted, observed, data, dtype, what):
    """rho of the oracle; also where predictions hardly vary, whose rho neither can know."""
    spread = np.ptp(predicted[np.isfinite(predicted)]) if np.isfinite(predicted).any() else 0.0
    if spread > 1e-3:
        same(found, naive.pearson(predicted, observed), dtype, what, 10.0, 10 * data.rounding)
    else:
        assert np.isnan(found) or abs(found) <= 1


@given(data=scaled(), dtype=DTYPES, lags=DIMENSIONS, k=st.sampled_from([None, 1, 7]), radius=st.sampled_from([0, 3]))
def test_knn(one_device, data, dtype, lags, k, radius):
    E, tau = lags
    x = data.centred[:, 0]
    oracle = knn_float32_exact if dtype == "float32" else knn_float64_exact
    squares, rows = oracle(x, E=E, tau=tau, k=k, exclusion_radius=radius)
    found = pyedmcl.knn(data.values[:, 0], E=E, tau=tau, k=k, exclusion_radius=radius, dtype=dtype, device=one_device)
    tally.count("scales", "knn")
    np.testing.assert_array_equal(found.indices, rows)
    np.testing.assert_array_equal(found.distances, np.ldexp(np.sqrt(squares).astype(np.float64), data.exponent))


@given(data=scaled(), dtype=DTYPES, lags=DIMENSIONS, Tp=LEADS, other=st.booleans())
def test_simplex(one_device, data, dtype, lags, Tp, other):
    E, tau = lags
    x, y = data.centred[:, 0], data.centred[:, 1] if other else None
    expected = naive.simplex(x, target=y, E=E, tau=tau, Tp=Tp)
    target = data.values[:, 1] if other else None
    found = pyedmcl.simplex(data.values[:, 0], target=target, E=E, tau=tau, Tp=Tp, dtype=dtype, device=one_device)
    same(data.back_centred(found.predicted), expected["predicted"], dtype, "simplex", rounding=data.rounding)
    same_skill(found.rho, expected["predicted"], expected["observed"], data, dtype, "simplex rho")
    same(data.back([found.mae, found.rmse]), [expected["mae"], expected["rmse"]], dtype, "simplex errors",
         rounding=data.rounding)  # fmt: skip
    if data.squares_fit:
        same(data.back(found.variance, 2), expected["variance"], dtype, "simplex variance", scale=10.0)


@given(data=scaled(), dtype=DTYPES)
def test_predict_interval_and_exclusion_radius(one_device, data, dtype):
    x, given_x = data.centred[:, 0], data.values[:, 0]
    by_lead = pyedmcl.predict_interval(given_x, E=2, Tp=[1, 2], dtype=dtype, device=one_device)
    by_radius = pyedmcl.predict_exclusion_radius(given_x, E=2, exclusion_radius=[0, 4], dtype=dtype, device=one_device)
    for result, options in ((by_lead, [{"Tp": 1}, {"Tp": 2}]),
                            (by_radius, [{"exclusion_radius": 0}, {"exclusion_radius": 4}])):  # fmt: skip
        for place, option in enumerate(options):
            expected = naive.simplex(x, E=2, **option)
            what = f"predict_{'interval' if 'Tp' in option else 'exclusion_radius'}"
            same_skill(result.rho[place], expected["predicted"], expected["observed"], data, dtype, what)
            same(data.back(result.rmse[place]), expected["rmse"], dtype, what, rounding=data.rounding)


@given(data=scaled(kinds=("maps", "offset", "gaps")), dtype=DTYPES)
def test_embed_dimension(one_device, data, dtype):
    found = pyedmcl.embed_dimension(data.values, E_max=3, dtype=dtype, device=one_device)
    for number in range(3):
        same(found.rho[number], naive.embed_dimension(data.centred[:, number], E_max=3)[1], dtype, "embed_dimension",
             scale=10.0)  # fmt: skip


@given(data=scaled(kinds=("maps", "offset", "gaps")), dtype=DTYPES, lags=DIMENSIONS)
def test_xmap(one_device, data, dtype, lags):
    E, tau = lags
    found = pyedmcl.xmap(data.values, E=E, tau=tau, dtype=dtype, device=one_device)
    expected = naive.xmap(data.centred, E, tau=tau)
    apart = ~np.eye(3, dtype=bool)
    same(np.asarray(found.rho, np.float64)[apart], expected[apart], dtype, "xmap", scale=10.0)


@given(data=scaled(kinds=("maps", "offset")), dtype=DTYPES, method=st.sampled_from(["simplex", "smap"]))
def test_ccm(one_device, data, dtype, method):
    x, y = data.values[:, 0], data.values[:, 1]
    found = pyedmcl.ccm(x, y, E=2, lib_sizes=[20, 40], sample=2, seed=3, method=method, dtype=dtype, device=one_device)
    if method == "smap":  # its fits have an oracle below
        plain = pyedmcl.ccm(*data.at_one[:, :2].T, E=2, lib_sizes=[20, 40], sample=2, seed=3, method=method,
                            dtype=dtype, device=one_device)  # fmt: skip
        same(found.rho, plain.rho, "float32", "ccm by smap")
        return
    for direction, (a, b) in enumerate((data.centred[:, :2].T, data.centred[:, 1::-1].T)):
        for place, size in enumerate((20, 40)):
            expected = [ccm_oracle.ccm_skill(a, b, size, E=2, seed=3, library=direction, target=1 - direction,
                                             sample=sample) for sample in range(2)]  # fmt: skip
            same(found.rho[direction, place], expected, dtype, "ccm", scale=10.0)


@given(data=scaled(kinds=("maps", "offset")), dtype=DTYPES)
def test_ccm_lagged_and_matrix(one_device, data, dtype):
    found = pyedmcl.ccm_lagged(data.values[:, 0], data.values[:, 1], E=2, Tp=[0, 1], dtype=dtype, device=one_device)
    for place, Tp in enumerate((0, 1)):
        expected = [naive.simplex(data.centred[:, a], target=data.centred[:, b], E=2, Tp=Tp)["rho"]
                    for a, b in ((0, 1), (1, 0))]  # fmt: skip
        same(found.rho[:, place], expected, dtype, "ccm_lagged", scale=10.0)
    table = pyedmcl.ccm_matrix(data.values, E=2, lib_sizes=[20, 40], sample=2, seed=3, dtype=dtype, device=one_device)
    plain = pyedmcl.ccm_matrix(data.at_one, E=2, lib_sizes=[20, 40], sample=2, seed=3, dtype=dtype, device=one_device)
    same(np.asarray(table.rho), np.asarray(plain.rho), dtype, "ccm_matrix", scale=10.0)


@given(data=scaled(kinds=("maps", "offset")), dtype=DTYPES, method=SURROGATES)
def test_significance(one_device, data, dtype, method):
    options = {"E": 2, "n": 3, "seed": 5, "surrogate": method, "dtype": dtype, "device": one_device}
    found, plain = (pyedmcl.ccm_significance(x[:, 0], x[:, 1], **options) for x in (data.values, data.at_one))
    same(found.rho, plain.rho, dtype, "ccm_significance", scale=10.0)
    same(found.surrogates, plain.surrogates, dtype, "ccm_significance", scale=10.0)
    found, plain = (pyedmcl.xmap_significance(x, **options) for x in (data.values, data.at_one))
    apart = ~np.eye(3, dtype=bool)
    same(found.rho[apart], plain.rho[apart], dtype, "xmap_significance", scale=10.0)


@given(data=scaled(kinds=("maps", "offset", "ties")), method=SURROGATES)
def test_surrogate(data, method):
    found, plain = (pyedmcl.surrogate(x[:, 0], method, n=2, seed=4) for x in (data.values, data.at_one))
    tally.count("scales", "surrogate")
    np.testing.assert_array_equal(data.back(found), plain)


@given(data=scaled(kinds=("maps", "offset")), dtype=DTYPES, fit=st.sampled_from([(0.0, None), (2.0, None), (2.0, 12)]))
def test_smap(one_device, data, dtype, fit):
    theta, knn = fit
    x = data.centred[:, 0]
    found = pyedmcl.smap(data.values[:, 0], E=2, theta=theta, knn=knn, dtype=dtype, device=one_device)
    states, rows = np.column_stack([x[1:], x[:-1]]), np.arange(1, len(x))
    expected = smap_rows(states[:-1], x[2:], rows[:-1], states, rows, theta, knn=knn)
    plain = pyedmcl.smap(data.at_one[:, 0], E=2, theta=theta, knn=knn, dtype=dtype, device=one_device)
    scale = FITS[dtype] / CLOSE[dtype]
    same(data.back_centred(found.predicted), expected.predicted, dtype, "smap", scale=scale, rounding=data.rounding)
    same(found.coefficients[:, 1:], plain.coefficients[:, 1:], dtype, "smap slopes")  # data hardly decide on some
    predicted, observed = expected.predicted[:-1], x[2:]
    same(found.rho, naive.pearson(predicted, observed), dtype, "smap rho", 10 * scale, 10 * data.rounding)
    same(data.back([found.mae, found.rmse]),
         [np.abs(predicted - observed).mean(), np.sqrt(((predicted - observed) ** 2).mean())], dtype, "smap errors",
         scale=scale, rounding=data.rounding)  # fmt: skip
    if data.squares_fit:
        same(data.back(found.variance, 2), expected.variance, dtype, "smap variance", scale=scale)
    skill = pyedmcl.predict_nonlinear(data.values[:, 0], E=2, theta=[theta], knn=knn, dtype=dtype, device=one_device)
    same(skill.rho[0], found.rho, dtype, "predict_nonlinear")


@given(data=scaled(kinds=("maps", "offset")), dtype=DTYPES)
def test_multiview(one_device, data, dtype):
    found = pyedmcl.multiview(data.values, 0, D=2, E=2, n_views=1, dtype=dtype, device=one_device)
    x = data.centred
    coordinates = np.full((len(x), 6), np.nan)
    coordinates[:, ::2], coordinates[1:, 1::2] = x, x[:-1]
    names = [f"x{c}(t-{lag})" for c in range(3) for lag in range(2)]
    states, rows = coordinates[:, [names.index(name) for name in found.views[0]]], np.arange(1, len(x))
    expected = naive.predictions(states, x[:, 0], rows, range(len(x)), k=3, Tp=1)[0]  # row 0 has some states
    same(data.back_centred(found.predicted), expected, dtype, "multiview", scale=10.0, rounding=data.rounding)
    observed = naive.observed_at(x[:, 0], rows, 1)
    same(found.rho, naive.pearson(expected, observed), dtype, "multiview rho", 10.0, 10 * data.rounding)


@given(data=scaled(), lags=DIMENSIONS)
def test_embed(data, lags):
    E, tau = lags
    found = pyedmcl.embed(data.values[:, 0], E=E, tau=tau)
    tally.count("scales", "embed")
    for lag in range(E):
        before = data.at_one[: len(data.at_one) - lag * tau, 0]
        np.testing.assert_array_equal(data.back(found.values[lag * tau :, lag]), before)


@given(p=st.lists(st.floats(0, 1) | st.just(float("nan")) | st.sampled_from([5e-324, 1e-300, 1e-16]), max_size=12))
def test_false_discovery(p):
    found, p = pyedmcl.false_discovery(p), np.array(p, float)
    tally.count("scales", "false_discovery")
    there = np.flatnonzero(~np.isnan(p))
    m = len(there)
    for i in there:
        least = min(p[j] * m / np.count_nonzero(p[there] <= p[j]) for j in there if p[j] >= p[i])
        assert found[i] == pytest.approx(min(least, 1.0), rel=1e-12, abs=1e-323)
    assert np.isnan(found[np.isnan(p)]).all()


@pytest.mark.parametrize("exponent", [-700, 700])
def test_variances_beyond_float64_are_told(one_device, exponent):
    x = np.ldexp(naive.coupled_maps(2, 60).astype(float), exponent)
    for call in (lambda: pyedmcl.simplex(x[:, 0], E=2, device=one_device),
                 lambda: pyedmcl.smap(x[:, 0], E=2, theta=1.0, device=one_device),
                 lambda: pyedmcl.multiview(x, 0, D=2, device=one_device)):  # fmt: skip
        with pytest.warns(RuntimeWarning, match="beyond float64"):
            call()


@pytest.mark.parametrize("value", [1e308, np.inf])
def test_values_whose_differences_overflow_are_refused(value):
    x = naive.coupled_maps(1, 60).astype(float)
    x[7] = value
    with pytest.raises(pyedmcl.errors.InputError, match="row 7"):
        pyedmcl.surrogate(x, "shuffle", n=1)


METRICS = st.sampled_from(["euclidean", "maximum", "manhattan", "cosine"])
CONVENTIONS = st.sampled_from(["pyrqa", "accrqa", "recurrenceanalysis", "crqa"])
RADII = st.sampled_from([0.125, 0.5, 1.0, 2.5])  # of few digits: what is equal is so in any precision


def same_counts(found, expected, what):
    """All integers of a matrix."""
    tally.count("scales", what)
    for field in ("points", "n_rows", "period_sum", "period_count", "gap_sum", "gap_count"):
        assert getattr(found, field) == getattr(expected, field), field
    for field in ("diagonals", "verticals", "whites", "white_borders", "columns", "per_diagonal"):
        np.testing.assert_array_equal(getattr(found, field), getattr(expected, field), err_msg=field)


@given(data=scaled(), dtype=DTYPES, exact=st.booleans(), metric=METRICS, convention=CONVENTIONS, radius=RADII)
def test_rqa(one_device, data, dtype, exact, metric, convention, radius):
    """One series, windows of it, and one with another."""
    if data.offset and (metric == "cosine" or (dtype == "float32" and not exact)):
        return  # an offset is a part of directions, and float32 alone has no room for it
    if metric == "cosine":
        given_radius, radius = radius / 4, radius / 4
    else:
        given_radius = float(np.ldexp(radius, data.exponent))
    arithmetic = {"dtype": dtype, "exact": exact}
    options = {"m": 2, "metric": metric, "convention": convention, "theiler": 1}
    x, y = data.centred[:, 0], data.centred[:50, 1]
    given_x, given_y = data.values[:, 0], data.values[:50, 1]
    calls = {**options, **arithmetic, "radius": given_radius, "device": one_device}
    wanted = {**options, **arithmetic, "radius": radius}
    same_counts(pyedmcl.rqa(given_x, **calls).counts, rqa_oracle.expected(x, **wanted), "rqa")
    table = pyedmcl.windowed_rqa(given_x, 30, 20, **calls)
    for start, found in zip((0, 20), table, strict=True):
        same_counts(found.counts, rqa_oracle.expected(x[start : start + 30], **wanted), "windowed_rqa")
    if convention != "accrqa":
        same_counts(pyedmcl.rqa(given_x, given_y, **calls).counts, rqa_oracle.expected(x, y, **wanted), "cross rqa")


OTHER_SCALES = st.sampled_from([-900, 0, 900])


@given(data=scaled(kinds=("maps", "ties", "gaps")), exact=st.booleans(), radius=RADII, other=OTHER_SCALES)
def test_joint_rqa(one_device, data, exact, radius, other):
    """Two systems of quite different scales."""
    x, y = data.centred[:, 0], data.centred[:, 1]
    options = {"m": 2, "exact": exact}
    found = pyedmcl.joint_rqa(data.values[:, 0], np.ldexp(y, other), radius=float(np.ldexp(radius, data.exponent)),
                              radius_y=float(np.ldexp(0.75, other)), device=one_device, **options)  # fmt: skip
    wanted = rqa_oracle.expected(x, joint=y, joint_options={**options, "radius": 0.75}, radius=radius, **options)
    same_counts(found.counts, wanted, "joint_rqa")


@given(data=scaled(), dtype=DTYPES, radius=RADII, strict=st.booleans())
def test_network_and_plots(one_device, data, dtype, radius, strict):
    x, given_x = data.centred[:, 0], data.values[:, 0]
    options = {"m": 2, "radius": float(np.ldexp(radius, data.exponent)), "dtype": dtype, "device": one_device}
    found = pyedmcl.recurrence_network(given_x, strict=strict, **options)
    cells = rqa_oracle.matrix(x, radius=radius, m=2, convention="pyrqa" if strict else "crqa")
    wanted = rqa_reference.network(cells)
    tally.count("scales", "recurrence_network")
    np.testing.assert_array_equal(found.degree, wanted["degree"])
    np.testing.assert_array_equal(found.closed, wanted["closed"])
    plot = pyedmcl.recurrence_plot(given_x, pixels=20, convention="pyrqa" if strict else "crqa", **options)
    tally.count("scales", "recurrence_plot")
    np.testing.assert_array_equal(plot.counts, recurrence.binned(cells.astype(int), (20, 20)))
    means = pyedmcl.distance_plot(given_x, m=2, pixels=20, dtype=dtype, device=one_device).means
    same(data.back(means), recurrence.mean_distances(x, x, (20, 20), m=2), dtype, "distance_plot", scale=10.0)


@given(data=scaled(), rate=st.sampled_from([0.02, 0.2]), metric=METRICS, convention=CONVENTIONS, exact=st.booleans())
def test_recurrence_rate(one_device, data, rate, metric, convention, exact):
    """The radius is that of a scale 1, times the scale, and gives the same counts."""
    options = {"m": 2, "metric": metric, "convention": convention, "exact": exact, "device": one_device}
    found = pyedmcl.rqa(data.values[:, 0], radius=rate, threshold="recurrence_rate", **options)
    plain = pyedmcl.rqa(data.at_one[:, 0], radius=rate, threshold="recurrence_rate", **options)
    same_counts(found.counts, plain.counts, "rate")
    assert rate <= found.recurrence_rate <= 1
    same_counts(pyedmcl.rqa(data.values[:, 0], radius=found.radius, **options).counts, found.counts, "rate given back")
