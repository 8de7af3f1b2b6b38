"""Choosing and describing devices: everything that needs no hardware."""

from __future__ import annotations

import os
import sys
import warnings
from dataclasses import replace
from types import SimpleNamespace

import pytest
from device_helpers import AMD, ARC, FPGA, GIB, INTEL, LLVMPIPE, NVIDIA, OCLGRIND, POCL30, POCL31, POCL_BROKEN, numbered

from pyedmcl import config
from pyedmcl.device import info as fingerprint
from pyedmcl.device import memory, opencl, quirks, select
from pyedmcl.device.info import RUNTIMES, DeviceInfo
from pyedmcl.errors import DeviceNotFoundError, InputError


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PYEDMCL_DEVICE", "PYEDMCL_MEMORY_LIMIT", "PYEDMCL_MEMORY_FRACTION"):
        monkeypatch.delenv(name, raising=False)


# -- choosing


@pytest.mark.parametrize(
    ("infos", "expected"),
    [
        ((OCLGRIND, LLVMPIPE, POCL30, POCL31, INTEL, FPGA, ARC, AMD, NVIDIA), AMD),  # the one with more memory
        ((INTEL, FPGA, ARC, NVIDIA), NVIDIA),
        ((INTEL, FPGA, ARC), ARC),
        ((INTEL, FPGA), FPGA),
        ((OCLGRIND, LLVMPIPE, POCL30, POCL31, INTEL), INTEL),
        ((OCLGRIND, LLVMPIPE, POCL30, POCL31), POCL31),
        ((OCLGRIND, LLVMPIPE, POCL_BROKEN, POCL30, POCL31), POCL31),
        ((OCLGRIND, LLVMPIPE, POCL_BROKEN, POCL30), LLVMPIPE),
    ],
)
def test_automatic_order(infos: tuple[DeviceInfo, ...], expected: DeviceInfo) -> None:
    for order in (infos, infos[::-1]):
        choice = select.select(devices=numbered(*order))
        assert replace(choice.device, id="0:0") == expected
        assert choice.reason


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        ("gpu", AMD),
        ("CPU", INTEL),
        ("accelerator", FPGA),
        ("simulator", OCLGRIND),
        ("nvidia", NVIDIA),
        ("AMD", AMD),
        ("intel", ARC),
        ("intel-cpu", INTEL),
        ("intel-gpu", ARC),
        ("pocl", POCL31),
        ("rusticl", LLVMPIPE),
        ("oclgrind", OCLGRIND),
        ("h200", NVIDIA),
        ("*h2?0", NVIDIA),
        ("portable", POCL31),
        ("mesa", LLVMPIPE),
        ("epyc", INTEL),
        ("7:0", LLVMPIPE),
        ("*", AMD),
    ],
)
def test_requests(request_: str, expected: DeviceInfo) -> None:
    infos = numbered(NVIDIA, AMD, FPGA, INTEL, POCL30, POCL31, OCLGRIND, LLVMPIPE, ARC)
    choice = select.select(request_, devices=infos)
    assert replace(choice.device, id="0:0") == expected
    assert request_ in choice.reason


def test_intel_means_its_processor_runtime_too_but_amd_never_a_processor() -> None:
    assert select.select("intel", devices=numbered(POCL31, INTEL)).device.runtime == "intel-cpu"
    with pytest.raises(DeviceNotFoundError):
        select.select("amd", devices=numbered(INTEL, POCL31))


def test_the_environment_is_asked_after_the_argument(monkeypatch: pytest.MonkeyPatch) -> None:
    infos = numbered(NVIDIA, INTEL, POCL31)
    monkeypatch.setenv("PYEDMCL_DEVICE", "pocl")
    choice = select.select(devices=infos)
    assert choice.device.runtime == "pocl"
    assert "PYEDMCL_DEVICE" in choice.reason
    assert select.select("nvidia", devices=infos).device.runtime == "nvidia"


def test_unknown_request_lists_the_devices() -> None:
    with pytest.raises(DeviceNotFoundError) as caught:
        select.select("voodoo", devices=numbered(NVIDIA, INTEL))
    for part in ("voodoo", "0:0", "1:0", "NVIDIA H200", "AMD EPYC", "gpu", "cpu"):
        assert part in str(caught.value)


def test_no_device_says_how_to_get_one() -> None:
    for request_ in (None, "gpu"):
        with pytest.raises(DeviceNotFoundError, match=r"pip install 'pyedmcl\[cpu\]'.*--doctor"):
            select.select(request_, devices=[])


def test_only_unusable_devices_are_explained() -> None:
    with pytest.raises(DeviceNotFoundError) as caught:
        select.select(devices=numbered(OCLGRIND, POCL_BROKEN))
    assert "unknown target CPU" in str(caught.value)
    assert "simulator" in str(caught.value)
    assert select.select("broken", devices=numbered(POCL_BROKEN)).device.name == "broken"


# -- describing


# What a driver reports, and the runtime and kind that it means.
PLATFORMS = [
    ("NVIDIA CUDA", "NVIDIA Corporation", "NVIDIA H200", "gpu", ("nvidia", "gpu")),
    ("AMD Accelerated Parallel Processing", "Advanced Micro Devices, Inc.", "gfx90a", "gpu", ("amd", "gpu")),
    ("Intel(R) OpenCL", "Intel(R) Corporation", "AMD EPYC", "cpu", ("intel-cpu", "cpu")),
    ("Intel(R) OpenCL Graphics", "Intel(R) Corporation", "Intel(R) Arc", "gpu", ("intel-gpu", "gpu")),
    ("Portable Computing Language", "The pocl project", "pthread-Intel Xeon", "cpu", ("pocl", "cpu")),
    ("Portable Computing Language", "The pocl project", "NVIDIA A100", "gpu", ("pocl", "gpu")),
    ("rusticl", "Mesa/X.org", "llvmpipe (LLVM 15)", "gpu", ("rusticl", "cpu")),
    ("rusticl", "Mesa/X.org", "AMD Radeon RX 6600", "gpu", ("rusticl", "gpu")),
    ("Oclgrind", "Oclgrind", "Oclgrind Simulator", "cpu", ("oclgrind", "simulator")),
    ("Intel(R) FPGA Emulation Platform for OpenCL(TM)", "Intel", "dev", "accelerator", ("other", "simulator")),
    ("Apple", "Apple", "Apple M1", "gpu", ("other", "gpu")),
]


@pytest.mark.parametrize(("platform", "vendor", "name", "kind", "expected"), PLATFORMS)
def test_classify(platform: str, vendor: str, name: str, kind: str, expected: tuple[str, str]) -> None:
    assert opencl.classify(platform, vendor, name, kind) == expected


def test_each_runtime_is_recognised() -> None:
    assert {runtime for *_, (runtime, _) in PLATFORMS} == set(RUNTIMES)


def test_every_quirk_row_has_a_reason_and_changes_known_fields() -> None:
    names = set(quirks.Quirks.__dataclass_fields__)
    for row in quirks.TABLE:
        assert row.reason
        assert row.change
        assert set(row.change) <= names


def test_quirks_of_the_known_devices() -> None:
    for info in (NVIDIA, AMD, ARC, FPGA):
        found = quirks.quirks_for(info)
        assert (found.fma, found.minimum, found.defaults_for, found.unusable) == ("builtin", "fmin", "gpu", None)
    for info, fma in ((INTEL, "contract-vectors"), (POCL31, "contract")):
        found = quirks.quirks_for(info)
        assert (found.fma, found.minimum, found.defaults_for) == (fma, "select", "cpu")
    # On a processor, but its compiler takes minutes for what suits processors.
    found = quirks.quirks_for(LLVMPIPE)
    assert (found.fma, found.defaults_for, found.scalar_work_items) == ("builtin", "gpu", False)
    assert quirks.quirks_for(OCLGRIND).defaults_for == "cpu"
    assert quirks.quirks_for(OCLGRIND).max_work_group < quirks.quirks_for(INTEL).max_work_group
    assert quirks.quirks_for(replace(NVIDIA, max_work_group=32)).max_work_group == 32
    assert quirks.quirks_for(POCL_BROKEN).unusable
    # On ARM "generic" is a target that works.
    arm = replace(POCL_BROKEN, version="OpenCL 3.0 PoCL HSTR: cpu-aarch64-unknown-linux-gnu-generic")
    assert quirks.quirks_for(arm).unusable is None


@pytest.mark.parametrize(
    ("driver", "usable"),
    [("3.0", False), ("3.0-rc2", False), ("3.0.1", False), ("3.1+debian", True), ("6.0", True), ("30.1", True)],
)
def test_pocl_3_0_is_unusable_for_its_wrong_distances(driver: str, usable: bool) -> None:
    found = quirks.quirks_for(replace(POCL31, driver=driver))
    assert (found.unusable is None) == usable
    if not usable:
        assert "wrong distances" in found.unusable
        assert quirks.POCL_FROM in found.instead


def test_an_unusable_device_that_was_named_is_used_with_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    from pyedmcl.device import select

    monkeypatch.setattr(select, "discover", lambda executor: [])
    monkeypatch.setattr(select.registry, "open_executor", lambda info, context: SimpleNamespace(info=info))
    monkeypatch.setattr(select, "_open", {})
    with pytest.warns(RuntimeWarning, match=r"was named, but PoCL 3\.0 gives wrong distances.*conda-forge"):
        assert select.executor_for(POCL30).info == POCL30
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        select.executor_for(POCL30)  # once is enough
        select.executor_for(POCL31)


def test_the_device_key_is_stable_and_ignores_the_place() -> None:
    key = fingerprint.device_key(NVIDIA)
    assert key == fingerprint.device_key(replace(NVIDIA, id="3:1", global_bytes=1))
    assert key.digest() == "6bc65ea5f7003685"  # stores and tuning files on disk hold this number
    for change in ({"driver": "2"}, {"version": "OpenCL 4"}, {"name": "H100"}, {"compute_units": 1}):
        assert fingerprint.device_key(replace(NVIDIA, **change)).digest() != key.digest()


def settings(**changes: object) -> config.Config:
    values: dict[str, object] = {
        "device": None,
        "memory_fraction": 0.5,
        "memory_limit": None,
    }
    return config.Config(**{**values, **changes})  # type: ignore[arg-type]


def test_memory_budget() -> None:
    assert memory.budget(AMD, settings=settings()) == memory.MemoryBudget(total=32 * GIB, largest=4 * GIB)
    # NVIDIA's largest allocation is no real limit.
    assert memory.budget(NVIDIA, settings=settings()) == memory.MemoryBudget(total=8 * GIB, largest=8 * GIB)
    assert memory.budget(NVIDIA, settings=settings(memory_fraction=0.125)).largest == 2 * GIB
    assert memory.budget(NVIDIA, settings=settings(memory_limit=1000)) == memory.MemoryBudget(1000, 1000)
    # The host's free memory does not bound a card, but it does bound a processor.
    assert memory.budget(NVIDIA, settings=settings(), host_free=GIB).total == 8 * GIB
    assert memory.budget(INTEL, settings=settings(), host_free=GIB).total == GIB // 2
    assert memory.budget(INTEL, settings=settings(), host_free=100 * GIB).total == 4 * GIB


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc/meminfo")
def test_host_available_is_plausible() -> None:
    free = memory.host_available()
    assert free is not None
    assert 0 < free <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def test_several_devices_are_named_together(monkeypatch):
    found = numbered(AMD, NVIDIA, INTEL, POCL31, OCLGRIND)

    def ids(request):
        return [choice.device.id for choice in select.select_several(request, devices=found)]

    assert ids(None) == ids("gpu") == ["0:0"]
    assert ids("gpus") == ["0:0", "1:0"]
    assert ids("all") == ["0:0", "1:0", "2:0"]  # the two runtimes of the processor share its cores
    assert ids("3:0, 1:0") == ids(["pocl", "nvidia"]) == ids(("3:0", "1:0", "pocl")) == ["3:0", "1:0"]
    assert select.select("gpus", devices=found).device.id == "0:0"
    monkeypatch.setenv("PYEDMCL_DEVICE", "gpus")
    assert ids(None) == ["0:0", "1:0"]
    assert select.select(devices=found).device.id == "0:0"


@pytest.mark.parametrize(("number", "wanted"), [("0", "0:0"), ("1", "1:0"), ("2", "0:0")])
def test_the_processes_of_a_node_share_its_gpus(monkeypatch, number, wanted):
    monkeypatch.setenv("OMPI_COMM_WORLD_LOCAL_RANK", number)
    (choice,) = select.select_several("gpu:local", devices=numbered(AMD, NVIDIA, INTEL))
    assert choice.device.id == wanted
    assert "OMPI_COMM_WORLD_LOCAL_RANK" in choice.reason


@pytest.mark.parametrize(
    ("request_", "said"),
    [("gpus", "there is no GPU.*epyc|there is no GPU"), ("gpu:local", "no GPU"), (["cpu", "voodoo"], "voodoo"),
     ([], "at least one device"), (7, "a list of names"), ([["cpu", 7]], "a list of names")],
)  # fmt: skip
def test_what_names_no_devices_is_refused(request_, said):
    with pytest.raises((DeviceNotFoundError, InputError), match=said):
        select.select_several(request_, devices=numbered(INTEL, POCL31))


def test_a_process_without_a_place_on_its_node_is_told(monkeypatch):
    for name in config.LOCAL_RANKS:
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(DeviceNotFoundError, match="SLURM_LOCALID"):
        select.select_several("gpu:local", devices=numbered(NVIDIA))
