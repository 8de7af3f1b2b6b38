"""Findings of a review of the numeric core: noise that is no skill, means far from the scored rows, extremes."""

from __future__ import annotations

import subprocess
import sys

import naive
import numpy as np
import pytest

import pyedmcl
from pyedmcl.tuning.parameters import using

# What GPUs get, small enough for a test on a CPU.
LONE_LANES = {"lanes": 1, "wg": 16, "unroll": 4, "tile": 64, "list_registers": 64}


@pytest.fixture
def lone_lanes():
    """The neighbour search with the parameters of a GPU: staged tiles, a query row per work-item."""
    with using(knn=LONE_LANES):
        yield


def single_event(n):
    """Zeros but for one row, which is no other row's neighbour: every prediction is the same number."""
    x = np.zeros(n, np.float32)
    x[n // 2] = 1
    return x


@pytest.mark.parametrize("E", [2, 3, 4])
@pytest.mark.parametrize("n", [100, 500, 4000])
def test_simplex_of_constant_predictions_has_no_skill(device, n, E):
    assert np.isnan(pyedmcl.simplex(single_event(n), E=E, Tp=0, device=device).rho)


@pytest.mark.parametrize("E", [1, 2, 3, 5])
def test_xmap_of_constant_predictions_has_no_skill(device, E):
    events = (np.random.default_rng(0).random((400, 6)) < 0.01).astype(np.float32)
    expected = naive.xmap(events, E)
    assert np.isnan(expected).any() and np.isfinite(expected).any()
    np.testing.assert_allclose(pyedmcl.xmap(events, E=E, device=device).rho, expected, rtol=0, atol=1e-5)


def transient(size):
    """Rows before the first embedded one lie far away, so that the scored rows are far from the mean of all."""
    x = naive.noisy_maps(2, 1000, 5).astype(np.float64)
    x[:20] += size
    return x.astype(np.float32)


@pytest.mark.parametrize("size", [1e3, 1e4])
def test_xmap_after_a_transient(device, size):
    x = transient(size)
    got = pyedmcl.xmap(x, E=11, tau=2, device=device).rho
    np.testing.assert_allclose(got, naive.xmap(x, 11, tau=2), rtol=0, atol=1e-5)


@pytest.mark.parametrize("size", [1e3, 1e4])
def test_embed_dimension_after_a_transient(device, size):
    x = transient(size)[:, 0]
    rho = pyedmcl.embed_dimension(x, E_max=11, tau=2, device=device).rho
    np.testing.assert_allclose(rho, naive.embed_dimension(x, 11, tau=2)[1], rtol=0, atol=1e-5)


@pytest.mark.parametrize("shift", [1e2, 3e3])
def test_xmap_where_gaps_hide_a_level_shift(device, shift):
    """The library has no rows before the target's level shift: its own mean is far from that of the scored rows."""
    x = naive.noisy_maps(2, 1000, 5).astype(np.float64)
    x[:500, 1] += shift
    x[:500, 0] = np.nan
    x = x.astype(np.float32)
    got = pyedmcl.xmap(x, E=3, device=device).rho
    np.testing.assert_allclose(got, naive.xmap(x, 3), rtol=0, atol=1e-4)


def test_one_outlier_does_not_cost_the_offset_its_accuracy(device):
    """float64 data far from zero with one dropout: rounding to float32 must not lose the digits of all the others."""
    x = naive.noisy_maps(2, 1000, 5).astype(np.float64) + 1e5
    x[7, 0] = 0.0
    got = pyedmcl.xmap(x, E=3, device=device).rho
    np.testing.assert_allclose(got, naive.xmap(x, 3), rtol=0, atol=1e-4)


@pytest.mark.parametrize("radius", [2**31 - 1, 2**31, 10**10])
def test_exclusion_radius_larger_than_an_int(device, lone_lanes, radius):
    x = naive.noisy_maps(1, 300, 1)[:, 0]
    result = pyedmcl.knn(x, E=3, exclusion_radius=radius, device=device)
    assert (result.indices == -1).all() and np.isinf(result.distances).all()


def test_very_many_neighbours_are_found_or_refused(device):
    """In a process of its own, since lists that outgrow a thread's stack end it."""
    code = (
        "import numpy as np, pyedmcl, pyedmcl.errors as e\n"
        "x = np.random.default_rng(0).standard_normal(60100).astype(np.float32)\n"
        f"try: print(pyedmcl.knn(x, E=2, k=60000, query=x[:20], device={device!r}).indices.shape)\n"
        "except (e.InputError, e.DeviceMemoryError) as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"exit status {done.returncode}: {done.stderr[-500:]}"


@pytest.mark.parametrize(("n_series", "n_steps", "limit"), [(600, 20_000, 100_000_000), (512, 50_000, 150_000_000)])
def test_xmap_keeps_to_the_memory_limit(one_device, monkeypatch, n_series, n_steps, limit):
    from pyedmcl.device.session import open_device
    from pyedmcl.engines.crossmap import CrossMap
    from pyedmcl.errors import DeviceMemoryError

    class EnoughError(Exception):
        pass

    def stop(*_):
        raise EnoughError

    monkeypatch.setenv("PYEDMCL_MEMORY_LIMIT", str(limit))
    monkeypatch.setattr(CrossMap, "_lookup", stop)  # after the first table everything is allocated
    memory = open_device(one_device).memory
    memory.peak = memory.held
    before = memory.held
    x = np.random.default_rng(0).standard_normal((n_steps, n_series)).astype(np.float32)
    with pytest.raises((EnoughError, DeviceMemoryError)):
        pyedmcl.xmap(x, E=3, device=one_device)
    assert memory.peak - before <= limit


def test_a_stored_result_says_with_which_parameters_it_was_made(one_device, tmp_path):
    x = naive.noisy_maps(4, 100, 1)
    plain, stored = pyedmcl.xmap(x, E=2, device=one_device), pyedmcl.xmap(x, E=2, device=one_device, out=tmp_path / "o")
    assert stored.provenance["parameters"] == plain.provenance["parameters"] != {}
