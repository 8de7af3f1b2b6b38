"""Devices that need not be at hand: descriptions that are enough for default parameters and quirks."""

from __future__ import annotations

from dataclasses import replace

from ..device import select
from ..device.info import DeviceInfo
from ..errors import DeviceNotFoundError, InputError, shown

_GIB = 1 << 30
_GPU = DeviceInfo(
    id="0:0", name="offline", vendor="", platform="", version="", driver="", kind="gpu", runtime="other",
    compute_units=64, max_work_group=1024, clock_mhz=1000, local_bytes=64 << 10, global_bytes=16 * _GIB,
    max_alloc_bytes=4 * _GIB, fp64=True, fp16=False, subgroups=False, opencl_c="OpenCL C 1.2",
)  # fmt: skip
_AMD = replace(_GPU, runtime="amd")
_INTEL = replace(_GPU, runtime="intel-gpu", name="")

#: Target to what is known of it. AMD's are named as its compiler names them, Intel's by their architecture.
TARGETS: dict[str, DeviceInfo] = {
    "gfx90a": _AMD, "gfx942": _AMD, "gfx1100": _AMD, "gfx1201": _AMD,
    "Gen9": _INTEL, "Xe-LP": replace(_INTEL, fp64=False), "Xe-HPG": replace(_INTEL, fp64=False),
    "Xe-HPC": replace(_INTEL, name="Intel(R) Data Center GPU Max 1550"),
    "nvidia": replace(_GPU, runtime="nvidia", local_bytes=48 << 10, name="an NVIDIA GPU"),
    "amd": replace(_AMD, name="an AMD GPU"), "intel-gpu": replace(_INTEL, name="an Intel GPU"),
    "cpu": replace(_GPU, kind="cpu", runtime="intel-cpu", name="a processor", max_work_group=8192, compute_units=8),
}  # fmt: skip


def info_of(device: str | None, target: str | None = None) -> DeviceInfo:
    """What is known of a target, or of the device that a request names.

    A request for a device that is not there stands for the target of the same name, if there is one.

    Raises
    ------
    InputError
        There is no such target.
    DeviceNotFoundError
        There is neither such a device nor a target.
    """
    targets = {name.lower(): info for name, info in TARGETS.items()}
    if target is not None:
        if not isinstance(target, str) or target.lower() not in targets:
            raise InputError(f"target={shown(target)}: one of {', '.join(TARGETS)} is needed")
        return targets[target.lower()]
    try:
        return select.select(device).device
    except DeviceNotFoundError:
        if device is None or device.strip().lower() not in targets:
            raise
        return targets[device.strip().lower()]
