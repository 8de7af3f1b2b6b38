"""SYCL devices: which there are, what is said where there are none, and the same bits as through OpenCL."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from cli_helpers import environment
from device_helpers import ARC, INTEL, POCL31

import pyedmcl
from pyedmcl.device import doctor, quirks, runtimes, select, sycl
from pyedmcl.device import executor as registry
from pyedmcl.errors import BuildError, DeviceNotFoundError


def listed(info, backend="opencl", usm=True):
    """A device as dpctl describes it."""
    return SimpleNamespace(
        filter_string=f"{backend}:{info.kind}:0", name=info.name, driver_version=info.driver,
        backend=SimpleNamespace(name=backend), sycl_platform=SimpleNamespace(name=info.platform),
        has_aspect_usm_device_allocations=usm,
    )  # fmt: skip


TWINS = [replace(INTEL, id="0:0"), replace(POCL31, id="1:0"), replace(ARC, id="2:0"), replace(ARC, id="2:1")]


def test_devices_have_the_description_of_their_opencl_twins():
    found = sycl.paired([listed(ARC), listed(ARC), listed(INTEL)], TWINS)
    assert [info.id for info, _ in found.devices] == ["sycl:0:0", "sycl:2:0", "sycl:2:1"]
    assert not found.left_out
    for info, _ in found.devices:
        twin = next(twin for twin in TWINS if f"sycl:{twin.id}" == info.id)
        assert info == replace(twin, id=info.id, executor="sycl")


def test_what_cannot_be_opened_is_left_out_with_its_reason():
    found = sycl.paired(
        [listed(ARC, "level_zero"), listed(POCL31, usm=False), listed(replace(ARC, name="unknown"))], TWINS
    )
    assert not found.devices
    assert [reason.count(word) for (_, reason), word in zip(
        found.left_out, ("its level_zero back end", "no unified shared memory", "PyOpenCL does not see"), strict=True
    )] == [1, 1, 1]  # fmt: skip


def test_devices_of_level_zero_come_first_where_programs_are_spirv():
    """A description is that of the OpenCL device of the same name; without one nothing is known of a device."""
    zero, one, lone = listed(ARC, "level_zero"), listed(INTEL), listed(replace(ARC, name="unknown"), "level_zero")
    found = sycl.paired([listed(ARC), zero, lone, one], TWINS)
    assert [(info.id, device) for info, device in found.spirv if device in (zero, one, lone)] == [
        ("spirv:0:0", one), ("spirv:2:0", zero)]  # fmt: skip
    assert {info.executor for info, _ in found.spirv} == {"spirv"}
    assert all(quirks.quirks_for(info).fma == "builtin" for info, _ in found.spirv)


def test_what_compiles_to_spirv_is_asked_for_where_it_lacks(monkeypatch):
    monkeypatch.setattr(sycl, "_found", sycl.paired([listed(INTEL)], TWINS))
    monkeypatch.setattr(runtimes, "sycl", lambda: None)
    monkeypatch.setattr(sycl.shutil, "which", lambda name: None)
    with pytest.raises(DeviceNotFoundError, match=r"no compiler for SPIR-V is installed.*ocloc.*llvm-spirv"):
        pyedmcl.simplex(np.arange(30.0), E=1, device="spirv:cpu")
    with pytest.raises(BuildError, match="no compiler for SPIR-V"):
        sycl.compile_spirv("kernel void f() {}", [])


def test_sycl_devices_count_only_where_sycl_is_named(monkeypatch):
    monkeypatch.delenv("PYEDMCL_DEVICE", raising=False)
    mine = [replace(twin, id=f"sycl:{twin.id}", executor="sycl") for twin in TWINS if twin is not TWINS[1]]
    devices = [*mine, *TWINS]
    for request, expected in (
        (None, "2:0"), ("cpu", "0:0"), ("0:0", "0:0"), ("opencl", "2:0"), ("opencl:pocl", "1:0"), ("sycl", "sycl:2:0"),
        ("sycl:cpu", "sycl:0:0"), (" SYCL:GPU ", "sycl:2:0"), ("sycl:2:1", "sycl:2:1"), ("sycl:intel-cpu", "sycl:0:0"),
    ):  # fmt: skip
        assert select.select(request, devices=devices).device.id == expected
    several = select.select_several("sycl:gpus", devices=devices)
    assert [choice.device.id for choice in several] == ["sycl:2:0", "sycl:2:1"]
    several = select.select_several("sycl:0:0, 1:0", devices=devices)
    assert [choice.device.id for choice in several] == ["sycl:0:0", "1:0"]
    with pytest.raises(DeviceNotFoundError, match="no device that sycl reaches"):
        select.select("sycl", devices=TWINS)
    with pytest.raises(DeviceNotFoundError, match="no device matches"):
        select.select("sycl:nvidia", devices=devices)
    monkeypatch.setenv("PYEDMCL_DEVICE", "sycl:cpu")
    assert select.select(devices=devices).device.id == "sycl:0:0"


def test_absent_and_old_versions_of_dpctl_say_what_to_install(monkeypatch):
    monkeypatch.setattr(runtimes, "_sycl", None)
    monkeypatch.setitem(sys.modules, "dpctl", None)
    with pytest.raises(DeviceNotFoundError, match=r"pip install 'pyedmcl\[sycl\]'"):
        pyedmcl.simplex(np.arange(30.0), E=1, device="sycl")
    assert not any(info.executor == "sycl" for info in select.discover_every())
    for name in ("dpctl", "dpctl.memory", "dpctl.program"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    sys.modules["dpctl"].__version__ = "0.21.0+7"
    with pytest.raises(DeviceNotFoundError, match=r"dpctl 0\.22\.1 or newer, and 0\.21\.0\+7 is installed"):
        select.discover(executor="sycl")


def test_the_doctor_tells_what_dpctl_lists(tmp_path):
    def findings(found, **environ):
        system = doctor.System(
            root=tmp_path, environ=environ, load_error=lambda name: "no", installed=lambda name: True,
            import_error=lambda: None, devices=lambda: [INTEL], sycl=lambda: found,
        )  # fmt: skip
        return [finding for finding in doctor.diagnose(system) if "SYCL" in finding.what or "dpctl" in finding.what]

    found = sycl.paired([listed(INTEL), listed(ARC, "level_zero")], TWINS)
    assert [finding.level for finding in findings(found)] == ["info", "ok"]
    (nothing,) = findings(sycl.Found([], []), ONEAPI_DEVICE_SELECTOR="level_zero:*")
    assert nothing.level == "warning" and "unset ONEAPI_DEVICE_SELECTOR" in nothing.how_to_mend


@pytest.mark.parametrize(("module", "name"), [
    ("program", "create_program_from_source"), ("program", "create_kernel_bundle_from_source"),
    ("compiler", "create_kernel_bundle_from_source"),
])  # fmt: skip
def test_the_function_that_compiles_is_found_by_its_names(module, name):
    compile = object()
    there = SimpleNamespace(__version__="9", **{module: SimpleNamespace(**{name: compile})})
    assert sycl.compiler_of(there) is compile


def test_a_dpctl_that_compiles_nothing_is_told():
    with pytest.raises(BuildError, match="dpctl 9 has no function that compiles"):
        sycl.compiler_of(SimpleNamespace(__version__="9", program=SimpleNamespace()))


class Memory:
    freed = 0

    def __del__(self):
        Memory.freed += 1


def test_memory_is_freed_once_the_queue_has_passed_it(monkeypatch):
    monkeypatch.setattr(Memory, "freed", 0)
    late = sycl.LateFree("complete")
    sycl.UsmMemory(Memory(), late).release()
    assert Memory.freed == 1  # nothing was queued
    first = late.last = SimpleNamespace(execution_status="running")
    block = sycl.UsmMemory(Memory(), late)
    block.release()
    block.release()
    second = late.last = SimpleNamespace(execution_status="running")
    sycl.UsmMemory(Memory(), late)  # nobody releases it
    late.sweep()
    assert Memory.freed == 1
    first.execution_status = "complete"
    late.sweep()
    assert Memory.freed == 2
    second.execution_status = "complete"
    late.sweep()
    assert Memory.freed == 3


@pytest.fixture(scope="module")
def twins(sycl_device):
    """A device of dpctl and the same one of PyOpenCL."""
    yield sycl_device, sycl_device.removeprefix("sycl:")
    select.close_all()


RNG = np.random.default_rng(19)
WALK = np.cumsum(RNG.standard_normal((300, 5)), axis=0)
GAPS = np.where(RNG.random(WALK.shape) < 0.01, np.nan, WALK)
CALLS = {
    "knn": lambda x, **named: pyedmcl.knn(x[:, 0], E=3, k=4, **named),
    "simplex": lambda x, **named: pyedmcl.simplex(x[:, 0], E=2, **named).predicted,
    "embed_dimension": lambda x, **named: pyedmcl.embed_dimension(x, E_max=4, **named).rho,
    "smap": lambda x, **named: pyedmcl.smap(x[:, 0], E=2, theta=1.0, **named).predicted,
    "multiview": lambda x, **named: pyedmcl.multiview(x, "x0", E=2, **named).predicted,
    "xmap": lambda x, **named: pyedmcl.xmap(x, E=3, **named).rho,
    "xmap by S-map": lambda x, **named: pyedmcl.xmap(x, E=2, method="smap", theta=1.0, **named).rho,
    "ccm": lambda x, **named: pyedmcl.ccm(x[:, 0], x[:, 1], E=2, lib_sizes=[20, 60], sample=4, seed=1, **named).rho,
    "ccm_matrix": lambda x, **named: pyedmcl.ccm_matrix(x, lib_sizes=[20, 60], E=2, sample=2, seed=1, **named).rho,
    "rqa": lambda x, **named: pyedmcl.rqa(x[:, 0], m=2, radius=1.5, **named),
    "windowed_rqa": lambda x, **named: pyedmcl.windowed_rqa(x[:, 0], window=100, step=50, m=2, radius=1.5, **named),
    "recurrence_plot": lambda x, **named: pyedmcl.recurrence_plot(x[:, 0], m=2, radius=1.5, pixels=64, **named),
}


def numbers(result):
    """All arrays and numbers of a result."""
    if isinstance(result, np.ndarray):
        return [result]
    if isinstance(result, (int, float)):
        return [np.asarray(result)]
    if isinstance(result, dict):
        return [array for value in result.values() for array in numbers(value)]
    if hasattr(result, "__dict__"):
        return [array for name, value in sorted(vars(result).items()) if name != "provenance"
                for array in numbers(value)]  # fmt: skip
    if isinstance(result, (list, tuple)):
        return [array for value in result for array in numbers(value)]
    return []


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", CALLS)
def test_functions_have_the_bits_of_opencl(name, dtype, twins):
    x = (WALK if "plot" in name else GAPS).astype(dtype)
    got, expected = (numbers(CALLS[name](x, device=device, tune="never")) for device in twins)
    assert len(got) == len(expected) > 0
    for ours, theirs in zip(got, expected, strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("name", ["knn", "xmap", "rqa"])
def test_functions_have_the_bits_of_opencl_with_programs_in_spirv(name, twins):
    why = sycl.missing()
    if why is not None:
        pytest.skip(why)
    mine, opencl = twins[0].replace("sycl:", "spirv:"), twins[1]
    assert select.open_device(mine).info.executor == "spirv"
    got, expected = (numbers(CALLS[name](GAPS, device=device, tune="never")) for device in (mine, opencl))
    assert len(got) == len(expected) > 0
    for ours, theirs in zip(got, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_text_that_does_not_compile_to_spirv_shows_the_compilers_log(twins):
    if sycl.missing() is not None:
        pytest.skip(sycl.missing())
    executor = select.open_device(twins[0].replace("sycl:", "spirv:"))
    with pytest.raises(BuildError, match="teapot"):
        executor.build("kernel void f(teapot a) {}")


def test_what_was_tuned_for_a_device_serves_both_ways_to_it(twins):
    from pyedmcl.device.info import device_key

    one, other = (select.open_device(device).info for device in twins)
    assert one.executor == "sycl" and other.executor == "opencl"
    assert device_key(one) == device_key(other)


ENDS = """
import os, sys
import numpy as np
from pyedmcl.kernels.kernel_spec import declared
from pyedmcl.device.select import open_device
executor = open_device(sys.argv[1])
held = [executor.upload(np.zeros(1 << 20)) for _ in range(3)]
slots = declared("k(double* x)", True)["k"]
kernel = executor.build("kernel void k(global double* x) { x[get_global_id(0)] += 1; }").kernel("k", slots)
for buffer in held:
    executor.launch(kernel, (1 << 20,), None, x=buffer)
held.pop().release()
"""


def test_a_process_ends_in_silence_with_work_on_the_queue(sycl_device):
    done = subprocess.run([sys.executable, "-c", ENDS, sycl_device], capture_output=True, text=True, timeout=120,
                          env=environment())  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_the_binding_is_not_imported_unasked():
    assert registry.EXECUTORS["sycl"].when_named
    assert registry.named_in("sycl:gpu") == ("sycl", "gpu")
    assert registry.named_in("NVIDIA: H200") == (None, "NVIDIA: H200")
