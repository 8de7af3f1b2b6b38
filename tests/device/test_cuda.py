"""The executor on NVIDIA's driver, on a driver that computes nothing: all that the host does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from cuda_helpers import COMPILER, HeadsOnly, fake_library, state_of
from device_helpers import INTEL, NVIDIA

import pyedmcl
from pyedmcl.device import cuda, nvrtc, opencl, runtimes, select
from pyedmcl.device.info import device_key
from pyedmcl.device.quirks import quirks_for
from pyedmcl.errors import BuildError, DeviceMemoryError, DeviceNotFoundError, InputError, LaunchError
from pyedmcl.kernels.kernel_spec import declared

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the executor is for Linux"),
    pytest.mark.skipif(COMPILER is None, reason="there is no C compiler"),
]
TEXT = """
kernel void scale(global const float* x, global float* y, int n, float factor, long shift) {}
kernel __attribute__((reqd_work_group_size(64, 1, 1))) void other(global float* y) {}
"""
SLOTS = declared("scale(const float* x; float* y; int n; float factor; long shift)\nother(float* y)", False)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return fake_library(tmp_path_factory.mktemp("driver"))


@pytest.fixture
def driver(library, monkeypatch, tmp_path):
    """The driver's state; its GPU is found as one of CUDA's."""
    state, compiler = state_of(library), HeadsOnly()
    state.limit, state.pools = 1 << 34, 1
    state.kernel_error = state.lost = state.without_context = state.depth = 0
    monkeypatch.setenv("PYEDMCL_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(cuda, "LIBRARY", str(library))
    monkeypatch.setattr(cuda, "_driver", None)
    monkeypatch.setattr(cuda, "_found", None)
    monkeypatch.setattr(nvrtc, "nvrtc", lambda version: compiler)
    monkeypatch.setattr(select, "_open", {})
    state.compiler = compiler
    yield state
    if not state.kernel_error:
        select.close_all()
        assert (state.without_context, state.depth) == (0, 0), "each call has a context, and gives it back"


@pytest.fixture
def executor(driver):
    return select.open_device("cuda")


def kernel(executor, name="scale", text=TEXT):
    return executor.build(text).kernel(name, SLOTS[name])


def test_the_gpu_is_described_as_its_opencl_twin(driver):
    (info,) = select.discover(executor="cuda")
    assert (info.id, info.executor, info.runtime, info.kind) == ("cuda:0:0", "cuda", "nvidia", "gpu")
    assert (info.max_work_group, info.local_bytes, info.clock_mhz, info.compute_units) == (1024, 48 << 10, 1980, 132)
    assert "executor" not in device_key(info).as_dict()
    quirks = quirks_for(info)
    assert quirks.local_bytes == 227 << 10 and quirks.matrix_units and quirks.keep_programs


def test_copies_go_there_and_back(executor):
    x = np.arange(1000, dtype=np.float32)
    buffer = executor.upload(x)
    np.testing.assert_array_equal(executor.download(buffer, np.empty(500, np.float32), offset=400), x[100:600])
    executor.upload(x[::2], buffer, offset=2000)
    np.testing.assert_array_equal(executor.download(buffer, np.empty(1000, np.float32)), np.r_[x[:500], x[::2]])
    large = np.arange(3 << 20, dtype=np.float64)  # more than what is staged
    np.testing.assert_array_equal(executor.download(executor.upload(large), np.empty_like(large)), large)


def test_buffers_lie_in_one(executor):
    parts = [executor.allocate(100), executor.allocate(300)]
    joint, begins = executor.join(parts)
    assert begins == [0, 256]
    executor.upload(np.arange(139, dtype=np.float32), joint)
    assert executor.download(parts[1], np.empty(1, np.float32))[0] == 64


def test_arguments_and_sizes_reach_the_driver(driver, executor):
    x, y = executor.allocate(4), executor.allocate(4)
    event = executor.launch(kernel(executor), (6, 4), (3, 2), x=x, y=y, n=-7, factor=0.5, shift=1 << 40)
    assert list(driver.grid) == [2, 2, 1, 3, 2, 1] and driver.local_memory == 0
    assert list(driver.arguments[:2]) == [x.memory.address, y.memory.address]
    numbers = np.array(driver.arguments[2:5], np.uint64)
    assert numbers.view(np.int32)[0] == -7 and numbers.view(np.float32)[2] == 0.5 and numbers[2] == 1 << 40
    assert event.seconds == pytest.approx(1e-5, rel=1e-3)
    executor.launch(kernel(executor), (512,), None, x=y, y=x, n=1, factor=0.5, shift=1)
    assert list(driver.grid[:4]) == [2, 1, 1, 256]
    assert list(driver.arguments[:2]) == [y.memory.address, x.memory.address]
    unmeasured = executor.unmeasured().launch(kernel(executor, "other"), (64,), (64,), y=y)
    assert unmeasured.seconds == 0 and driver.launches == 3


def test_local_memory_is_asked_for_where_it_is_not_declared(driver, executor):
    executor.launch(kernel(executor, "other", TEXT + "// LOCAL_60_KB\n#define LOCAL_60_KB\n"), (64,), (64,),
                    y=executor.allocate(4))  # fmt: skip
    assert driver.local_memory == 60 << 10


def test_a_refused_launch_says_which_group_was_too_large(executor):
    with pytest.raises(LaunchError, match="CUDA_ERROR") as caught:
        executor.launch(kernel(executor, "other"), (4096,), (2048,), y=executor.allocate(4))
    assert (caught.value.kernel, caught.value.work_group) == ("other", 2048)
    with pytest.raises(LaunchError, match="no whole groups"):
        executor.launch(kernel(executor, "other"), (100,), (64,), y=executor.allocate(4))
    with pytest.raises(LaunchError, match="was refused"):  # more groups along y than there can be
        executor.launch(kernel(executor, "other"), (1, 65536), (1, 1), y=executor.allocate(4))


def test_a_refused_text_has_the_compilers_log(executor):
    with pytest.raises(BuildError, match="refused a kernel") as caught:
        executor.build("kernel void f(global int* x) { does_not_exist(x); }")
    assert "does_not_exist" in caught.value.log and caught.value.source.startswith("kernel void f")
    with pytest.raises(BuildError, match="there is no kernel 'third'"):
        executor.build(TEXT).kernel("third", ())


def test_programs_are_kept_for_the_next_process(driver, executor):
    kernel(executor)
    select.close_all()
    kernel(select.open_device("cuda"))
    assert driver.compiler.compiled == 1
    kernel(select.open_device("cuda"), text=TEXT + "\n")
    assert driver.compiler.compiled == 2


@pytest.mark.parametrize("pools", [1, 0])
def test_memory_is_given_back(driver, pools):
    driver.pools = pools
    executor = select.open_device("cuda")
    before = driver.held
    kept = [executor.allocate(1 << 29) for _ in range(3)]
    assert driver.held - before == 3 << 29 == executor.memory.held
    kept[0].release()
    del kept
    assert driver.held == before and executor.memory.held == 0
    driver.limit = driver.held + (1 << 20)
    with pytest.raises(DeviceMemoryError, match="CUDA_ERROR_OUT_OF_MEMORY") as caught:
        executor.allocate(1 << 21)
    assert caught.value.refused


def test_an_error_of_a_kernel_ends_all_work_and_says_so(driver, executor):
    event = executor.launch(kernel(executor, "other"), (64,), (64,), y=executor.allocate(4))
    driver.kernel_error = 700
    with pytest.raises(LaunchError, match=r"CUDA_ERROR_ILLEGAL_ADDRESS.*PyTorch and CuPy, too: end the process"):
        event.wait()
    for later in (executor.finish, lambda: executor.allocate(4), executor.unmeasured):
        with pytest.raises(LaunchError, match="end the process"):
            later()
    select.close_all()


def test_threads_use_one_executor(driver, executor):
    data = [np.full(2000, i, np.float32) for i in range(8)]
    seen = {}

    def work(i):
        for _ in range(50):
            buffer = executor.upload(data[i])
            executor.launch(kernel(executor, "other"), (64,), (64,), y=buffer).wait()
            seen[i] = executor.download(buffer, np.empty(2000, np.float32))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((seen[i] == i).all() for i in range(8))


def test_public_functions_run_on_it(driver):
    """Nothing is computed; that the host's part of whole calls comes to an end is what is seen."""
    x = np.random.default_rng(1).standard_normal((300, 4))
    result = pyedmcl.rqa(x[:, 0], m=2, tau=1, radius=0.5, device="cuda")
    assert result.provenance["device_id"] == "cuda:0:0"
    pyedmcl.xmap(x, E=2, device="cuda", tune="never")
    assert driver.launches > 5


def listed(monkeypatch, *infos):
    monkeypatch.setattr(opencl, "devices", lambda refresh=False: list(infos))


def test_it_stands_in_where_nvidias_opencl_is_missing(driver, monkeypatch):
    listed(monkeypatch, INTEL)
    assert [info.executor for info in select.discover()] == ["opencl", "cuda"]
    assert select.select().device.id == "cuda:0:0"
    assert select.select("cpu").device == INTEL
    assert select.select("nvidia").device.executor == "cuda"
    listed(monkeypatch, INTEL, NVIDIA)
    assert [info.executor for info in select.discover()] == ["opencl", "opencl"]
    assert select.select("nvidia").device == NVIDIA
    every = select.discover_every()
    assert [info.executor for info in every][-1] == "cuda"
    assert select.select(devices=every).device == NVIDIA
    assert select.select("cuda", devices=every).device.id == "cuda:0:0"


def test_it_needs_no_pyopencl(driver, monkeypatch):
    def missing(refresh=False):
        raise DeviceNotFoundError("PyOpenCL cannot be imported")

    monkeypatch.setattr(opencl, "devices", missing)
    assert select.open_device().info.id == "cuda:0:0"
    assert [info.id for info in select.discover_every()] == ["cuda:0:0"]
    monkeypatch.setattr(cuda, "LIBRARY", "libnone.so.1")
    monkeypatch.setattr(cuda, "_driver", None)
    with pytest.raises(DeviceNotFoundError, match="PyOpenCL"):
        select.discover()


def test_without_a_compiler_or_a_gpu_it_is_not_there(driver, monkeypatch):
    def none(version):
        raise DeviceNotFoundError("NVRTC, NVIDIA's compiler, is not installed: pip install 'pyedmcl[cuda]'")

    monkeypatch.setenv("FAKE_CUDA_NO_GPU", "1")
    with pytest.raises(DeviceNotFoundError, match="cannot be used"):
        select.discover(executor="cuda")
    monkeypatch.delenv("FAKE_CUDA_NO_GPU")
    monkeypatch.setattr(nvrtc, "nvrtc", none)
    with pytest.raises(DeviceNotFoundError, match=r"pyedmcl\[cuda\]"):
        select.discover(executor="cuda")
    listed(monkeypatch, INTEL)
    assert select.select().device == INTEL


def test_a_gpu_that_the_compiler_does_not_know_is_left_out(driver, monkeypatch):
    monkeypatch.setattr(driver.compiler, "_targets", [100, 120])
    with pytest.raises(DeviceNotFoundError, match=r"older than compute capability 10\.0, and this one has 9\.0"):
        select.discover(executor="cuda")
    listed(monkeypatch, INTEL)
    assert select.select().device == INTEL


def test_a_fork_is_refused(driver, executor, monkeypatch):
    monkeypatch.setattr(runtimes, "_pid", os.getpid() + 1)
    with pytest.raises(LaunchError, match="forked"):
        cuda.driver()
    monkeypatch.setattr(executor, "_pid", os.getpid() + 1)
    with pytest.raises(LaunchError, match="forked"):
        executor.allocate(4)
    monkeypatch.undo()


def test_a_device_that_was_closed_says_so(executor):
    executor.close()
    executor.close()
    with pytest.raises(LaunchError, match="was closed"):
        executor.allocate(4)


class CudaArray:
    """An array as CUDA's libraries describe theirs; the memory is the host's, as all of this driver's is."""

    def __init__(self, shape, dtype, *, stream=None, read_only=False, strides=None, at=None):
        self.values = np.zeros(shape, dtype)
        self.__cuda_array_interface__ = {
            "shape": shape, "typestr": np.dtype(dtype).str, "data": (at or self.values.ctypes.data, read_only),
            "strides": strides, "version": 3, "stream": stream,
        }  # fmt: skip

    def get(self):
        return self.values


def test_results_go_to_arrays_of_the_caller_after_its_stream(driver):
    x = np.random.default_rng(1).standard_normal((200, 3))
    out = CudaArray((3, 3), np.float32, stream=77)
    result = pyedmcl.xmap(x, E=2, out=out, tune="never")
    assert result.rho.array is out and result.rho.dtype == np.float32 and result.rho.shape == (3, 3)
    assert driver.waited_for == 77
    assert list(driver.arguments).count(out.values.ctypes.data) or driver.launches > 3
    pyedmcl.xmap(x, E=2, out=CudaArray((3, 3), np.float32), device="cuda", tune="never")


@pytest.mark.parametrize(("given", "why"), [
    ({"read_only": True}, "read-only"), ({"strides": (4, 12)}, "gaps between"), ({"at": 8}, "does not know the array"),
    ({"strides": (12, 4)}, None),
])  # fmt: skip
def test_arrays_that_cannot_be_written_are_refused(driver, given, why):
    out = CudaArray((3, 3), np.float32, **given)
    if why is None:
        assert select.described(out, "out").memory == out.values.ctypes.data
        return
    with pytest.raises(InputError, match=why):
        select.described(out, "out")


def test_memory_of_other_contexts_is_refused(executor):
    primary = executor._context
    assert executor.reaches((primary, 0)) and executor.reaches((0, 0)), "memory of a pool belongs to no context"
    assert not executor.reaches((primary + 8, 0)) and not executor.reaches((0, 1)) and not executor.reaches(object())


def handle(module, name, **attributes):
    return type(name, (), {"__module__": module, **attributes})()


@pytest.mark.parametrize(("given", "stream"), [
    (handle("torch.cuda.streams", "Stream", cuda_stream=5, device_index=0), 5),
    (handle("torch", "device", type="cuda", index=None), None),
    (handle("cupy.cuda.stream", "Stream", ptr=6, device_id=-1), 6),
    (handle("cupy.cuda.device", "Device", id=0), None),
    (handle("cuda.core", "Stream", __cuda_stream__=lambda self: (0, 7)), 7),
])  # fmt: skip
def test_streams_and_gpus_of_other_libraries_name_the_device(driver, given, stream):
    (place,) = select.places(given)
    assert place.info.id == "cuda:0:0" and place.queue == stream
    assert select.open_device(given).info.id == "cuda:0:0"
    assert stream is None or driver.waited_for == stream


@pytest.mark.parametrize("given", [
    handle("torch", "Tensor"), handle("torch", "device", type="cpu", index=None), handle("cupy", "Device", id=9),
])  # fmt: skip
def test_other_objects_of_these_libraries_are_refused(driver, given):
    with pytest.raises(InputError, match=r"a stream or a GPU is needed|there is no GPU 9"):
        select.places(given)


_DEMO = """
import sys
sys.modules["pyopencl"] = None  # as if it were not installed
sys.path[:0] = {folders}
from cuda_helpers import HeadsOnly
from pyedmcl.device import cuda as cuda_devices, nvrtc
cuda_devices.LIBRARY, compiler = {library}, HeadsOnly()
nvrtc.nvrtc = lambda version: compiler
from pyedmcl.cli.app import main
sys.argv = ["pyedmcl", *{arguments}]
main()
"""


def command(library, *arguments):
    folders = [str(place) for place in sys.path if place]
    program = _DEMO.format(library=repr(str(library)), folders=folders, arguments=list(arguments))
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)


def test_commands_need_no_pyopencl(library):
    done = command(library, "devices", "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["chosen"] == "cuda:0:0" and answer["devices"][0]["executor"] == "cuda"
