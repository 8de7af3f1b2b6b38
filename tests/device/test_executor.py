"""Every executor on every usable device of this machine."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np
import pytest

from pyedmcl.device import executor as registry
from pyedmcl.device import select
from pyedmcl.device.executor import Executor
from pyedmcl.device.info import DeviceInfo
from pyedmcl.device.opencl import OpenCLEvent
from pyedmcl.device.quirks import quirks_for
from pyedmcl.errors import BuildError, DeviceMemoryError, DeviceNotFoundError, LaunchError
from pyedmcl.kernels import texts
from pyedmcl.kernels.kernel_spec import declared

SCALE = """
__kernel void scale(__global const float *x, __global float *y, int n, float factor, long shift)
{
    int i = get_global_id(0);
    if (i < n) y[i] = x[i] * factor + (float)shift;
}
"""
SLOTS = declared(
    """
    scale(const float* x; float* y; int n; float factor; long shift)
    both(const float* a, b, c; float* one, two)
    spin(float* x)
    k(int* x)
    """,
    False,
)
FUSED = """
#pragma OPENCL FP_CONTRACT OFF
inline float fused(float a, float b, float c)
{
#if CONTRACT
#pragma OPENCL FP_CONTRACT ON
    return a * b + c;
#else
    return fma(a, b, c);
#endif
}
__kernel void both(__global const float *a, __global const float *b, __global const float *c,
                   __global float *one, __global float *two)
{
    int i = get_global_id(0);
    one[i] = fused(a[i], b[i], c[i]);
    two[i] = a[i] * b[i] + c[i];
}
"""


def usable() -> list[DeviceInfo]:
    try:
        return [info for info in select.discover_every() if quirks_for(info).unusable is None]
    except DeviceNotFoundError:
        return []


DEVICES = usable()
if not DEVICES:
    pytest.skip("no usable OpenCL device on this machine", allow_module_level=True)


@pytest.fixture(params=DEVICES, ids=lambda info: f"{info.runtime}-{info.id}", scope="module")
def executor(request: pytest.FixtureRequest) -> Iterator[Executor]:
    made = registry.open_executor(request.param)
    yield made
    made.close()


def run_scale(executor: Executor, x: np.ndarray, factor: float, shift: int) -> np.ndarray:
    kernel = executor.build(SCALE).kernel("scale", SLOTS["scale"])
    source = executor.upload(x)
    target = executor.upload(np.full_like(x, -1))
    executor.launch(kernel, (x.size,), (16,), x=source, y=target, n=x.size, factor=factor, shift=shift).wait()
    return executor.download(target, np.empty_like(x))


def test_a_kernel_runs_with_every_kind_of_argument(executor: Executor) -> None:
    x = np.arange(64, dtype=np.float32)
    np.testing.assert_array_equal(run_scale(executor, x, 2.0, 3), 2 * x + 3)
    np.testing.assert_array_equal(run_scale(executor, x, -0.5, -1), -0.5 * x - 1)


def test_arguments_that_are_remembered_are_still_replaced(executor: Executor) -> None:
    kernel = executor.build(SCALE).kernel("scale", SLOTS["scale"])
    x = np.arange(32, dtype=np.float32)
    source, first, second = executor.upload(x), executor.upload(-x), executor.upload(-x)
    rest = {"n": 32, "factor": 1.0, "shift": 0}
    executor.launch(kernel, (32,), (16,), x=source, y=first, **rest)
    executor.launch(kernel, (32,), (32,), x=source, y=second, n=8, factor=4, shift=0)
    first.release()
    fresh = executor.upload(-x)  # may get the address that was just released
    executor.launch(kernel, (32,), (32,), x=source, y=fresh, **rest)
    expected = np.where(np.arange(32) < 8, 4 * x, -x)
    np.testing.assert_array_equal(executor.download(second, np.empty_like(x)), expected)
    np.testing.assert_array_equal(executor.download(fresh, np.empty_like(x)), x)


def test_copies_with_offsets(executor: Executor) -> None:
    buffer = executor.upload(np.zeros(10, dtype=np.int32))
    assert executor.upload(np.array([7, 8], dtype=np.int32), into=buffer, offset=12) is buffer
    np.testing.assert_array_equal(executor.download(buffer, np.empty(3, dtype=np.int32), offset=8), [0, 7, 8])
    with pytest.raises(LaunchError, match="passes the end"):
        executor.upload(np.zeros(2, dtype=np.int32), into=buffer, offset=36)
    with pytest.raises(LaunchError, match="passes the end"):
        executor.download(buffer, np.empty(11, dtype=np.int32))
    with pytest.raises(LaunchError, match="C-contiguous"):
        executor.download(buffer, np.empty((4, 4), dtype=np.int32)[:, :2])


def test_an_upload_takes_strided_and_empty_arrays(executor: Executor) -> None:
    x = np.arange(20, dtype=np.float64).reshape(4, 5).T
    np.testing.assert_array_equal(executor.download(executor.upload(x), np.empty((5, 4))), x)
    empty = executor.upload(np.empty(0))
    assert empty.nbytes == 1
    assert executor.download(empty, np.empty(0)).size == 0


def test_a_released_buffer_is_refused(executor: Executor) -> None:
    buffer = executor.upload(np.zeros(16, dtype=np.float32))
    buffer.release()
    buffer.release()
    with pytest.raises(LaunchError, match="released"):
        executor.download(buffer, np.empty(1))
    kernel = executor.build(SCALE).kernel("scale", SLOTS["scale"])
    with pytest.raises(LaunchError, match="released"):
        executor.launch(kernel, (16,), (16,), x=buffer, y=buffer, n=1, factor=1, shift=0)


def test_a_build_failure_holds_the_log_and_the_source(executor: Executor) -> None:
    source = "__kernel void k(__global float *x) { x[0] = no_such_name; }"
    with pytest.raises(BuildError) as caught:
        executor.build(source)
    assert "no_such_name" in caught.value.log
    assert caught.value.source == source
    assert caught.value.log in str(caught.value)
    # A failure must not stand in the way of what follows.
    np.testing.assert_array_equal(run_scale(executor, np.ones(16, dtype=np.float32), 2.0, 0), np.full(16, 2.0))


def test_builds_are_kept_per_source_and_options(executor: Executor) -> None:
    source = "__kernel void k(__global int *x) { x[0] = VALUE; }"
    first = executor.build(source, ["-DVALUE=1"])
    assert executor.build(source, ("-DVALUE=1",)) is first
    second = executor.build(source, ["-DVALUE=2"])
    buffer = executor.allocate(4)
    values = []
    for program in (first, second):
        executor.launch(program.kernel("k", SLOTS["k"]), (1,), (1,), x=buffer)
        values.append(int(executor.download(buffer, np.empty(1, dtype=np.int32))[0]))
    assert values == [1, 2]


def test_the_language_is_opencl_c_1_2(executor: Executor) -> None:
    source = "__kernel void k(__global int *x) { x[0] = __OPENCL_C_VERSION__; }"
    buffer = executor.allocate(4)
    executor.launch(executor.build(source).kernel("k", SLOTS["k"]), (1,), None, x=buffer)
    assert executor.download(buffer, np.empty(1, dtype=np.int32))[0] == 120


def test_a_missing_kernel_is_named(executor: Executor) -> None:
    with pytest.raises(BuildError, match="no_such_kernel"):
        executor.build(SCALE).kernel("no_such_kernel", SLOTS["k"])


def test_wrong_arguments_are_explained(executor: Executor) -> None:
    kernel = executor.build(SCALE).kernel("scale", SLOTS["scale"])
    buffer = executor.allocate(64)
    right = {"x": buffer, "y": buffer, "n": 3, "factor": 1, "shift": 0}
    for wrong, said in (
        ({"m": 3}, "kernel scale: it has no argument m. It takes x, y, n, factor, shift."),
        ({"n": None}, "argument 'n' of kernel scale is a number of type int32, and None was given"),
        ({"n": 1.5}, "argument 'n' .* 1.5 was given"),
        ({"n": 1 << 31}, "argument 'n' .* 2147483648 was given"),
        ({"n": buffer}, "argument 'n' .* a buffer was given"),
        ({"factor": "1"}, "argument 'factor' .* a number of type float32, and '1' was given"),
        ({"x": 3}, "argument 'x' of kernel scale is a buffer of float32, and 3 was given"),
        ({"y": executor.upload(np.zeros(8))}, "argument 'y' .* a buffer was given whose elements have 8 bytes"),
    ):
        with pytest.raises(LaunchError, match=said):
            executor.launch(kernel, (16,), (16,), **{**right, **wrong})
    with pytest.raises(LaunchError, match="kernel scale: no value was given for y, shift and it has no argument z"):
        executor.launch(kernel, (16,), (16,), x=buffer, n=3, factor=1, z=0)
    if executor.info.runtime != "oclgrind":
        with pytest.raises(LaunchError, match=r"\(16,\).*7"):
            executor.launch(kernel, (16,), (7,), **right)
    executor.launch(kernel, (16,), (16,), **right).wait()


def test_numbers_are_given_as_the_kernel_declares_them(executor: Executor) -> None:
    kernel = executor.build(SCALE).kernel("scale", SLOTS["scale"])
    x = np.ones(16, np.float32)
    kinds = (16, 2, 1), (np.int64(16), np.float64(2), True), (np.uint8(16), np.float32(2), np.int8(1))
    for n, factor, shift in kinds:
        source, target = executor.upload(x), executor.upload(np.zeros_like(x))
        executor.launch(kernel, (16,), (16,), x=source, y=target, n=n, factor=factor, shift=shift)
        np.testing.assert_array_equal(executor.download(target, np.empty_like(x)), np.full(16, 3, np.float32))


def test_a_kernel_that_is_declared_otherwise_is_refused(executor: Executor) -> None:
    with pytest.raises(BuildError, match="kernel scale takes 5 arguments, and 4 are declared"):
        executor.build(f"{SCALE}// again\n").kernel("scale", SLOTS["scale"][:4])


def test_too_large_an_allocation_names_the_numbers(executor: Executor) -> None:
    with pytest.raises(DeviceMemoryError) as caught:
        executor.allocate(1 << 50)
    with pytest.raises(ValueError, match="-1 bytes"):
        executor.allocate(-1)
    for part in (f"{1 << 50:,}", executor.info.name, f"{executor.info.max_alloc_bytes:,}"):
        assert part in str(caught.value)


def test_time_on_the_device_is_measured(executor: Executor) -> None:
    source = """__kernel void spin(__global float *x) {
        float v = x[get_global_id(0)];
        for (int i = 0; i < 20000; ++i) v = v * 0.999f + 0.5f;
        x[get_global_id(0)] = v;
    }"""
    if executor.info.kind == "simulator":
        source = source.replace("20000", "20")
    kernel = executor.build(source).kernel("spin", SLOTS["spin"])
    event = executor.launch(kernel, (64,), (16,), x=executor.upload(np.zeros(64, dtype=np.float32)))
    assert 0 < event.seconds < 10
    assert event.seconds == event.seconds
    executor.finish()


def test_a_driver_without_a_clock_tells_no_time() -> None:
    """rusticl on llvmpipe counts 0, 1, 2, 3 instead of nanoseconds: no time is told, and the tuner takes its own."""
    for end, seconds in ((3, 0.0), (5002, 5e-6)):
        profile = SimpleNamespace(start=2, end=end)
        event = OpenCLEvent(SimpleNamespace(wait=lambda: None, profile=profile), SimpleNamespace(errors=()))  # type: ignore[arg-type]
        assert event.seconds == seconds


def test_the_quirk_for_fused_multiply_add_rounds_once(executor: Executor) -> None:
    rng = np.random.default_rng(5)
    a, b = rng.standard_normal((2, 1024)).astype(np.float32)
    # The product cancels all but its rounding error, which only a fused operation can return.
    c = -(a * b)
    exact = (a.astype(np.float64) * b + c).astype(np.float32)
    contract = int(quirks_for(executor.info).fma == "contract")
    options = [f"-DCONTRACT={contract}", *quirks_for(executor.info).build_options]
    kernel = executor.build(texts.prelude(quirks_for(executor.info)) + FUSED, options).kernel("both", SLOTS["both"])
    inputs = {name: executor.upload(values) for name, values in (("a", a), ("b", b), ("c", c))}
    one, two = executor.allocate(4096), executor.allocate(4096)
    executor.launch(kernel, (1024,), (64,), **inputs, one=one, two=two)
    np.testing.assert_array_equal(executor.download(one, np.empty_like(a)), exact)
    # The rest of the file stays unfused.
    np.testing.assert_array_equal(executor.download(two, np.empty_like(a)), a * b + c)


def test_groups_that_are_left_open_have_few_sizes(executor: Executor) -> None:
    """Where a runtime compiles a kernel for each of them, one size serves all launches of whole groups."""
    source = "__kernel void k(__global int *x) { x[get_global_id(0)] = get_local_size(0) * get_local_size(1); }"
    kernel = executor.build(source).kernel("k", SLOTS["k"])
    most = quirks_for(executor.info).group_left_open
    for size in ((64,), (640,), (4096, 3), (12,)):
        found = np.zeros(size[0], np.int32)
        executor.launch(kernel, size, None, x=executor.upload(found, buffer := executor.allocate(found.nbytes)))
        executor.download(buffer, found)
        group = math.gcd(size[0], most) if most else found[0]
        np.testing.assert_array_equal(found, np.full(size[0], group))
        assert math.prod(size) % group == 0


def test_threads_have_kernels_of_their_own(executor: Executor) -> None:
    if executor.info.runtime == "oclgrind":
        pytest.skip("Oclgrind crashes when two threads use it")
    program = executor.build(SCALE)
    kernels: list[object] = []
    failures: list[object] = []

    def work(factor: int) -> None:
        try:
            kernel = program.kernel("scale", SLOTS["scale"])
            assert program.kernel("scale", SLOTS["scale"]) is kernel
            kernels.append(kernel)
            x = np.arange(64, dtype=np.float32) + factor
            for shift in range(20):
                np.testing.assert_array_equal(run_scale(executor, x, factor, shift), x * factor + shift)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(factor,)) for factor in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len({id(kernel) for kernel in kernels}) == 4
