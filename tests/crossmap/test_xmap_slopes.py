"""Mean slopes of maps of local linear fits against the oracle and smap; hard data, chosen rows, parts of a map."""

from __future__ import annotations

import naive
import numpy as np
import pytest
from smap_helpers import GROUPS, HARD, LENGTH, N, gaps, plain

import pyedmcl
from pyedmcl.errors import InputError
from pyedmcl.reference.edm import map_slopes
from pyedmcl.tuning.parameters import using


def standardised(slopes, x):
    """Slopes of series of standard deviation 1."""
    scale = np.nanstd(x, axis=0)
    return slopes * scale[:, None, None] / scale[None, :, None]


@pytest.mark.parametrize("E", [(3,) * N, (3, 1, 12, 3, 1)], ids=["E3", "mixed"])
@pytest.mark.parametrize(("kind", "theta", "options"), [
    ("plain", 2.0, {"Tp": 1, "exclusion_radius": 5}),
    ("gaps", 2.0, {"Tp": -2, "tau": 2}),
    ("plain", 0.0, {"ridge": 0.7}),
])  # fmt: skip
def test_mean_slopes_are_the_oracles(one_device, kind, E, theta, options):
    x = {"plain": plain, "gaps": gaps}[kind]() * np.array([1.0, 100.0, 1e-3, 1.0, 1.0])
    given = {"E": list(E), "method": "smap", "theta": theta, "device": one_device, **options}
    result = pyedmcl.xmap(x, coefficients="mean", **given)
    expected = map_slopes(x, E, theta, **options)
    assert result.coefficients.shape == (N, N, max(E)) and result.lags == tuple(
        options.get("tau", 1) * e for e in range(max(E))
    )
    np.testing.assert_allclose(standardised(result.coefficients, x), standardised(expected, x), rtol=0, atol=5e-6)
    np.testing.assert_array_equal(result.rho, pyedmcl.xmap(x, **given).rho)


@pytest.mark.parametrize("kind", ["lorenz", "spikes", "log-normal", "far from zero"])
def test_mean_slopes_of_hard_data(one_device, kind):
    x = HARD[kind]()
    for dtype, atol in (("float32", 1e-5), ("float64", 1e-10)):
        given = {"E": 3, "method": "smap", "theta": 2.0, "coefficients": "mean", "dtype": dtype, "device": one_device}
        found = pyedmcl.xmap(x, **given).coefficients
        np.testing.assert_allclose(standardised(found, x), standardised(map_slopes(x, 3, 2.0), x), rtol=0, atol=atol)


def test_mean_slopes_are_those_of_smap(device):
    x = plain()
    given = {"E": 3, "theta": 2.0, "Tp": 1, "device": device}
    result = pyedmcl.xmap(x, method="smap", coefficients="mean", **given)
    one = pyedmcl.smap(x[:, 0], target=x[:, 3], **given)
    there = np.isfinite(one.observed)
    np.testing.assert_allclose(result.coefficients[0, 3], one.coefficients[there, 1:].mean(axis=0), rtol=0, atol=1e-6)


def test_mean_slopes_of_chosen_rows(one_device):
    x = gaps()
    given = {"E": 3, "theta": 2.0, "Tp": 1, "lib_range": (0, 120), "pred_range": (90, 200), "device": one_device}
    result = pyedmcl.xmap(x, method="smap", coefficients="mean", **given)
    for i, j in ((1, 3), (0, 2), (3, 0)):
        one = pyedmcl.smap(x[:, i], target=x[:, j], **given)
        expected = np.nanmean(one.coefficients[one.time < LENGTH, 1:], axis=0)
        np.testing.assert_allclose(result.coefficients[i, j], expected, rtol=0, atol=2e-6)


def test_mean_slopes_of_other_targets_on_groups_of_work_items(one_device, tmp_path):
    x = gaps()
    given = {"E": 3, "method": "smap", "theta": 2.0, "targets": [4, 3], "device": one_device}
    with using(**GROUPS):
        result = pyedmcl.xmap(x, coefficients="mean", **given)
    np.testing.assert_allclose(result.coefficients, map_slopes(x, 3, 2.0)[:, [4, 3]], rtol=0, atol=1e-6)
    result.save(tmp_path / "slopes.edm")
    again = pyedmcl.open_result(tmp_path / "slopes.edm")
    np.testing.assert_array_equal(again.coefficients, result.coefficients)
    labelled = again.to_xarray("coefficients")
    assert labelled.dims == ("library", "target", "lag") and labelled.lag.values.tolist() == [0, 1, 2]
    assert result.to_xarray().dims == ("library", "target")
    with pytest.raises(InputError, match=r"coefficients='mean'\) makes them"):
        pyedmcl.xmap(x, **given).to_xarray("coefficients")


def test_mean_slopes_in_blocks_of_found_dimensions(one_device, monkeypatch):
    from pyedmcl.crossmap import pairs

    x, given = plain(), {"E": "auto", "E_max": 4, "method": "smap", "theta": 2.0, "coefficients": "mean"}
    whole = pyedmcl.xmap(x, device=one_device, **given)
    assert whole.coefficients.shape == (N, N, whole.E.max())
    monkeypatch.setattr(pairs, "_BLOCK_SERIES", 2)
    monkeypatch.setenv("PYEDMCL_MEMORY_LIMIT", "600000")
    parts = pyedmcl.xmap(x, device=one_device, **given)
    np.testing.assert_array_equal(parts.coefficients, whole.coefficients)


def test_mean_slopes_of_more_libraries_than_one_product_has(one_device, monkeypatch):
    from pyedmcl.crossmap import pairs

    x, given = naive.noisy_maps(35, 90, seed=3), {"E": 2, "theta": 2.0, "Tp": 1, "device": one_device}
    whole = pyedmcl.xmap(x, method="smap", coefficients="mean", **given).coefficients
    for i, j in ((0, 34), (31, 2), (32, 31), (34, 0)):
        one = pyedmcl.smap(x[:, i], target=x[:, j], **given)
        expected = one.coefficients[np.isfinite(one.observed), 1:].mean(axis=0)
        np.testing.assert_allclose(whole[i, j], expected, rtol=0, atol=1e-5)
    monkeypatch.setattr(pairs, "_BLOCK_SERIES", 15)
    parts = pyedmcl.xmap(x, method="smap", coefficients="mean", **given).coefficients
    np.testing.assert_array_equal(parts, whole)


def test_a_library_that_never_changes_has_no_slopes(one_device):
    x = plain()
    x[:, 2] = 0.1
    with pytest.warns(RuntimeWarning, match="constant series"):
        found = pyedmcl.xmap(x, E=3, method="smap", theta=2.0, coefficients="mean", device=one_device).coefficients
    assert np.isnan(found[2]).all() and np.isfinite(np.delete(found, 2, axis=0)).all()
