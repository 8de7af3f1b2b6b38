"""The devices of this machine that a SYCL queue reaches, as dpctl lists them.

dpctl compiles OpenCL C on its OpenCL back end only, so each device that is listed here is an OpenCL device, too: its
twin, whose description it takes but for the id. Quirks, tuned parameters and stores are therefore those of the twin.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import DeviceNotFoundError
from . import opencl_devices, runtimes, spirv
from .info import DeviceInfo

_lock = threading.Lock()
_found: Found | None = None


@dataclass(frozen=True)
class Found:
    """What dpctl lists.

    Attributes
    ----------
    devices : list of (DeviceInfo, dpctl.SyclDevice)
        Those that can be opened.
    left_out : list of (str, str)
        A line for each of the others, and why.
    spirv : list of (DeviceInfo, dpctl.SyclDevice)
        Those that can be opened with programs in SPIR-V.
    """

    devices: list[tuple[DeviceInfo, Any]]
    left_out: list[tuple[str, str]]
    spirv: list[tuple[DeviceInfo, Any]] = field(default_factory=list)


def devices(refresh: bool = False) -> list[DeviceInfo]:
    """The devices that can be opened, with the ids of their OpenCL twins behind ``sycl:``.

    Raises
    ------
    DeviceNotFoundError
        dpctl cannot be imported, or is too old.
    """
    return [info for info, _ in found(refresh).devices]


def spirv_devices(refresh: bool = False) -> list[DeviceInfo]:
    """The devices that can be opened with programs in SPIR-V, those of Level Zero before the same ones of OpenCL.

    Raises
    ------
    DeviceNotFoundError
        dpctl cannot be imported, or there is no compiler for SPIR-V.
    """
    listed = [info for info, _ in found(refresh).spirv]
    why = spirv.missing()
    if why is not None:
        raise DeviceNotFoundError(f"device='spirv': {why}")
    return listed


def handle(info: DeviceInfo) -> Any:
    """dpctl's device behind ``info``."""
    for known, device in (*found().devices, *found().spirv):
        if known == info:
            return device
    raise DeviceNotFoundError(f"the device {info.name!r} ({info.id}) is not on this machine, as far as dpctl sees")


def found(refresh: bool = False) -> Found:
    """What dpctl lists; asked once per process."""
    global _found
    dpctl = runtimes.sycl()
    twins = opencl_devices.devices(refresh)
    with _lock:
        if _found is None or refresh:
            _found = paired(dpctl.get_devices(), twins)
        return _found


def paired(listed: Sequence[Any], twins: Sequence[DeviceInfo]) -> Found:
    """Each device that dpctl lists with its twin, the n-th of equal ones with the n-th."""
    result = Found([], [])
    free = list(twins)
    for device in listed:
        twin = next((info for info in free if _is_twin(device, info)), None)
        reason = _why_not(device, twin)
        if twin is not None:
            free.remove(twin)
        if reason or twin is None:
            result.left_out.append((f"{device.filter_string}  {device.name} ({device.driver_version})", reason))
        else:
            result.devices.append((replace(twin, id=f"sycl:{twin.id}", executor="sycl"), device))
    result.spirv.extend(_with_spirv(listed, twins, result.devices))
    for devices_of in (result.devices, result.spirv):
        devices_of.sort(key=lambda entry: [int(part) for part in entry[0].id.split(":")[1:]])
    return result


def _with_spirv(
    listed: Sequence[Any], twins: Sequence[DeviceInfo], opened: Sequence[tuple[DeviceInfo, Any]]
) -> list[tuple[DeviceInfo, Any]]:
    """Devices of Level Zero with the descriptions of OpenCL devices of their names, then the others of ``opened``."""
    mine: list[tuple[DeviceInfo, Any]] = []
    free = list(twins)
    for device in listed:
        twin = next((info for info in free if device.name.strip() == info.name), None)
        if device.backend.name == "level_zero" and device.has_aspect_usm_device_allocations and twin is not None:
            free.remove(twin)
            mine.append((twin, device))
    taken = [twin.id for twin, _ in mine]
    mine += [(info, device) for info, device in opened if info.id.removeprefix("sycl:") not in taken]
    return [(replace(info, id=f"spirv:{info.id.removeprefix('sycl:')}", executor="spirv"), device)
            for info, device in mine]  # fmt: skip


def _is_twin(device: Any, info: DeviceInfo) -> bool:
    return bool(
        device.backend.name == "opencl"
        and device.sycl_platform.name.strip() == info.platform
        and device.name.strip() == info.name
        and device.driver_version.strip() == info.driver
    )


def _why_not(device: Any, twin: DeviceInfo | None) -> str:
    """Why a device cannot be opened; empty where it can."""
    if device.backend.name != "opencl":
        return (
            f"dpctl compiles OpenCL C on its OpenCL back end only, and this is its {device.backend.name} back end; "
            "the same device under OpenCL serves where its OpenCL runtime is installed"
        )
    if not device.has_aspect_usm_device_allocations:
        return "its OpenCL runtime has no unified shared memory (USM), without which dpctl can allocate nothing"
    if twin is None:
        return "PyOpenCL does not see the same device, so nothing is known of it"
    return ""
