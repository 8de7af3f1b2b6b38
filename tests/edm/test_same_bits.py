"""Two runtimes give the same bits: of neighbours, predictions and skill, of all kinds of series and calls.

So what these functions do with arguments and hard data is tested on one device elsewhere.
"""

from __future__ import annotations

import json
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path

import numpy as np
import pytest

import pyedmcl
from pyedmcl.device.quirks import quirks_for
from pyedmcl.kernels import build
from pyedmcl.simulate import coupled_maps

RESULTS = Path(__file__).parents[2] / "bench" / "results"


def series(kind, n=6, length=400):
    x = coupled_maps(n_series=n, n_steps=length, seed=3).values.copy()
    if kind == "ties":
        x = np.round(x * 15) / 15
    elif kind == "gaps":
        x[30:34, 0] = x[200, 2] = np.nan
    elif kind == "far":
        x = 1e4 + x * 10.0 ** np.arange(-3, n - 3)
    elif kind == "transient":
        x[:20] += 1e4
    elif kind == "events":  # many predictions are the same number
        x = (x > 0.7) * (np.random.default_rng(0).random(x.shape) < 0.1) * 1.0
    return x


def simplex(x, **more):
    found = pyedmcl.simplex(x[:, 0], E=3, **more)
    return [found.predicted, found.variance, found.rho, found.mae, found.rmse]


CALLS = {
    "simplex": simplex,
    "embed_dimension": lambda x, **more: [pyedmcl.embed_dimension(x, E_max=5, **more).rho],
    "xmap": lambda x, **more: [pyedmcl.xmap(x, E=3, **more).rho],
    "many_neighbours": lambda x, **more: [pyedmcl.xmap(x, E=2, Tp=2, knn=12, exclusion_radius=3, **more).rho],
    "mixed": lambda x, **more: [pyedmcl.xmap(x, E="auto", E_max=4, **more).rho],
    "ccm": lambda x, **more: [
        pyedmcl.ccm(x[:, 0], x[:, 1], E=3, lib_sizes=[15, 60, 250], sample=20, seed=1, **more).rho
    ],
    "xmap_significance": lambda x, **more: [
        pyedmcl.xmap_significance(x, E=2, n=5, seed=1, surrogate="shuffle", **more).p_value
    ],
}


@pytest.mark.parametrize("kind", ["plain", "ties", "gaps", "far", "transient", "events"])
@pytest.mark.parametrize("name", CALLS)
def test_two_runtimes_agree(both_devices, name, kind):
    found = [CALLS[name](series(kind), device=device) for device in both_devices]
    for one, other in zip(*found, strict=True):
        assert np.isfinite(one).any()
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", ["simplex", "xmap", "ccm"])
def test_two_runtimes_agree_in_float64(both_devices, name):
    found = [CALLS[name](series("gaps"), dtype="float64", device=device) for device in both_devices]
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


# Solves of S-map, and what is made of them.
SOLVED = ("smap/*", "predict_nonlinear/*", "*/smap", "*/smap-*")


def recorded(device):
    cases = json.loads((RESULTS / f"digests-{device}.json").read_text())["cases"]
    return {name: found for name, found in cases.items() if not any(fnmatch(name, solved) for solved in SOLVED)}


@pytest.mark.parametrize("device", ["pocl", "h200"])
def test_what_was_recorded_of_devices_agrees(device):
    """All cases of bench/digests.py, some 200, of which this file computes a few."""
    intel, other = recorded("intel"), recorded(device)
    # Of the H200: a limit of memory below what a GPU's parameters take.
    absent = {"pocl": set(), "h200": {"ccm/blocks"}}[device]
    compared = [name for name in intel if name in other and name not in absent]
    assert len(compared) > 150 and set(intel) - set(compared) <= absent
    for name in compared:
        for part, output in intel[name].items():
            assert output[1] == other[name][part][1], f"{name}: {part}"


@pytest.mark.parametrize("name", ["simplex", "xmap", "ccm"])
def test_a_device_that_divides_roughly_agrees(one_device, monkeypatch, name):
    """Its quotients and roots are corrected: as kernels would be built where the driver promises nothing."""
    wanted = CALLS[name](series("gaps"), device=one_device)
    monkeypatch.setattr(build, "quirks_for", lambda info: replace(quirks_for(info), exact_division=False))
    texts, text_for = [], build.text_for
    monkeypatch.setattr(build, "text_for", lambda *given: texts.append(text_for(*given)) or texts[-1])
    for one, other in zip(wanted, CALLS[name](series("gaps"), device=one_device), strict=True):
        np.testing.assert_array_equal(one, other)
    assert texts and all("#define DIVISION_EXACT 0" in text for text in texts)


@pytest.mark.parametrize("neighbors", ["pruned", "kdtree"])
def test_every_exact_search_gives_the_same_predictions(device, neighbors):
    """Weights are computed by another kernel then."""
    if neighbors == "kdtree":
        pytest.importorskip("scipy")
    for kind in ("plain", "ties"):
        wanted = simplex(series(kind), device=device)
        for one, other in zip(wanted, simplex(series(kind), device=device, neighbors=neighbors), strict=True):
            np.testing.assert_array_equal(one, other)
