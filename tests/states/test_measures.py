"""Skill by other measures, and the predictions that it is measured on."""

from __future__ import annotations

import numpy as np
import pandas
import pytest
from series_helpers import driven

import pyedmcl
from pyedmcl.errors import InputError
from pyedmcl.parameters import MEASURES
from pyedmcl.states import arguments
from pyedmcl.states.arguments import measure

X, Y = driven(150)
GAPS = np.where(np.arange(150) % 37 == 11, np.nan, Y)
TABLE = np.column_stack([X, GAPS, X * Y])


def naively(name, predicted, observed):
    """By pandas, whose ranks of equal values are means."""
    p, o = pandas.Series(predicted), pandas.Series(observed)
    difference = (p - o).dropna()
    rmse = float(np.sqrt((difference**2).mean()))
    if name in ("pearson", "spearman"):
        both = p.notna() & o.notna()
        p, o = p[both], o[both]
        return p.rank().corr(o.rank()) if name == "spearman" else p.corr(o)
    return {"mae": difference.abs().mean(), "rmse": rmse, "nrmse": rmse / o[p.notna()].std(ddof=0)}[name]


@pytest.mark.parametrize("name", MEASURES)
def test_measures(name):
    rng = np.random.default_rng(2)
    predicted = rng.standard_normal((3, 60)).round(1)  # with ties
    observed = predicted + rng.standard_normal((3, 60)).round(1)
    predicted[0, 3], observed[1, 7] = np.nan, np.nan
    expected = [naively(name, p, o) for p, o in zip(predicted, observed, strict=True)]
    np.testing.assert_allclose(measure(name, predicted, observed), expected, rtol=1e-12)
    scaled = measure(name, predicted * 2.0**600, observed * 2.0**600)
    np.testing.assert_allclose(scaled, np.array(expected) * (2.0**600 if name in ("mae", "rmse") else 1), rtol=1e-12)
    flat = measure(name, predicted, np.ones(60))
    assert np.isnan(flat).all() or name in ("mae", "rmse")


def test_maps(device):
    own = {"E": 2, "tau": 2, "device": device}
    rho = pyedmcl.xmap(TABLE, **own).rho
    result = pyedmcl.xmap(TABLE, Tp=0, predictions=True, **own)
    assert result.predictions.shape == (3, 3, 150)
    np.testing.assert_allclose(result.rho, rho, atol=2e-6)
    for i in range(3):
        for j in range(3):
            alone = pyedmcl.simplex(TABLE[:, i], target=TABLE[:, j], Tp=0, **own)
            np.testing.assert_allclose(result.predictions[i, j, 2:], alone.predicted, atol=1e-6)
    for name in MEASURES[1:]:
        found = pyedmcl.xmap(TABLE, targets=[1], skill=name, **own)
        expected = [naively(name, result.predictions[i, 1], TABLE[:, 1]) for i in range(3)]
        np.testing.assert_allclose(found.rho[:, 0], expected, rtol=2e-5)
        assert found.skill == name


def test_maps_of_groups_and_horizons(one_device):
    labels = np.arange(150) // 75
    own = {"E": 2, "Tp": 1, "device": one_device}
    whole = pyedmcl.xmap(TABLE, groups=labels, predictions=True, **own)
    assert whole.predictions.shape == (3, 3, 150) and np.isnan(whole.predictions[0, 0, [0, 1, 75, 76]]).all()
    alone = pyedmcl.simplex(X, E=2, groups=labels, device=one_device)
    np.testing.assert_allclose(whole.predictions[0, 0, 77:150], alone.predicted[74:147], atol=1e-6)


def test_the_smallest_errors_are_the_strongest_pairs(tmp_path, one_device):
    own = {"E": 2, "skill": "mae", "device": one_device}
    result = pyedmcl.xmap(TABLE, **own)
    apart = result.rho[~np.eye(3, dtype=bool)]
    assert [edge.rho for edge in result.edges(top=2)] == np.sort(apart)[:2].tolist()
    stored = pyedmcl.xmap(TABLE, out=tmp_path / "m", **own)
    np.testing.assert_array_equal(np.asarray(stored.rho), result.rho)
    assert stored.skill == pyedmcl.open_xmap(tmp_path / "m").skill == "mae"


@pytest.mark.parametrize("draw", ["rows", "groups"])
@pytest.mark.parametrize("method", ["simplex", "smap"])
def test_sub_libraries(one_device, draw, method):
    own = {"E": 2, "lib_sizes": [20, 60], "sample": 2, "seed": 4, "device": one_device, "method": method, "draw": draw,
           "groups": np.arange(150) // 30}  # fmt: skip
    plain = pyedmcl.ccm(X, Y, **own)
    made = pyedmcl.ccm(X, Y, predictions=True, **own)
    assert made.predictions.shape == (2, 2, 2, 150)
    np.testing.assert_array_equal(made.rho, plain.rho)
    ranked = pyedmcl.ccm(X, Y, skill="spearman", **own)
    for direction, target in enumerate((Y, X)):
        for place in np.ndindex(2, 2):
            predicted = made.predictions[direction][place]
            assert plain.rho[direction][place] == pytest.approx(naively("pearson", predicted, target), abs=2e-6)
            assert ranked.rho[direction][place] == pytest.approx(naively("spearman", predicted, target), abs=2e-5)


def test_one_series(one_device):
    for name in MEASURES:
        result = pyedmcl.simplex(X, E=2, skill=name, device=one_device)
        assert result.skill == pytest.approx(naively(name, result.predicted, result.observed), rel=1e-9)


def test_what_cannot_be_had_is_refused_by_name(tmp_path):
    for call, more, said in (
        (pyedmcl.xmap, {"skill": "r2"}, "skill='r2': one of 'pearson', 'spearman', 'rmse', 'mae', 'nrmse'"),
        (pyedmcl.xmap, {"skill": "mae", "keep": "top:1"}, "skill='mae': keep= takes the largest values"),
        (pyedmcl.xmap, {"predictions": True, "out": tmp_path / "m"}, "predictions=True: they are held in memory"),
        (pyedmcl.xmap, {"skill": "mae", "method": "smap"}, "skill='mae': method='smap'"),
    ):
        with pytest.raises(InputError) as caught:
            call(TABLE, E=2, **more)
        assert said in str(caught.value)
    wide = np.broadcast_to(X[:100, None], (100, 50_000))
    with pytest.raises(InputError, match=r"predictions=True: the result of .* needs 1,000,000,000,000 bytes of memory"):
        pyedmcl.xmap(wide, E=2, predictions=True)
    with pytest.raises(InputError, match="skill='rmse': convergence is that of correlations"):
        assert pyedmcl.ccm(X, Y, E=2, lib_sizes=20, sample=2, skill="rmse").convergence


@pytest.mark.parametrize("scale", [1, 1e-200, 1e200, 0])
@pytest.mark.parametrize("n", [1, 8, 129, 1000])
def test_rows_are_scored_together_with_the_bits_of_each(n, scale):
    predicted, observed = np.random.default_rng(n).standard_normal((2, 5, n)) * scale
    predicted[3] *= 1e-170
    for gaps in ((), np.s_[:, :1], np.s_[1, :2]):
        if gaps:
            observed[gaps] = np.nan
        rows = list(zip(predicted, observed, strict=True))
        np.testing.assert_array_equal(
            arguments.errors_of_rows(predicted, observed), [arguments.errors(*row) for row in rows]
        )
        noise = np.linspace(0, 1e-9, 5)
        one_by_one = [arguments.pearson(*row, float(own)) for row, own in zip(rows, noise, strict=True)]
        np.testing.assert_array_equal(arguments.pearson(predicted, observed, noise), one_by_one)
