"""Convergent cross mapping of all pairs by local linear fits: the oracle's numbers from simplex's sub-libraries."""

from __future__ import annotations

import json

import naive
import numpy as np
import pytest
from typer.testing import CliRunner

import pyedmcl
from pyedmcl.cli.app import app
from pyedmcl.convergence import matrix_problem
from pyedmcl.engines.smap_maps import SmapMap
from pyedmcl.errors import InputError, StoreMismatchError
from pyedmcl.reference import edm as oracle

FITS = {"method": "smap", "theta": 2.0}


def data(gaps=False):
    x = naive.noisy_maps(4, 110, 3)
    if gaps:
        x[20, 0] = x[60:63, 2] = np.nan
    return x


OPTIONS = {"E": [2, 3, 2, 1], "lib_sizes": [80, 15], "sample": 3, "seed": 8}


@pytest.mark.parametrize("gaps", [False, True])
def test_each_pair_is_the_oracles(device, gaps):
    x, E = data(gaps), OPTIONS["E"]
    given = {"Tp": 1, "exclusion_radius": 1, "ridge": 0.1}
    result = pyedmcl.ccm_matrix(x, device=device, **FITS, **given, **OPTIONS)
    assert result.rho.shape == (2, 4, 4) and np.isnan(result.rho[:, range(4), range(4)]).all()
    for i, j in ((0, 1), (2, 0), (3, 2)):
        for place, size in enumerate(OPTIONS["lib_sizes"]):
            expected = np.mean([
                oracle.ccm_smap_skill(x[:, i], x[:, j], size, E=E[i], theta=2.0, seed=8, library=i, target=j,
                                      sample=sample, **given) for sample in range(3)
            ])  # fmt: skip
            assert result.rho[place, i, j] == pytest.approx(expected, abs=1e-5)
    assert (result.method, result.theta) == ("smap", 2.0)


def test_the_first_pair_is_ccm(one_device):
    x = data()[:, :2]
    given = {"E": 2, "lib_sizes": [15, 60], "sample": 2, "seed": 1, "device": one_device, **FITS}
    both, matrix = pyedmcl.ccm(x[:, 0], x[:, 1], **given), pyedmcl.ccm_matrix(x, **given)
    np.testing.assert_allclose(matrix.rho[:, 0, 1], both.mean[0], atol=1e-5)
    np.testing.assert_allclose(matrix.rho[:, 1, 0], both.mean[1], atol=1e-5)


def test_libraries_are_drawn_from_the_rows_that_were_chosen(one_device):
    x, chosen = data()[:, :2], np.arange(110) % 3 > 0
    call = {"E": 2, "lib_sizes": [15, 40], "sample": 2, "seed": 1, "device": one_device, **FITS}
    both = pyedmcl.ccm(x[:, 0], x[:, 1], lib_range=chosen, **call)
    matrix = pyedmcl.ccm_matrix(x, lib_range=chosen, **call)
    np.testing.assert_allclose(matrix.rho[:, 0, 1], both.mean[0], atol=1e-5)


def test_rows_with_too_few_members_are_not_predicted(one_device):
    x = data()[:, :2]
    given = {"theta": 2.0, "exclusion_radius": 20, "seed": 1}
    result = pyedmcl.ccm_matrix(x, E=3, lib_sizes=[7], sample=2, method="smap", device=one_device, **given)
    one = pyedmcl.ccm(x[:, 0], x[:, 1], E=3, lib_sizes=[7], sample=2, method="smap", device=one_device, **given)
    each = [oracle.ccm_smap_skill(x[:, 0], x[:, 1], 7, E=3, library=0, target=1, sample=s, **given) for s in range(2)]
    assert result.rho[0, 0, 1] == pytest.approx(np.mean(each), abs=1e-5)
    np.testing.assert_allclose(one.rho[0, 0], each, atol=1e-5)
    made = pyedmcl.ccm(
        x[:, 0], x[:, 1], E=3, lib_sizes=[7], sample=2, method="smap", predictions=True, device=one_device, **given
    ).predictions[0, 0]
    assert 0 < np.isfinite(made).sum() < 2 * (len(x) - 2)


def test_batches_and_memory_change_nothing(one_device, monkeypatch):
    call = {**OPTIONS, **FITS, "device": one_device}
    whole = pyedmcl.ccm_matrix(data(), **call).rho
    monkeypatch.setattr(matrix_problem, "_MEMBER_BYTES", 1)
    monkeypatch.setenv("PYEDMCL_MEMORY_LIMIT", "200000")
    np.testing.assert_array_equal(pyedmcl.ccm_matrix(data(), **call).rho, whole)


def test_nearly_singular_fits_are_made_in_double(one_device, monkeypatch):
    twins = []
    twin = SmapMap._twin_in_double
    monkeypatch.setattr(SmapMap, "_twin_in_double", lambda self, thetas: twins.append(thetas) or twin(self, thetas))
    t = np.arange(150) / 9
    x = np.column_stack([np.sin(t), np.cos(t / 1.7) + np.sin(t)])
    x[40:43] *= 1e4
    call = {"E": 4, "lib_sizes": [60], "sample": 2, "seed": 3, "method": "smap", "theta": 8.0, "device": one_device}
    rho = pyedmcl.ccm_matrix(x, **call).rho
    assert twins == [(8.0,), (8.0,)], "once for each target"
    expected = np.mean([
        oracle.ccm_smap_skill(x[:, 1], x[:, 0], 60, E=4, theta=8.0, seed=3, library=1, target=0, sample=s)
        for s in range(2)
    ])  # fmt: skip
    assert rho[0, 1, 0] == pytest.approx(expected, abs=1e-5)


def test_a_folder_knows_its_method(one_device, tmp_path):
    call = {"E": 2, "sample": 2, "seed": 1, "device": one_device, "out": tmp_path / "ccm"}
    there = pyedmcl.ccm_matrix(data(), lib_sizes=[15], **FITS, **call)
    again = pyedmcl.open_ccm_matrix(tmp_path / "ccm")
    assert (again.method, again.theta) == ("smap", 2.0)
    np.testing.assert_array_equal(again.rho, there.rho)
    with pytest.raises(StoreMismatchError):
        pyedmcl.ccm_matrix(data(), lib_sizes=[40], **call)
    with pytest.raises(StoreMismatchError):
        pyedmcl.ccm_matrix(data(), lib_sizes=[40], **{**FITS, "theta": 3.0}, **call)


def test_the_command(one_device, tmp_path):
    table = tmp_path / "maps.csv"
    np.savetxt(table, data(), delimiter=",", header="a,b,c,d", comments="")
    drawn = ["--lib-sizes", "15,60", "--sample", "2", "--seed", "1"]
    where = [str(table), "-o", str(tmp_path / "ccm"), "--E", "2", *drawn]
    done = CliRunner().invoke(
        app, ["ccm-matrix", *where, "--method", "smap", "--theta", "2", "--json", "--device", one_device]
    )
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["theta"] == 2.0
    expected = pyedmcl.ccm_matrix(data(), E=2, lib_sizes=[15, 60], sample=2, seed=1, device=one_device, **FITS)
    np.testing.assert_array_equal(pyedmcl.open_ccm_matrix(tmp_path / "ccm").rho, expected.rho)
    refused = CliRunner().invoke(app, ["ccm-matrix", *where, "--method", "smap", "--theta", "-1"])
    assert refused.exit_code == 3 and "--theta -1.0" in refused.output


@pytest.mark.parametrize(("given", "words"), [
    ({"theta": -1.0}, "theta=-1"), ({"theta": [1.0, 2.0]}, "theta=.*one number"), ({"theta": "best"}, "one number"),
    ({"theta": np.nan}, "theta=nan"), ({"ridge": -0.5}, r"ridge=-0\.5"), ({"ridge": np.inf}, "ridge=inf"),
    ({"method": "lasso"}, "method='lasso'"), ({"knn": 4}, "knn=4.*leave knn out"),
    ({"lib_sizes": 4}, "lib_sizes: 4; from 5 .*3 slopes and an intercept"),
    ({"E": 60}, "51 rows .*E=60.*too few for fits with 60 slopes.*smaller E"),
    ({"E": 65, "lib_sizes": 20}, "E up to 65; at most 64"),
])  # fmt: skip
def test_bad_arguments_are_refused(given, words):
    with pytest.raises(InputError, match=words):
        pyedmcl.ccm_matrix(data(), **{"E": 3, "lib_sizes": [30], **FITS, **given})
