"""Descriptions of devices, and folders of ICD files, for tests that need no hardware."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pyedmcl.device.info import DeviceInfo

GIB = 1 << 30

BASE = DeviceInfo(
    id="0:0",
    name="device",
    vendor="vendor",
    platform="platform",
    version="OpenCL 3.0",
    driver="1.0",
    kind="gpu",
    runtime="other",
    compute_units=8,
    max_work_group=1024,
    clock_mhz=1000,
    local_bytes=48 << 10,
    global_bytes=16 * GIB,
    max_alloc_bytes=4 * GIB,
    fp64=True,
    fp16=False,
    subgroups=False,
    opencl_c="OpenCL C 1.2",
)
NVIDIA = replace(BASE, name="NVIDIA H200", vendor="NVIDIA Corporation", platform="NVIDIA CUDA", runtime="nvidia")
AMD = replace(
    BASE,
    name="gfx90a",
    vendor="Advanced Micro Devices, Inc.",
    platform="AMD Accelerated Parallel Processing",
    runtime="amd",
    global_bytes=64 * GIB,
)
ARC = replace(
    BASE,
    name="Intel(R) Arc(TM) A770",
    vendor="Intel(R) Corporation",
    platform="Intel(R) OpenCL Graphics",
    runtime="intel-gpu",
)
FPGA = replace(BASE, name="board", platform="Accelerators", kind="accelerator")
INTEL = replace(
    BASE,
    name="AMD EPYC",
    vendor="Intel(R) Corporation",
    platform="Intel(R) OpenCL",
    runtime="intel-cpu",
    kind="cpu",
    max_work_group=8192,
)
POCL30 = replace(
    BASE,
    name="pthread-AMD EPYC",
    vendor="AuthenticAMD",
    platform="Portable Computing Language",
    version="OpenCL 3.0 PoCL HSTR: pthread-x86_64-unknown-linux-gnu-znver3",
    driver="3.0-rc2",
    runtime="pocl",
    kind="cpu",
)
POCL31 = replace(POCL30, driver="3.1+debian")
POCL_BROKEN = replace(
    POCL30, driver="6.0", version="OpenCL 3.0 PoCL HSTR: pthread-x86_64-unknown-linux-gnu-generic", name="broken"
)
LLVMPIPE = replace(BASE, name="llvmpipe", vendor="Mesa/X.org", platform="rusticl", runtime="rusticl", kind="cpu")
OCLGRIND = replace(
    BASE, name="Oclgrind Simulator", vendor="Oclgrind", platform="Oclgrind", runtime="oclgrind", kind="simulator"
)


def numbered(*infos: DeviceInfo) -> list[DeviceInfo]:
    return [replace(info, id=f"{place}:0") for place, info in enumerate(infos)]


def vendors(folder: Path, **entries: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, library in entries.items():
        (folder / f"{name}.icd").write_text(library + "\n")
    return folder
