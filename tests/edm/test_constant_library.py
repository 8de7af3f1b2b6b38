"""A series that never changes has no states: whatever is estimated from it has no skill, in every function."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import pyedmcl
from pyedmcl.errors import ConstantSeriesWarning
from pyedmcl.simulate import coupled_maps

DATA = coupled_maps(n_series=4, n_steps=200, seed=2).values.astype(float)
OF_PAIRS = {
    "xmap": partial(pyedmcl.xmap, E=2),
    "E of each": partial(pyedmcl.xmap, E_max=3),
    "S-map": partial(pyedmcl.xmap, E=2, method="smap", theta=2.0),
    "folds": partial(pyedmcl.xmap, E=2, folds=3),
    "ranges": partial(pyedmcl.xmap, E=2, lib_range=(0, 100), pred_range=(100, 200)),
    "windows": partial(pyedmcl.xmap, E=2, windows=(80, 60)),
    "grid": partial(pyedmcl.xmap_grid, E=[1, 2], Tp=[-1, 0]),
    "spearman": partial(pyedmcl.xmap, E=2, skill="spearman"),
    "compact": partial(pyedmcl.xmap, E=2, precision="compact"),
    "groups": partial(pyedmcl.xmap, E=2, groups=np.repeat([1, 2], 100)),
    "significance": partial(pyedmcl.xmap_significance, E=2, n=19, seed=1),
    "ccm_matrix": partial(pyedmcl.ccm_matrix, E=2, lib_sizes=[20, 100], sample=2, seed=1),
    "ccm_matrix by S-map": partial(pyedmcl.ccm_matrix, E=2, lib_sizes=[100], sample=2, method="smap", seed=1),
    "ccm_matrix of windows": partial(pyedmcl.ccm_matrix, E=2, lib_sizes=[20, 60], sample=2, windows=(80, 60), seed=1),
}
OF_A_PAIR = {
    "ccm": lambda x, y: pyedmcl.ccm(x, y, E=2, lib_sizes=[20, 100], sample=2, seed=1).rho[0],
    "ccm by S-map": lambda x, y: pyedmcl.ccm(x, y, E=2, lib_sizes=[100], sample=2, method="smap", seed=1).rho[0],
    "ccm of windows": lambda x, y: pyedmcl.ccm(x, y, E=2, lib_sizes=[20], sample=2, windows=(80, 60), seed=1).rho[:, 0],
    "ccm_lagged": lambda x, y: pyedmcl.ccm_lagged(x, y, E=2, Tp=[-1, 0, 1]).rho[0],
    "ccm_significance": lambda x, y: pyedmcl.ccm_significance(x, y, E=2, n=19, seed=1).rho[0],
    "partial_ccm": lambda x, y: pyedmcl.partial_ccm(y, x, given=DATA[:, 3], E=2, n=19, seed=1).rho[0],
    "simplex": lambda x, y: pyedmcl.simplex(x, target=y, E=2, Tp=0).rho,
    "simplex of windows": lambda x, y: pyedmcl.simplex(x, target=y, E=2, Tp=0, windows=(80, 60)).rho,
    "embedded": lambda x, y: pyedmcl.simplex(np.column_stack([x, x]), target=y, embedded=True, Tp=0).rho,
    "smap": lambda x, y: pyedmcl.smap(x, target=y, E=2, Tp=0, theta=[0, 2]).rho,
    "embed_dimension": lambda x, y: pyedmcl.embed_dimension(x, target=y, Tp=0, E_max=3).rho,
    "predict_interval": lambda x, y: pyedmcl.predict_interval(x, target=y, E=2, Tp=[0, 1]).rho,
    "predict_nonlinear": lambda x, y: pyedmcl.predict_nonlinear(x, target=y, E=2, Tp=0, theta=[0, 1]).rho,
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("value", [7.0, 0.1, 1e9])
@pytest.mark.parametrize("name", OF_PAIRS)
def test_a_constant_row_of_a_map_is_nan(name, value, one_device):
    """And the others are those of the table without it, in which the constant series is neither cause nor effect."""
    data = DATA.copy()
    data[:, 2] = value
    rho = np.asarray(OF_PAIRS[name](data, device=one_device).rho, float)
    assert np.isnan(rho[..., 2, :]).all() and np.isnan(rho[..., :, 2]).all()
    others = np.asarray(OF_PAIRS[name](np.delete(data, 2, axis=1), device=one_device).rho, float)
    if "ccm" not in name:  # whose random libraries are those of the series' numbers
        kept = np.delete(np.delete(rho, 2, axis=-1), 2, axis=-2)
        np.testing.assert_allclose(kept, others, atol=2e-5 if name == "compact" else 1e-6)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", OF_A_PAIR)
def test_nothing_is_estimated_from_a_constant(name, one_device, monkeypatch):
    monkeypatch.setenv("PYEDMCL_DEVICE", one_device)
    x, y = np.full(200, 0.1), DATA[:, 0]
    assert np.isnan(OF_A_PAIR[name](x, y)).all()
    assert np.isfinite(OF_A_PAIR[name](DATA[:, 1], y)).all()


def test_kept_edges_hold_no_constant(one_device):
    data = DATA.copy()
    data[:, 2] = 0.1
    with pytest.warns(ConstantSeriesWarning, match="constant series, whose rho is NaN: 'x2'"):
        kept = pyedmcl.xmap(data, E=2, keep="top:3", device=one_device)
    assert 2 not in {*kept.library.tolist(), *kept.target.tolist()}


def test_a_state_with_one_constant_coordinate_has_a_skill(one_device):
    table = np.column_stack([DATA[:, 0], np.full(200, 0.1)])
    assert pyedmcl.simplex(table, target=DATA[:, 0], E=2, device=one_device).rho > 0.9


def test_a_map_that_stays_on_the_device_has_no_skill_of_a_constant(one_device):
    import pyopencl as cl
    import pyopencl.array as cl_array

    if not one_device.replace(":", "").isdigit():
        pytest.skip("the caller's memory is that of OpenCL")
    platform, device = map(int, one_device.split(":"))
    queue = cl.CommandQueue(cl.Context([cl.get_platforms()[platform].get_devices()[device]]))
    data = DATA.copy()
    data[:, 2] = 0.1
    out = cl_array.zeros(queue, (4, 4), np.float32)
    pyedmcl.xmap(data, E=2, out=out)
    assert np.isnan(out.get()[2]).all() and np.isfinite(out.get()[[0, 1, 3]][:, [0, 1, 3]]).all()
