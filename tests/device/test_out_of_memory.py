"""Memory that is refused anywhere, by the device or the host: the same result with less of it, or one error of ours."""

from __future__ import annotations

import numpy as np
import pytest

import pyedmcl
from pyedmcl.device.select import open_device
from pyedmcl.errors import DeviceMemoryError, HostMemoryError, LaunchError

X = np.random.default_rng(0).standard_normal((150, 3)).cumsum(axis=0)
A, B = X[:, 0], X[:, 1]
pytestmark = pytest.mark.usefixtures("each_call_allocates")
CALLS = {
    "knn": lambda d: pyedmcl.knn(A, E=2, device=d).distances,
    "simplex": lambda d: pyedmcl.simplex(A, E=2, device=d).predicted,
    "embed_dimension": lambda d: pyedmcl.embed_dimension(X, E_max=3, device=d).rho,
    "smap": lambda d: pyedmcl.smap(A, E=2, theta=[0, 1.0], device=d).rho,
    "ccm": lambda d: pyedmcl.ccm(A, B, E=2, lib_sizes=[20, 60], sample=8, seed=1, device=d).rho,
    "ccm_matrix": lambda d: pyedmcl.ccm_matrix(X, E=2, lib_sizes=[20, 60], sample=4, seed=1, device=d).rho,
    "multiview": lambda d: pyedmcl.multiview(X, target=0, D=2, device=d).predicted,
    "rqa": lambda d: pyedmcl.rqa(A, m=2, radius=1.0, device=d).recurrence_rate,
    "rqa of a rate": lambda d: pyedmcl.rqa(A, m=2, radius=0.1, threshold="recurrence_rate", device=d).recurrence_rate,
    "rqa_batch": lambda d: pyedmcl.rqa_batch(X, m=2, radius=1.0, device=d).measure("DET"),
    "windowed_rqa": lambda d: pyedmcl.windowed_rqa(A, m=2, radius=1.0, window=50, step=20, device=d).to_frame().values,
}


def refused(nbytes):
    error = DeviceMemoryError(f"{nbytes:,} bytes are not there")
    error.refused = True
    return error


@pytest.mark.parametrize("name", CALLS)
def test_every_allocation_may_be_refused(one_device, monkeypatch, name):
    executor, call, count = open_device(one_device), CALLS[name], 0
    allocate, expected, before = executor.allocate, np.asarray(CALLS[name](one_device)), executor.memory.held

    def fails_once(nbytes):
        nonlocal count
        count += 1
        if count == at:
            raise refused(nbytes) if kind == "device" else MemoryError("Unable to allocate 8 GiB")
        return allocate(nbytes)

    monkeypatch.setattr(executor, "allocate", fails_once)
    at, count, kind = 0, 0, "device"
    call(one_device)
    last = count
    for at in range(1, last + 1, max(last // 8, 1)):
        kind = "device" if at % 2 else "host"
        count = 0
        np.testing.assert_allclose(np.asarray(call(one_device)), expected, rtol=1e-4)
        assert count > at, "it was never refused: the test says nothing"
        assert executor.memory.held == before


@pytest.mark.parametrize("name", CALLS)
def test_memory_that_is_never_there_is_one_error(one_device, monkeypatch, name):
    executor = open_device(one_device)
    before = executor.memory.held

    def never(nbytes):
        raise refused(nbytes)

    monkeypatch.setattr(executor, "allocate", never)
    with pytest.raises(DeviceMemoryError, match="bytes are not there"):
        CALLS[name](one_device)
    assert executor.memory.held == before


def test_memory_of_the_host_is_told_with_what_is_free(one_device, monkeypatch):
    empty = np.empty

    def no_room(shape, *more, **options):
        if shape in ((3, 3), (1, 3, 3)):  # of the result
            raise MemoryError("Unable to allocate 9 TiB")
        return empty(shape, *more, **options)

    monkeypatch.setattr(np, "empty", no_room)
    with pytest.raises(HostMemoryError, match=r"Unable to allocate 9 TiB.*bytes are free.*out="):
        pyedmcl.xmap(X, E=2, device=one_device)


def test_out_of_resources_while_work_runs_is_memory_where_much_is_held(one_device):
    executor = open_device(one_device)
    error = executor.cl.RuntimeError("clFinish failed: OUT_OF_RESOURCES")
    assert isinstance(executor.failure("work on the device failed", error), LaunchError)
    held, executor.memory.held = executor.memory.held, executor.info.global_bytes // 2
    try:
        failure = executor.failure("work on the device failed", error)
    finally:
        executor.memory.held = held
    assert isinstance(failure, DeviceMemoryError) and failure.refused and not failure.kernel
