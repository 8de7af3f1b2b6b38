"""Maps of local linear fits against the oracle and a loop of smap; hard data, stores, several theta, bad input."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from smap_helpers import GROUPS, HARD, MIXED, N, gaps, lorenz, plain, spikes

import pyedmcl
from pyedmcl.device.memory import counting
from pyedmcl.errors import InputError
from pyedmcl.reference.edm import map_rho
from pyedmcl.tuning.parameters import using

TOLERANCE = {"float32": 1e-5, "float64": 1e-8}


@cache
def hard(kind, theta):
    x = HARD[kind]()
    return x, map_rho(x, 3, theta)


@cache
def second_opinion(kind, E, theta, **options):
    return map_rho({"plain": plain, "gaps": gaps}[kind](), E, theta, **options)


@pytest.mark.parametrize("E", [3, MIXED], ids=["E3", "mixed"])
@pytest.mark.parametrize(
    ("kind", "theta", "options"),
    [
        ("plain", 0.0, {}),
        ("plain", 2.0, {"Tp": 1, "exclusion_radius": 5}),
        ("plain", 2.0, {"Tp": -2, "tau": 2}),
        ("gaps", 2.0, {"Tp": 3, "exclusion_radius": 2}),
        ("gaps", 0.5, {"Tp": -2}),
    ],
)
def test_agrees_with_the_second_opinion(device, kind, theta, options, E):
    x = {"plain": plain, "gaps": gaps}[kind]()
    result = pyedmcl.xmap(x, E=list(MIXED) if E == MIXED else E, method="smap", theta=theta, device=device, **options)
    assert result.rho.shape == (N, N) and result.theta == theta
    np.testing.assert_allclose(result.rho, second_opinion(kind, E, theta, **options), rtol=0, atol=TOLERANCE["float32"])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("ridge", [1e-3, 0.7])
def test_ridge_is_that_of_the_data(device, dtype, ridge):
    # The penalty is on slopes of the data, whatever their unit and the basis that fits are made in.
    x = plain() * np.array([1.0, 100.0, 1e-3, 1.0, 1.0])
    result = pyedmcl.xmap(x, E=3, method="smap", theta=2.0, ridge=ridge, dtype=dtype, device=device)
    np.testing.assert_allclose(result.rho, map_rho(x, 3, 2.0, ridge=ridge), rtol=0, atol=TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", HARD)
def test_hard_data_keep_their_digits(device, kind, dtype):
    """Delays that are nearly or exactly collinear, rows far from all others, and fits that are nearly singular."""
    for theta in (0.0, 8.0):
        x, expected = hard(kind, theta)
        result = pyedmcl.xmap(x, E=3, method="smap", theta=theta, dtype=dtype, device=device)
        np.testing.assert_allclose(result.rho, expected, rtol=0, atol=TOLERANCE[dtype], err_msg=f"theta={theta}")


def test_nearly_singular_fits_are_made_in_double(one_device, monkeypatch):
    from pyedmcl.engines.smap_maps import SmapMap

    done = []
    again = SmapMap._in_double

    def noted(self, a, libraries, *rest):
        done.append(libraries.tolist())
        again(self, a, libraries, *rest)

    monkeypatch.setattr(SmapMap, "_in_double", noted)
    x = spikes(lorenz())
    x[:, 0] = plain()[:, 0]
    pyedmcl.xmap(x, E=3, method="smap", theta=8.0, device=one_device)
    assert len(done) == 1 and 1 in done[0] and 0 not in done[0], "the well-behaved library is not done again"
    pyedmcl.xmap(plain(), E=3, method="smap", theta=2.0, device=one_device)
    assert len(done) == 1


def test_equals_a_loop_of_smap(one_device):
    x = gaps()
    result = pyedmcl.xmap(x, E=3, method="smap", theta=2.0, Tp=1, device=one_device)
    for i, j in ((0, 3), (3, 0), (1, 2), (4, 0)):
        one = pyedmcl.smap(x[:, i], target=x[:, j], E=3, Tp=1, theta=2.0, device=one_device)
        assert abs(result.rho[i, j] - one.rho) < 1e-5


@pytest.mark.parametrize("kind", ["plain", "gaps"])
def test_work_items_of_a_group_share_the_work(device, kind):
    x = {"plain": plain, "gaps": gaps}[kind]()
    with using(**GROUPS):
        result = pyedmcl.xmap(x, E=2, method="smap", theta=2.0, Tp=3, exclusion_radius=2, device=device)
    expected = second_opinion(kind, 2, 2.0, Tp=3, exclusion_radius=2)
    np.testing.assert_allclose(result.rho, expected, rtol=0, atol=1e-5)


def test_several_theta_and_the_best(one_device):
    x, thetas = plain(), [0.0, 2.0, 8.0]
    several = pyedmcl.xmap(x, E=3, method="smap", theta=thetas, device=one_device)
    assert several.rho.shape == (3, N, N)
    np.testing.assert_array_equal(several.theta, thetas)
    for theta, rho in zip(thetas, several.rho, strict=True):
        np.testing.assert_allclose(rho, map_rho(x, 3, theta), rtol=0, atol=1e-5)
    best = pyedmcl.xmap(x, E=3, method="smap", theta="best", device=one_device)
    from pyedmcl.states.states import THETAS

    every = pyedmcl.xmap(x, E=3, method="smap", theta=THETAS, device=one_device).rho
    np.testing.assert_array_equal(best.rho, every.max(axis=0))
    np.testing.assert_array_equal(best.theta, np.array(THETAS, best.theta.dtype)[every.argmax(axis=0)])


def test_what_is_of_one_map_asks_for_one_theta(one_device):
    maps = pyedmcl.xmap(plain()[:60], E=1, method="smap", theta=[0.0, 1.0], device=one_device)
    for take in (maps.to_frame, maps.edges, maps.plot, maps.plot_network):
        with pytest.raises(InputError, match="rho holds 2 maps, one for each theta"):
            take()
    assert maps.to_xarray().sizes["theta"] == 2


def test_a_theta_of_which_fits_are_nearly_singular_leaves_the_next_alone(one_device):
    x, thetas = HARD["spikes"](), [0.0, 8.0, 2.0]  # at 8 all libraries are computed in double again
    several = pyedmcl.xmap(x, E=3, method="smap", theta=thetas, device=one_device)
    for theta, rho in zip(thetas, several.rho, strict=True):
        alone = pyedmcl.xmap(x, E=3, method="smap", theta=theta, device=one_device)
        np.testing.assert_array_equal(rho, alone.rho, err_msg=f"theta = {theta}")


def test_constant_series_have_no_skill(one_device):
    x = plain()
    x[:, 2] = 0.1
    with pytest.warns(RuntimeWarning, match="constant series"):
        rho = pyedmcl.xmap(x, E=3, method="smap", theta=2.0, device=one_device).rho
    flat = np.arange(N) == 2
    assert np.isnan(rho[flat]).all() and np.isnan(rho[:, flat]).all() and np.isfinite(rho[~flat][:, ~flat]).all()


def test_a_store_holds_the_same_map_and_knows_its_theta(one_device, tmp_path):
    x, given = plain(), {"E": 3, "method": "smap", "theta": 2.0, "ridge": 0.7, "device": one_device}
    there = pyedmcl.xmap(x, out=tmp_path / "map", **given)
    np.testing.assert_array_equal(np.asarray(there.rho), pyedmcl.xmap(x, **given).rho)
    again = pyedmcl.open_xmap(tmp_path / "map")
    assert again.theta == 2.0
    named = again.provenance["arguments"]
    assert (named["method"], named["theta"], named["ridge"]) == ("smap", 2.0, 0.7)
    with pytest.raises(pyedmcl.errors.StoreMismatchError, match=r"theta: stored 2\.0, asked for 3.0"):
        pyedmcl.xmap(x, out=tmp_path / "map", **{**given, "theta": 3.0})
    with pytest.raises(pyedmcl.errors.StoreMismatchError, match="method"):
        pyedmcl.xmap(x, out=tmp_path / "map", E=3, device=one_device)


def test_edges_are_those_of_the_map(one_device):
    x, given = plain(), {"E": 3, "method": "smap", "theta": 2.0, "device": one_device}
    rho = np.asarray(pyedmcl.xmap(x, **given).rho)
    edges = pyedmcl.xmap(x, keep="top:2", **given)
    np.testing.assert_array_equal(edges.rho, rho[edges.library, edges.target])


def test_does_not_depend_on_memory(one_device, monkeypatch):
    x = plain()
    whole = pyedmcl.xmap(x, E=3, method="smap", theta=2.0, device=one_device).rho
    monkeypatch.setenv("PYEDMCL_MEMORY_LIMIT", "400000")
    np.testing.assert_array_equal(pyedmcl.xmap(x, E=3, method="smap", theta=2.0, device=one_device).rho, whole)
    monkeypatch.setenv("PYEDMCL_MEMORY_LIMIT", "30000")
    with pytest.raises(pyedmcl.errors.DeviceMemoryError, match="bytes on the device"):
        pyedmcl.xmap(x, E=3, method="smap", theta=2.0, device=one_device)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"theta": -1.0}, "theta=-1"), ({"theta": [1.0, np.nan]}, "theta=nan"), ({"theta": []}, "theta"),
        ({"theta": "auto"}, "'best'"), ({"ridge": -0.5}, "ridge=-0.5"), ({"ridge": np.inf}, "ridge=inf"),
        ({"method": "lasso"}, "method='lasso'"), ({"knn": 4}, "knn=4.*theta"),
        ({"theta": -1.0, "method": "simplex"}, "theta"),
        ({"theta": [0.0, 1.0], "out": "map"}, "out="), ({"theta": "best", "out": "map"}, "out="),
        ({"theta": "best", "keep": "top:1"}, "keep="),
        ({"coefficients": "all"}, "coefficients='all'.*'mean'"),
        ({"coefficients": "mean", "method": "simplex"}, "coefficients='mean'.*take method='smap'"),
        ({"coefficients": "mean", "theta": [0.0, 1.0]}, "coefficients='mean'.*single theta"),
        ({"coefficients": "mean", "out": "map"}, "coefficients='mean' with out=: slopes are held in memory"),
        ({"coefficients": "mean", "keep": "top:1"}, "with keep="),
        ({"coefficients": "mean", "folds": 3}, "with folds="),
        ({"coefficients": "mean", "windows": (90, 50)}, "windows="),
    ],
)  # fmt: skip
def test_bad_arguments_are_refused(one_device, tmp_path, given, words):
    if "out" in given:
        given = {**given, "out": tmp_path / given["out"]}
    with pytest.raises(InputError, match=words):
        pyedmcl.xmap(plain(), E=3, device=one_device, **{"method": "smap", **given})


def test_fits_with_too_few_rows_are_refused_by_name(one_device):
    x = plain()[:40]
    with pytest.raises(InputError, match=r"x0 -> x0 \(E=10: 8\)"):  # of 31 rows, 23 are near some row
        pyedmcl.xmap(x, E=10, method="smap", exclusion_radius=11, device=one_device)
    pyedmcl.xmap(x, E=3, method="smap", exclusion_radius=11, device=one_device)
    x = gaps()[:90]
    x[10:80:2, 1] = np.nan
    with pytest.raises(InputError, match=r"x1 -> x2 \(E=10: 2\), x1 -> x0"):
        pyedmcl.xmap(x, E=10, method="smap", device=one_device)


@pytest.mark.parametrize("kind", [plain, gaps])
def test_the_device_makes_single_precision_double(device, kind):
    """Series of float32 are sent once, for targets and libraries; the same numbers of float64 give the same bits."""
    single = kind().astype(np.float32)
    options = {"E": 2, "method": "smap", "theta": 1.0, "dtype": "float32", "device": device}
    for values in (single, single.astype(np.float64)):
        pyedmcl.xmap(values, **options)  # the small arrays that such calls need are there from now on
    with counting() as copies:
        once = pyedmcl.xmap(single, **options).rho
    with counting() as more:
        np.testing.assert_array_equal(once, pyedmcl.xmap(single.astype(np.float64), **options).rho)
    assert more.uploaded - copies.uploaded == 2 * single.nbytes
    some = [1, 3]
    np.testing.assert_array_equal(pyedmcl.xmap(single, targets=single[:, some], **options).rho, once[:, some])
