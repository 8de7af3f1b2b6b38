"""What a newcomer gets wrong, through every function: an InputError that names the argument and what is legal."""

from __future__ import annotations

import inspect
from functools import partial

import numpy as np
import pytest

import pyedmcl
from pyedmcl.errors import InputError, PyedmclError

N = 40
X, Y = np.random.default_rng(0).random((2, N))
TABLE = np.column_stack([X, Y, X * Y])
NAN = np.full(N, np.nan)
CALLS = {
    "knn": partial(pyedmcl.knn, E=2),
    "simplex": partial(pyedmcl.simplex, E=2),
    "smap": partial(pyedmcl.smap, E=2),
    "predict_nonlinear": partial(pyedmcl.predict_nonlinear, E=2),
    "predict_interval": partial(pyedmcl.predict_interval, E=2),
    "predict_exclusion_radius": partial(pyedmcl.predict_exclusion_radius, E=2),
    "embed_dimension": partial(pyedmcl.embed_dimension, E_max=3),
    "multiview": partial(pyedmcl.multiview, target=0, D=2),
    "ccm": partial(pyedmcl.ccm, y=Y, E=2, sample=2),
    "ccm_lagged": partial(pyedmcl.ccm_lagged, y=Y, E=2, Tp=[0]),
    "ccm_significance": partial(pyedmcl.ccm_significance, y=Y, E=2, n=5),
    "ccm_matrix": partial(pyedmcl.ccm_matrix, E=2, sample=2),
    "xmap": partial(pyedmcl.xmap, E=2),
    "xmap_significance": partial(pyedmcl.xmap_significance, E=2, n=5),
    "causal_network": partial(pyedmcl.causal_network, E=2, n=5, sample=2, lags=[-1, 0]),
    "partial_ccm": partial(pyedmcl.partial_ccm, y=Y, given=Y[::-1], E=2, n=2),
    "surrogate": partial(pyedmcl.surrogate, n=2),
}
TABLES = ("causal_network", "multiview", "ccm_matrix", "xmap", "xmap_significance")
WRONG = {
    "E": (0, 2.5, "3", True),
    "E_max": (0, "x", None),
    "tau": (0, -1, "1", None),
    "Tp": (0.5, None, "1"),
    "knn": (0, "x", 2.5),
    "exclusion_radius": (-1, 0.5, None),
    "theta": (-1, "x", None, np.inf, 1e21),
    "solver": ("qr", None),
    "lib_range": ((0, 100), (9, 3), "0:9", np.ones(5, bool), np.zeros(N, bool)),
    "pred_range": ((0, 100), 5, np.zeros(N, bool)),
    "valid_lib": (np.ones(5, bool), "all", np.zeros(N, bool)),
    "lib_sizes": (1000, 0, [20, 20], "20"),
    "lib_size": (1000, "x"),
    "sample": (0, "x", None),
    "seed": (-1, "x"),
    "method": ("x", None),
    "surrogate": ("x",),
    "n": (0, 1.5),
    "period": (1, "x"),
    "recurrence": (0, 2, "x"),
    "D": (0, 10),
    "n_views": (0, 100),
    "dtype": ("float16", None),
    "device": (5,),
    "tune": ("x",),
    "out": (5,),
    "progress": (5,),
    "generate_steps": (-1, "x"),
}
CASES = [
    (name, argument, value)
    for name in CALLS
    for argument in inspect.signature(getattr(pyedmcl, name)).parameters
    for value in WRONG.get(argument, ())
]


@pytest.mark.parametrize("name", list(CALLS))
def test_arguments_are_named(name):
    data = TABLE if name in TABLES else X
    wrong = [(argument, value) for called, argument, value in CASES if called == name]
    assert len(wrong) > 8
    for argument, value in wrong:
        with pytest.raises(InputError, match=rf"\b{argument}\b"):
            CALLS[name](data, **{argument: value})


@pytest.mark.parametrize("name", [name for name in CALLS if name not in ("knn", "embed_dimension", "xmap")])
def test_data_are_named(name):
    few = np.stack([X[:2]] * 3, axis=1) if name in TABLES else X[:2]
    gaps = np.stack([NAN] * 3, axis=1) if name in TABLES else NAN
    for data in (few, gaps, "series.csv", None, ["a"] * N, np.where(TABLE > 0.9, np.inf, TABLE)):
        with pytest.raises(PyedmclError, match=r"\b(data|lib|x|y|series|method)\b"):
            CALLS[name](data)


@pytest.mark.parametrize("name", ["simplex", "predict_interval", "predict_exclusion_radius", "multiview"])
def test_too_few_library_rows_for_the_neighbours_asked_for(one_device, name):
    data = TABLE if name == "multiview" else X
    call = partial(CALLS[name], data, lib_range=(0, 12), pred_range=(12, N), device=one_device)
    with pytest.raises(InputError, match=r"knn=11 neighbours cannot be found"):
        call(knn=11, **({} if name == "predict_interval" else {"Tp": 3}))
    assert call(knn=1) is not None
    sizes = {"knn": 100} if name == "multiview" else {"target": NAN}
    with pytest.raises(InputError, match="rows have all their coordinates"):
        call(**sizes)


def test_a_series_of_gaps_among_others_is_kept(one_device):
    found = pyedmcl.embed_dimension(np.column_stack([X, NAN]), E_max=2, lib_range=(0, 30), device=one_device)
    assert np.isfinite(found.rho[0]).all() and np.isnan(found.rho[1]).all() and found.E[1] == 1
