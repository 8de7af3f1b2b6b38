"""S-map against its definition: options, gaps, degenerate data, accuracy."""

from __future__ import annotations

import naive
import numpy as np
import pytest

import pyedmcl
from pyedmcl.engines.smap_device import Library
from pyedmcl.errors import InputError
from pyedmcl.reference.edm import smap_rows
from pyedmcl.states.states import embed_columns


def noisy(n, seed=0):
    rng = np.random.default_rng(seed)
    return naive.noisy_maps(1, n, seed)[:, 0].astype(float) + 0.02 * rng.standard_normal(n)


def with_gaps(x, seed=0):
    x = x.copy()
    x[np.random.default_rng(seed).choice(len(x), len(x) // 40, replace=False)] = np.nan
    return x


def definition(lib, theta, *, E=3, tau=1, Tp=1, pred=None, target=None, knn=None, exclusion_radius=0, allowed=None,
               rows=None):  # fmt: skip
    """S-map from the definition: legality row by row, then singular values."""
    lib = np.atleast_2d(np.asarray(lib, float).T).T
    goal = lib[:, 0] if target is None else np.asarray(target, float)
    asked = lib if pred is None else np.atleast_2d(np.asarray(pred, float).T).T
    x, q = embed_columns(lib, E, tau), embed_columns(asked, E, tau)
    legal = [j for j in range(len(lib)) if np.isfinite(x[j]).all() and 0 <= j + Tp < len(lib)
             and np.isfinite(goal[j + Tp]) and (allowed is None or allowed[j])]  # fmt: skip
    rows = np.arange((E - 1) * tau, len(asked)) if rows is None else np.asarray(rows)
    legal = np.array(legal)
    good = np.isfinite(q[rows]).all(axis=1)
    fit = smap_rows(x[legal], goal[legal + Tp], legal, q[rows][good], rows[good], theta, knn=knn,
                    exclusion_radius=exclusion_radius if pred is None else -1)  # fmt: skip
    out = []
    for part in fit:
        full = np.full((len(rows), *part.shape[1:]), np.nan)
        full[good] = part
        out.append(full)
    return rows, out


X = noisy(180)
Y = np.roll(X, 2) + 0.1 * np.random.default_rng(9).standard_normal(180)
MASK = np.random.default_rng(8).random(180) < 0.6
CASES = {
    "plain": (X, {}, {}),
    "gaps": (with_gaps(X), {}, {}),
    "lag": (X, {"tau": 4}, {}),
    "back": (X, {"Tp": -3}, {}),
    "now": (X, {"Tp": 0, "target": Y}, {}),
    "target with gaps": (X, {"Tp": 2, "target": with_gaps(Y, 1)}, {}),
    "exclusion": (X, {"exclusion_radius": 12}, {}),
    "knn": (X, {"knn": 30}, {}),
    "other series": (X, {"pred": with_gaps(noisy(90, 3), 2)}, {}),
    "two columns": (np.column_stack([X, Y]), {"target": Y, "E": 2}, {}),
    "range": (X, {"lib_range": [(0, 60), (80, 170)], "pred_range": (50, 120)},
              {"allowed": [2 <= j < 59 or 82 <= j < 169 for j in range(180)], "rows": range(50, 120)}),
    "valid_lib": (X, {"valid_lib": MASK, "pred_range": (0, 40)}, {"allowed": MASK, "rows": range(2, 40)}),
    "offset": (X + 1e4, {}, {}),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", list(CASES))
def test_agrees_with_the_definition(device, case, dtype):
    lib, options, more = CASES[case]
    thetas = np.array([0.0, 1.0, 5.0])
    result = pyedmcl.smap(lib, theta=thetas, device=device, dtype=dtype, singular_values=True, **{"E": 3, **options})
    names = {k: v for k, v in options.items() if k not in ("lib_range", "pred_range", "valid_lib")}
    spread = np.nanmax(lib[..., 0] if lib.ndim > 1 else lib) - np.nanmin(lib[..., 0] if lib.ndim > 1 else lib)
    for s, theta in enumerate(thetas):
        rows, (predicted, variance, coefficients, sizes) = definition(lib, theta, **names, **more)
        np.testing.assert_array_equal(result.time, rows + options.get("Tp", 1))
        tolerance = 1e-5 if dtype == "float32" else 1e-10
        if case == "offset":
            tolerance = max(tolerance, 1e-7)  # the reference itself loses digits to the offset
        np.testing.assert_allclose(result.predicted[s], predicted, rtol=0, atol=tolerance * spread)
        np.testing.assert_allclose(result.variance[s], variance, rtol=0, atol=tolerance * spread**2)
        np.testing.assert_allclose(result.coefficients[s], coefficients, rtol=0,
                                   atol=100 * tolerance * np.nanmax(np.abs(coefficients)))  # fmt: skip
        np.testing.assert_allclose(result.singular_values[s], sizes, rtol=0, atol=tolerance * np.nanmax(sizes))
        assert np.isfinite(result.predicted[s]).sum() > 30
        np.testing.assert_array_equal(np.isnan(result.predicted[s]), np.isnan(predicted))


def test_theta_zero_is_the_linear_fit_without_the_row_itself(device):
    result = pyedmcl.smap(X, E=3, theta=0, device=device)
    table, n = embed_columns(X[:, None], 3, 1), len(X)
    for t in (2, 50, n - 2, n - 1):
        others = [j for j in range(2, n - 1) if j != t]
        ones = np.ones((len(others), 1))
        c = np.linalg.lstsq(np.hstack([ones, table[others]]), X[np.array(others) + 1], rcond=None)[0]
        assert result.predicted[t - 2] == pytest.approx(c[0] + table[t] @ c[1:], abs=1e-10)
        np.testing.assert_allclose(result.coefficients[t - 2], c, atol=1e-9)


def test_a_row_never_sees_its_own_target(device):
    moved = Y.copy()
    moved[101] += 100
    plain, other = (pyedmcl.smap(X, target=y, E=2, theta=[0, 3], device=device).predicted for y in (Y, moved))
    np.testing.assert_allclose(plain[:, 99], other[:, 99], rtol=0, atol=1e-12)  # row 100 predicts 101
    assert (np.abs(plain[:, 98] - other[:, 98]) > 1e-3).all()


def test_a_sweep_is_its_single_fits(device):
    thetas = [0.5, 0.0, 7.5]
    sweep = pyedmcl.smap(X, E=3, theta=thetas, device=device)
    assert sweep.predicted.shape == (3, 178)
    assert sweep.coefficients.shape == (3, 178, 4)
    assert sweep.rho.shape == (3,)
    for theta in thetas:
        one, part = pyedmcl.smap(X, E=3, theta=theta, device=device), sweep.at(theta)
        np.testing.assert_allclose(one.predicted, part.predicted, rtol=0, atol=1e-13)
        assert (one.theta, one.rho, one.mae, one.rmse) == pytest.approx((part.theta, part.rho, part.mae, part.rmse))
        assert one.rho == pytest.approx(naive.pearson(one.observed, one.predicted), abs=1e-12)
        error = (one.predicted - one.observed)[np.isfinite(one.observed)]
        assert one.mae == pytest.approx(np.abs(error).mean())
        assert one.rmse == pytest.approx(np.sqrt((error**2).mean()))
    with pytest.raises(InputError, match=r"theta=3 was not computed; there are 0\.5, 0, 7\.5"):
        sweep.at(3)


def test_both_devices_agree(both_devices):
    found = [pyedmcl.smap(with_gaps(X), E=4, theta=[0, 2, 8], device=device) for device in both_devices]
    np.testing.assert_allclose(found[0].predicted, found[1].predicted, rtol=0, atol=1e-6)


def test_a_coordinate_given_twice_costs_nothing(device):
    table = embed_columns(X[:, None], 2, 1)
    once = pyedmcl.smap(table, target=X, embedded=True, theta=2, device=device)
    far = np.column_stack([table, table[:, 0]])
    twice = pyedmcl.smap(far, target=X, embedded=True, theta=2, device=device)
    assert twice.E == 3
    _, (predicted, _, coefficients, _) = definition(far, 2, E=1, target=X)
    np.testing.assert_allclose(twice.predicted, predicted, atol=1e-5, equal_nan=True)
    np.testing.assert_allclose(twice.coefficients, coefficients, atol=1e-4, equal_nan=True)  # of least norm
    assert twice.redone == 0
    assert once.names == ("x0", "x1")


def test_fewer_neighbours_than_coefficients(device):
    result = pyedmcl.smap(X, E=3, theta=1, knn=3, device=device)
    _, (predicted, variance, coefficients, _) = definition(X, 1, E=3, knn=3)
    np.testing.assert_allclose(result.predicted, predicted, atol=1e-8)
    np.testing.assert_allclose(result.coefficients, coefficients, atol=1e-7)
    np.testing.assert_allclose(result.variance, variance, atol=1e-8)
    assert result.redone == len(predicted)


def test_no_neighbour_gives_nan(device):
    result = pyedmcl.smap(X, E=2, theta=[0, 1], exclusion_radius=200, device=device)
    for part in (result.predicted, result.variance, result.coefficients, result.rho):
        assert np.isnan(part).all()


@pytest.mark.parametrize("theta", [0, 4])
def test_constant_series(device, theta):
    result = pyedmcl.smap(np.full(60, 0.1), E=3, theta=theta, device=device)
    np.testing.assert_allclose(result.predicted, 0.1, rtol=1e-12)
    assert np.isnan(result.rho)
    assert result.mae == pytest.approx(0, abs=1e-12)


def test_weights_are_numbers_where_theta_over_the_mean_distance_is_none():
    x = np.arange(20) * 2.0**-12
    near, weights, top = Library(x[:, None], x, np.arange(20), 0, None).weights(x[3:4], 3, 1e308)
    assert near[:2].tolist() == [2, 4] and weights[:3].tolist() == [1, 1, 0] and top == 0


def test_a_huge_theta_is_the_nearest_neighbour(device):
    result = pyedmcl.smap(X, E=2, theta=1e4, device=device)
    _, (predicted, *_) = definition(X, 1e4, E=2)
    assert np.isfinite(result.predicted).all()
    good = np.isfinite(predicted)
    assert good.sum() > 100
    table = embed_columns(X[:, None], 2, 1)
    for t in range(1, 179, 20):
        d = np.linalg.norm(table[1:179] - table[t], axis=1)
        d[t - 1] = np.inf
        near = np.argsort(d)[:2] + 1
        if d[near[1] - 1] / d[near[0] - 1] > 1.2:
            assert result.predicted[t - 1] == pytest.approx(X[near[0] + 1], abs=0.2)


@pytest.mark.parametrize("scale", [1e-20, 1e20])
def test_units_do_not_matter(device, scale):
    plain = pyedmcl.smap(X, E=3, theta=2, device=device)
    other = pyedmcl.smap(X * scale, E=3, theta=2, device=device)
    np.testing.assert_allclose(other.predicted / scale, plain.predicted, atol=1e-6)
    np.testing.assert_allclose(other.coefficients[:, 1:], plain.coefficients[:, 1:], atol=1e-4)
    assert other.rho == pytest.approx(plain.rho, abs=1e-8)


ACCURACY = [
    ("TentMapNoise.csv", "TentMap"), ("circle.csv", "x"), ("LorenzData1000.csv", "V1"), ("block_3sp.csv", "x_t"),
    ("sardine_anchovy_sst.csv", "anchovy"), ("S12CD-S333-SumFlow_1980-2005.csv", "S12.C.D.S333"),
]  # fmt: skip


@pytest.mark.parametrize(("file", "column"), ACCURACY)
@pytest.mark.parametrize("E", [1, 3, 8, 20])
def test_float32_is_accurate_on_published_series(one_device, published_series, file, column, E):
    x = published_series(file, column)
    if len(x) < 4 * E:
        pytest.skip(f"{file} has {len(x)} rows, too few for E = {E}")
    rows = np.arange(E, len(x) - 1, max(len(x) // 25, 1))
    chosen = np.isin(np.arange(len(x)), rows)
    thetas = [0.0, 1.0, 8.0]
    result = pyedmcl.smap(x, E=E, theta=thetas, pred_range=chosen, device=one_device)
    for s, theta in enumerate(thetas):
        _, (predicted, *_) = definition(x, theta, E=E, rows=rows)
        assert np.abs(result.predicted[s] - predicted).max() < 2e-5 * np.ptp(x), theta


def test_frame(one_device):
    pytest.importorskip("pandas", reason="pandas is not installed")
    result = pyedmcl.smap(X, E=2, tau=3, theta=[0, 2], device=one_device)
    frame = result.to_frame()
    assert list(frame) == ["theta", "time", "observed", "predicted", "variance", "C0", "d/dx0(t-0)", "d/dx0(t-3)"]
    assert len(frame) == 2 * len(result.time)
    np.testing.assert_array_equal(frame["predicted"].to_numpy(), result.predicted.ravel())
    assert "theta" not in result.at(2).to_frame()


def test_rows_with_a_gap_for_target_may_count_as_neighbours(device):
    from pyedmcl.device.select import open_device
    from pyedmcl.forecast.smap import fit_rows, local_fits
    from pyedmcl.states.arguments import PredictionOptions
    from pyedmcl.states.states import prepare

    target = with_gaps(Y, 4)
    problem = prepare(X, None, target, PredictionOptions(E=3), count_gaps=True)
    for knn in (None, 20):
        engine = local_fits(open_device(device), problem, knn, 0.0, "float64")
        try:
            found = fit_rows(engine, problem, np.array([2.0]))
        finally:
            engine.release()
        for place in (0, 60, 170):
            t = problem.rows[place]
            near = np.array([j for j in range(2, 179) if j != t])
            d = np.linalg.norm(problem.library[near - 2] - problem.points[place], axis=1)
            kept = np.argsort(d)[:knn]
            w = np.exp(-2 * d[kept] / d[kept].mean())
            good = np.isfinite(target[near[kept] + 1])
            a = np.column_stack([np.ones(len(kept)), problem.library[near[kept] - 2]])
            c = np.linalg.lstsq((w[:, None] * a)[good], (w * target[near[kept] + 1])[good], rcond=None)[0]
            assert found.predicted[0, place] == pytest.approx(c[0] + c[1:] @ problem.points[place], abs=1e-9)
