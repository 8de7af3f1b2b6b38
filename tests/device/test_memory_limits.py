"""Little device memory: smaller blocks and the same bits, then an error that names the numbers."""

from __future__ import annotations

import naive
import numpy as np
import pytest

import pyedmcl
from pyedmcl.device.select import open_device
from pyedmcl.engines.lookup import Lookups
from pyedmcl.errors import DeviceMemoryError

E = [3, 1, 10, 3, 20, 1, 3]
pytestmark = pytest.mark.usefixtures("each_call_allocates")


@pytest.fixture(scope="module")
def data():
    return naive.noisy_maps(7, 400, 5)


@pytest.fixture(scope="module")
def plenty(data, one_device):
    return pyedmcl.xmap(data, E=E, device=one_device).rho


def refuse_above(monkeypatch, device, limit):
    """Make the device refuse single buffers above ``limit`` bytes; returns what was asked for and what was refused."""
    executor, asked, refused = open_device(device), [], []
    allocate = executor.allocate

    def small(nbytes):
        asked.append(nbytes)
        if nbytes > limit:
            refused.append(nbytes)
            raise refusal(nbytes)
        return allocate(nbytes)

    monkeypatch.setattr(executor, "allocate", small)
    return asked, refused


def refusal(nbytes):
    error = DeviceMemoryError(f"{nbytes:,} bytes are not there")
    error.refused = True
    return error


def test_a_device_that_refuses_gets_smaller_blocks(data, plenty, one_device, monkeypatch):
    with monkeypatch.context() as patch:
        asked, _ = refuse_above(patch, one_device, 1 << 40)
        pyedmcl.xmap(data, E=E, device=one_device)
    _, refused = refuse_above(monkeypatch, one_device, max(asked) * 2 // 3)
    np.testing.assert_array_equal(pyedmcl.xmap(data, E=E, device=one_device).rho, plenty)
    assert refused, "the limit was never met: the test says nothing"


def test_whatever_is_refused_the_call_goes_on_with_less(data, plenty, one_device, monkeypatch):
    """Series, targets, layout, tables, lookups and results: each allocation is refused once."""
    executor, count = open_device(one_device), 0
    allocate, before = executor.allocate, executor.memory.held

    def fails_once(nbytes):
        nonlocal count
        count += 1
        if count == at:
            raise refusal(nbytes)
        return allocate(nbytes)

    monkeypatch.setattr(executor, "allocate", fails_once)
    at, kinds = 0, 0
    while count >= at:  # until there is no such allocation
        at, count = at + 1, 0
        np.testing.assert_array_equal(pyedmcl.xmap(data, E=E, device=one_device).rho, plenty)
        assert executor.memory.held == before
        kinds += count >= at
    assert kinds > 8


def test_a_store_that_runs_out_of_memory_says_how_to_go_on(data, one_device, monkeypatch, tmp_path):
    refuse_above(monkeypatch, one_device, 20_000)
    with pytest.raises(DeviceMemoryError, match=r"\d,\d{3} bytes.*0 of 1 blocks of .*out.* continues there"):
        pyedmcl.xmap(data, E=E, device=one_device, out=tmp_path / "out")
    monkeypatch.undo()
    assert np.isfinite(np.asarray(pyedmcl.xmap(data, E=E, device=one_device, out=tmp_path / "out").rho)).all()


def test_then_an_error_with_the_numbers(data, one_device, monkeypatch):
    refuse_above(monkeypatch, one_device, 20_000)
    with pytest.raises(DeviceMemoryError, match=r"\d,\d{3}"):
        pyedmcl.xmap(data, E=E, device=one_device)


def test_a_limit_in_the_environment_changes_no_bit(data, plenty, one_device, monkeypatch):
    executor = open_device(one_device)
    executor.memory.peak = executor.memory.held
    before = executor.memory.held
    monkeypatch.setenv("PYEDMCL_MEMORY_LIMIT", "4e6")
    np.testing.assert_array_equal(pyedmcl.xmap(data, E=E, device=one_device).rho, plenty)
    assert 0 < executor.memory.peak - before <= 4e6


def test_nothing_is_kept_on_the_device(data, one_device):
    executor = open_device(one_device)
    before = executor.memory.held
    pyedmcl.xmap(data, E=E, device=one_device)
    pyedmcl.embed_dimension(data, E_max=3, device=one_device)
    pyedmcl.simplex(data[:, 0], E=3, device=one_device)
    pyedmcl.knn(data[:, 0], E=3, query=data[:, 1], device=one_device)
    assert executor.memory.held == before


def test_targets_that_do_not_fit_are_refused_with_the_numbers(one_device, monkeypatch):
    monkeypatch.setenv("PYEDMCL_MEMORY_LIMIT", "1e5")
    with pytest.raises(DeviceMemoryError, match=r"targets of 400 steps need [\d,]+ bytes"):
        pyedmcl.xmap(np.random.default_rng(1).random((400, 100), np.float32), E=2, device=one_device)


@pytest.mark.parametrize(
    ("module", "name", "value"),
    [("pyedmcl.launch.staging", "_RAW_BYTES_CACHED", 2 * 400 * 4), ("pyedmcl.crossmap.pairs", "_BLOCK_SERIES", 2),
     ("pyedmcl.search.tables", "_TABLE_LEAST", 1), ("pyedmcl.launch.staging", "LAUNCH_SECONDS", 1e-6)],
)  # fmt: skip
def test_blocks_and_launches_of_any_size_give_the_same_bits(data, plenty, one_device, monkeypatch, module, name, value):
    monkeypatch.setattr(f"{module}.{name}", value)
    monkeypatch.setattr("pyedmcl.search.tables._TIMES_DATA", 0)
    np.testing.assert_array_equal(pyedmcl.xmap(data, E=E, device=one_device).rho, plenty)
    dims = pyedmcl.embed_dimension(data, E_max=4, device=one_device)
    monkeypatch.undo()
    np.testing.assert_array_equal(dims.rho, pyedmcl.embed_dimension(data, E_max=4, device=one_device).rho)


@pytest.mark.parametrize(("n_series", "n_steps", "limit"), [(600, 20_000, 100_000_000), (512, 50_000, 150_000_000)])
def test_xmap_keeps_to_the_memory_limit(one_device, monkeypatch, n_series, n_steps, limit):
    class EnoughError(Exception):
        pass

    def stop(*_, **__):
        raise EnoughError

    monkeypatch.setenv("PYEDMCL_MEMORY_LIMIT", str(limit))
    monkeypatch.setattr(Lookups, "run", stop)  # after the first table everything is allocated
    memory = open_device(one_device).memory
    memory.peak = memory.held
    before = memory.held
    x = np.random.default_rng(0).standard_normal((n_steps, n_series)).astype(np.float32)
    with pytest.raises((EnoughError, DeviceMemoryError)):
        pyedmcl.xmap(x, E=3, device=one_device)
    assert memory.peak - before <= limit
