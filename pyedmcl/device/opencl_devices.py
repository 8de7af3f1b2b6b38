"""The OpenCL devices of this machine, as PyOpenCL lists them."""

from __future__ import annotations

import threading
from typing import Any

from ..errors import DeviceNotFoundError
from . import runtimes
from .info import DeviceInfo

_lock = threading.Lock()
_found: list[tuple[DeviceInfo, Any]] | None = None


def devices(refresh: bool = False) -> list[DeviceInfo]:
    """All OpenCL devices. A platform that fails to answer is left out and hides no other.

    Platforms are numbered in the order of their names and versions, not in the order of the loader, which changes with
    the file system; so an id like ``"1:0"`` stays the same from run to run.
    """
    return [info for info, _ in _devices(refresh)]


def handle(info: DeviceInfo) -> Any:
    """The OpenCL device object behind ``info``."""
    for known, device in _devices(False):
        if known == info:
            return device
    raise DeviceNotFoundError(f"the device {info.name!r} ({info.id}) is not on this machine")


def info_of(device: Any) -> DeviceInfo | None:
    """What is known of an OpenCL device object, whoever asked for it; None where it is not in the list."""
    return next((info for info, known in _devices(False) if known.int_ptr == device.int_ptr), None)


def _devices(refresh: bool) -> list[tuple[DeviceInfo, Any]]:
    global _found
    cl = runtimes.opencl()
    with _lock:
        if _found is None or refresh:
            _found = _ask(cl)
        return _found


def _ask(cl: Any) -> list[tuple[DeviceInfo, Any]]:
    try:
        platforms = cl.get_platforms()
    except cl.Error:
        return []
    answers: dict[int, tuple[str, str, str, Any]] = {}
    for platform in platforms:
        try:
            # One library seen through two entries is one platform: the handle is the same.
            answers[platform.int_ptr] = (
                platform.name.strip(),
                platform.version.strip(),
                platform.vendor.strip(),
                platform.get_devices(),
            )
        except cl.Error:
            continue
    handles: list[tuple[DeviceInfo, Any]] = []
    usable = [answer for answer in answers.values() if answer[3]]
    for p, (name, version, vendor, devices) in enumerate(sorted(usable, key=lambda answer: answer[:3])):
        for d, device in enumerate(devices):
            try:
                handles.append((_describe(cl, f"{p}:{d}", name, version, vendor, device), device))
            except cl.Error:
                continue
    return handles


def classify(platform: str, vendor: str, name: str, kind: str) -> tuple[str, str]:
    """``(runtime, kind)`` from the strings of a platform and a device and from the type the driver reports."""
    text = f"{platform} {vendor}".lower()
    if "oclgrind" in text or "oclgrind" in name.lower():
        return "oclgrind", "simulator"
    if "fpga emulation" in text:
        return "other", "simulator"
    if "portable computing language" in text or "pocl" in text:
        return "pocl", kind
    if "rusticl" in text:
        # llvmpipe runs on the processor, whatever type it reports.
        return "rusticl", "cpu" if "llvmpipe" in name.lower() else kind
    if "nvidia" in text:
        return "nvidia", kind
    if "advanced micro devices" in text or "amd" in text.split():
        return "amd", kind
    if "intel" in text:
        return ("intel-cpu" if kind == "cpu" else "intel-gpu"), kind
    return "other", kind


def _describe(cl: Any, id: str, platform: str, platform_version: str, vendor: str, device: Any) -> DeviceInfo:
    types = cl.device_type
    kind = "accelerator"
    for bit, label in ((types.GPU, "gpu"), (types.CPU, "cpu")):
        if device.type & bit:
            kind = label
            break
    name = device.name.strip()
    runtime, kind = classify(platform, f"{vendor} {platform_version}", name, kind)
    extensions = set(device.extensions.split())
    return DeviceInfo(
        id=id,
        name=name,
        vendor=device.vendor.strip(),
        platform=platform,
        version=device.version.strip(),
        driver=device.driver_version.strip(),
        kind=kind,
        runtime=runtime,
        compute_units=int(device.max_compute_units),
        max_work_group=int(device.max_work_group_size),
        clock_mhz=int(device.max_clock_frequency),
        local_bytes=int(device.local_mem_size),
        global_bytes=int(device.global_mem_size),
        max_alloc_bytes=int(device.max_mem_alloc_size),
        fp64="cl_khr_fp64" in extensions,
        fp16="cl_khr_fp16" in extensions,
        subgroups=bool(extensions & {"cl_khr_subgroups", "cl_intel_subgroups"}),
        opencl_c=device.opencl_c_version.strip(),
    )
