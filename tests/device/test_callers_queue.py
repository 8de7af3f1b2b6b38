"""Queues, contexts and devices of the caller: work is done there, in order, with the same bits."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import pyedmcl
from pyedmcl.device import opencl, runtimes, select
from pyedmcl.device.executor import Executor
from pyedmcl.errors import InputError
from pyedmcl.kernels.kernel_spec import declared

ROOT = Path(__file__).parents[2]
X = np.cumsum(np.random.default_rng(4).standard_normal((200, 4)), axis=0).astype(np.float32)


@pytest.fixture
def cl():
    return runtimes.opencl()


@pytest.fixture
def handle(device):
    """PyOpenCL's own object for a tested device."""
    if device.startswith("sycl"):
        pytest.skip("dpctl's objects have a test of their own")
    yield opencl.handle(select.open_device(device).info)
    select.close_all()


def executor_of(request) -> Executor:
    return select.open_device(request)


def test_a_queue_gives_the_same_bits_in_its_context(cl, handle, device):
    context = cl.Context([handle])
    queue = cl.CommandQueue(context)
    out_of_order = cl.CommandQueue(context, properties=cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE)
    expected = pyedmcl.xmap(X, E=3, device=device).rho
    for request in (queue, context, handle, [queue], out_of_order):
        np.testing.assert_array_equal(pyedmcl.xmap(X, E=3, device=request).rho, expected)
    executor = executor_of(queue)
    assert executor._context == context
    assert executor is executor_of(context) is executor_of(out_of_order)
    assert executor_of(handle) is executor_of(device) is not executor
    assert executor.info == executor_of(device).info
    one, two = select.open_devices([queue, device])
    assert one is executor and two is executor_of(device)
    assert select.open_devices([queue, context]) == [executor]


def test_work_waits_for_what_is_on_the_queue(cl, one_device):
    context = cl.Context([opencl.handle(select.open_device(one_device).info)])
    queue = cl.CommandQueue(context)
    held = cl.UserEvent(context)
    cl.enqueue_marker(queue, wait_for=[held])
    executor = executor_of(queue)
    kernel = executor.build("kernel void k(global int* x) { x[0] = 1; }").kernel("k", declared("k(int* x)", False)["k"])
    event = executor.launch(kernel, (1,), (1,), x=executor.allocate(4))
    executor._queue.flush()
    try:
        assert event._event.command_execution_status != cl.command_execution_status.COMPLETE
    finally:
        held.set_status(cl.command_execution_status.COMPLETE)
    event.wait()
    select.close_all()


def test_contexts_of_the_caller_are_not_kept_for_ever(cl, one_device):
    device = opencl.handle(select.open_device(one_device).info)
    contexts = [cl.Context([device]) for _ in range(select._FOREIGN_KEPT + 2)]
    executors = [executor_of(context) for context in contexts]
    assert executor_of(contexts[-1]) is executors[-1]
    assert executor_of(contexts[0]) is not executors[0]
    assert sum(key[2] is not None for key in select._open) == select._FOREIGN_KEPT
    select.close_all()


def test_what_cannot_be_used_says_what_to_give_instead(cl, one_device):
    device = opencl.handle(select.open_device(one_device).info)
    with pytest.raises(InputError, match="a CommandQueue, a Context or a Device is needed"):
        pyedmcl.knn(X[:, 0], E=2, device=device.platform)
    with ThreadPoolExecutor(1) as pool, pytest.raises(InputError, match="open devices by name"):
        pyedmcl.xmap(X, E=2, client=pool, device=cl.CommandQueue(cl.Context([device])))
    try:
        parts = device.create_sub_devices([cl.device_partition_property.EQUALLY, 1])
    except (cl.Error, AttributeError):
        pytest.skip("this device cannot be divided")
    with pytest.raises(InputError, match="sub-device"):
        pyedmcl.knn(X[:, 0], E=2, device=cl.Context([parts[0]]))


def test_the_tutorial_runs_as_it_stands(one_device, monkeypatch, capsys):
    program = "".join(re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "pipeline.md").read_text(), re.DOTALL))
    cl = runtimes.opencl()
    device = opencl.handle(select.open_device(one_device).info)
    monkeypatch.setattr(cl, "create_some_context", lambda interactive: cl.Context([device]))
    names: dict[str, object] = {}
    exec(compile(program, "pipeline.md", "exec"), names)
    rho, x = names["rho"].get(), names["raw"]
    smoothed = (x[:-2] + x[1:-1] + x[2:]) / np.float32(3)
    np.testing.assert_allclose(rho, pyedmcl.xmap(smoothed, E=3, device=one_device).rho, atol=1e-4)
    best = np.where(np.eye(len(rho), dtype=bool), -2, rho).argmax(axis=0)
    first, second = capsys.readouterr().out.splitlines()
    assert first == str(best)
    copies = names["copies"]
    assert second == str(copies) and copies.downloaded >= smoothed.nbytes + rho.nbytes
    select.close_all()


def test_a_queue_of_dpctl_gives_the_same_bits_in_its_context(sycl_device):
    from pyedmcl.device import sycl

    dpctl = runtimes.sycl()
    device = sycl.handle(select.open_device(sycl_device).info)
    queue = dpctl.SyclQueue(device)  # out of order, without times
    expected = pyedmcl.xmap(X, E=3, device=sycl_device).rho
    for request in (queue, device):
        np.testing.assert_array_equal(pyedmcl.xmap(X, E=3, device=request).rho, expected)
    assert executor_of(queue)._context == queue.sycl_context
    assert executor_of(device) is executor_of(sycl_device)
    left_out = [device for device in dpctl.get_devices() if not device.has_aspect_usm_device_allocations]
    for device in left_out:
        with pytest.raises(InputError, match="no unified shared memory") as refused:
            pyedmcl.knn(X[:, 0], E=2, device=device)
        named = re.search(r"Make the queue with dpctl.SyclQueue\('([^']*)'\)", str(refused.value))
        assert dpctl.SyclDevice(named[1]).has_aspect_usm_device_allocations
    with pytest.raises(InputError, match="a SyclQueue or a SyclDevice is needed"):
        pyedmcl.knn(X[:, 0], E=2, device=queue.sycl_context)
    select.close_all()
