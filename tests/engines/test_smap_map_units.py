"""Maps of local linear fits on matrix units (precision="compact"): where they are used, and the errors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from smap_helpers import HARD, MIXED, N, gaps, plain

import pyedmcl
from pyedmcl.device.info import DeviceInfo
from pyedmcl.device.quirks import quirks_for
from pyedmcl.device.select import open_device
from pyedmcl.errors import PyedmclWarning
from pyedmcl.kernels import spec
from pyedmcl.kernels.build import source
from pyedmcl.kernels.specs.smap import ON_MATRIX_UNITS
from pyedmcl.reference.edm import map_rho

COMPACT = {"method": "smap", "precision": "compact"}


@pytest.fixture
def units(one_device):
    """A device whose matrix units are used."""
    if not quirks_for(open_device(one_device).info).matrix_units:
        pytest.skip("matrix units of this device are not used")
    return one_device


def test_only_devices_that_were_tried_use_them(device):
    info: DeviceInfo = open_device(device).info
    for runtime, name, expected in (
        ("nvidia", "NVIDIA H200", True), ("nvidia", "NVIDIA H100 80GB HBM3", True), ("nvidia", "Tesla T4", False),
        ("pocl", "NVIDIA H200", False), ("amd", "AMD Instinct MI300X", False),
    ):  # fmt: skip
        assert quirks_for(replace(info, runtime=runtime, name=name, kind="gpu")).matrix_units is expected


def test_elsewhere_all_is_computed_in_full_and_said(device):
    full = pyedmcl.xmap(plain(), E=3, method="smap", theta=2.0, device=device)
    if quirks_for(open_device(device).info).matrix_units:
        found = pyedmcl.xmap(plain(), E=3, theta=2.0, device=device, **COMPACT)
        assert 0 < np.abs(found.rho - full.rho).max() < 1e-5
        assert found.provenance["precision"] == [{"asked": "compact", "targets": N, "full": 0, "why": ""}]
        return
    with pytest.warns(PyedmclWarning, match=f"{N} of {N} targets were computed in full.* matrix units"):
        found = pyedmcl.xmap(plain(), E=3, theta=2.0, device=device, **COMPACT)
    np.testing.assert_array_equal(found.rho, full.rho)
    assert found.provenance["arguments"]["precision"] == "compact" and found.provenance["precision"][0]["full"] == N
    assert "compact" not in found.provenance["kernels"]  # no target has 16 bits


@pytest.mark.filterwarnings("ignore::pyedmcl.errors.PyedmclWarning")
def test_grids_and_folds_have_it(one_device):
    options = {"E": 2, "device": one_device}
    grid = pyedmcl.xmap_grid(plain(), theta=[0.0, 2.0], precision="compact", **options)
    one = pyedmcl.xmap(plain(), theta=2.0, **COMPACT, **options)
    np.testing.assert_array_equal(grid.sel(theta=2.0).rho, one.rho)
    folded, full = (
        pyedmcl.xmap(plain(), theta=2.0, method="smap", precision=name, folds=2, **options)
        for name in ("compact", "full")
    )
    assert np.abs(folded.rho - full.rho).max() < 1e-5


def test_the_text_has_their_instructions_only_where_they_are_used():
    of_device = {"fma": "builtin", "minimum": "fmin"}
    problem = {"E": 3, "gaps": True, "dtype": "float32"}
    with_units, in_halves = (
        source(spec("smap_map"), {**problem, **of_device, **ON_MATRIX_UNITS, "matrix_units": True, "halves": halves})
        for halves in (False, True)
    )
    without = source(spec("smap_map"), {
        **problem, **of_device, **spec("smap_map").defaults("gpu"), "matrix_units": False, "halves": False,
    })  # fmt: skip
    assert "PRODUCT_IN_DOUBLE(p0_0" in with_units and "PRODUCT_OF_HALVES(p0_0" not in with_units
    assert "PRODUCT_OF_HALVES(p0_0" in in_halves and "PRODUCT_IN_DOUBLE(p0_0" not in in_halves
    assert all("mma.sync" in text and "cp.async" in text for text in (with_units, in_halves))
    assert "asm" not in without


# Of numbers that are split into halves, and in double.
PRECISIONS = pytest.mark.parametrize("precision", ["compact", "full"])


@pytest.mark.parametrize("kind", HARD)
@PRECISIONS
def test_hard_data_err_little(units, kind, precision):
    x = HARD[kind]()
    for theta in (0.0, 2.0, 8.0):
        found = pyedmcl.xmap(x, E=3, theta=theta, device=units, method="smap", precision=precision)
        np.testing.assert_allclose(found.rho, map_rho(x, 3, theta), rtol=0, atol=1e-5, err_msg=f"theta = {theta}")


@pytest.mark.parametrize("options", [
    {"E": 1}, {"E": 20}, {"E": list(MIXED)}, {"E": 3, "Tp": 3, "tau": 2, "exclusion_radius": 40},
    {"E": 4, "ridge": 0.1},
], ids=str)  # fmt: skip
@pytest.mark.parametrize("data", [plain, gaps])
@PRECISIONS
def test_every_shape_errs_little(units, data, options, precision):
    x = data()
    found = pyedmcl.xmap(x, theta=2.0, device=units, method="smap", precision=precision, **options)
    full = pyedmcl.xmap(x, theta=2.0, device=units, method="smap", dtype="float64", **options)
    np.testing.assert_allclose(found.rho, full.rho, rtol=0, atol=1e-5)


@pytest.mark.parametrize(("rows", "targets"), [(200, 1), (700, 63), (1100, 130), (300, 160), (2600, 5)])
@PRECISIONS
def test_tiles_that_are_not_full_err_little(units, rows, targets, precision):
    x = np.random.default_rng(rows).standard_normal((rows, targets + 2)).cumsum(axis=1)
    asked = {"targets": x[:, 2:], "E": 5, "theta": 1.0, "device": units}
    found = pyedmcl.xmap(x[:, :2], **asked, method="smap", precision=precision)
    full = pyedmcl.xmap(x[:, :2], **asked, method="smap", dtype="float64")
    np.testing.assert_allclose(found.rho, full.rho, rtol=0, atol=1e-5)
