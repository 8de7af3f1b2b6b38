"""The caller's own queue, context or device as ``device=``: where the work is to be done, and after what.

Objects are known by the module of their type, so that no binding is imported for a name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..errors import InputError, shown
from . import cuda_devices, opencl_devices, runtimes, spirv, sycl_devices
from .info import DeviceInfo


@dataclass(frozen=True)
class Place:
    """A device, as the caller holds it.

    Attributes
    ----------
    info : DeviceInfo
    context
        The caller's context; None: one of ours.
    queue
        The caller's queue, whose work comes first; None: there is none.
    """

    info: DeviceInfo
    context: Any = None
    queue: Any = None


def is_handle(request: Any) -> bool:
    """Whether a request is an object of a binding, and no name."""
    return _root(request) in _PLACES


def places(request: Any) -> list[Place]:
    """Where the work of a handle is done; of a context with several devices, on each of them.

    Raises
    ------
    InputError
        It is no queue, context or device, or one of a device that cannot be used; with what to give instead.
    """
    return _PLACES[_root(request)](request)


def _root(request: Any) -> str:
    return type(request).__module__.partition(".")[0]


def _of_pyopencl(handle: Any) -> list[Place]:
    cl = runtimes.opencl()
    if isinstance(handle, cl.CommandQueue):
        return [Place(_opencl_info(handle.device, handle), handle.context, handle)]
    if isinstance(handle, cl.Context):
        return [Place(_opencl_info(device, handle), handle) for device in handle.devices]
    if isinstance(handle, cl.Device):
        return [Place(_opencl_info(handle, handle))]
    raise InputError(f"device={shown(handle)}: of PyOpenCL, a CommandQueue, a Context or a Device is needed")


def _opencl_info(device: Any, handle: Any) -> DeviceInfo:
    info = opencl_devices.info_of(device)
    if info is None:
        raise InputError(
            f"device={shown(handle)}: {device.name.strip()} is a part of a device (a sub-device), or was not there when"
            " pyedmcl listed devices; give a whole device, see pyedmcl devices"
        )
    return info


def _of_dpctl(handle: Any) -> list[Place]:
    dpctl = runtimes.sycl()
    if isinstance(handle, dpctl.SyclQueue):
        return [Place(_sycl_info(handle.sycl_device, handle), handle.sycl_context, handle)]
    if isinstance(handle, dpctl.SyclDevice):
        return [Place(_sycl_info(handle, handle))]
    raise InputError(f"device={shown(handle)}: of dpctl, a SyclQueue or a SyclDevice is needed")


def _sycl_info(device: Any, handle: Any) -> DeviceInfo:
    listing = sycl_devices.found()
    listed = listing.devices if spirv.missing() is not None else listing.devices + listing.spirv
    for info, known in listed:
        if known == device:
            return info
    name = f"{device.filter_string}  {device.name} ({device.driver_version})"
    why = dict(listing.left_out).get(name, "it was not there when pyedmcl listed devices, or is a part of one")
    usable = " or ".join(f"dpctl.SyclQueue({known.filter_string!r})" for _, known in listed)
    alone = f"dpctl reaches no other here, perhaps because {runtimes.LOADED_BEFORE}"
    instead = f"Make the queue with {usable}" if usable else alone
    raise InputError(
        f"device={shown(handle)}: {name} cannot be used: {why}. {instead}; or name a device of "
        "OpenCL, see pyedmcl devices"
    )


def _of_cuda(handle: Any) -> list[Place]:
    """A stream or GPU as PyTorch, CuPy and others name it, and streams by the protocol of NVIDIA's ``cuda.core``."""
    stream = stream_of(handle)
    number = stream.number if stream is not None else _gpu_of(handle)
    if number is None:
        raise InputError(f"device={shown(handle)}: of CUDA, a stream or a GPU is needed, such as torch.device('cuda')")
    info = cuda_devices.info_of(number)
    if info is None:
        raise InputError(f"device={shown(handle)}: there is no GPU {number} that NVIDIA's driver lists here")
    return [Place(info, queue=None if stream is None else stream.address)]


def stream_of(handle: Any) -> cuda_devices.CudaStream | None:
    """A stream of CUDA, whoever made it; None where it is none."""
    if isinstance(handle, cuda_devices.CudaStream):
        return handle
    for address, number in (("cuda_stream", "device_index"), ("ptr", "device_id")):  # of PyTorch, of CuPy
        if isinstance(getattr(handle, address, None), int) and isinstance(getattr(handle, number, None), int):
            return cuda_devices.CudaStream(getattr(handle, address), max(getattr(handle, number), 0))
    if callable(getattr(handle, "__cuda_stream__", None)):
        return cuda_devices.CudaStream(int(handle.__cuda_stream__()[1]), 0)
    return None


def _gpu_of(handle: Any) -> int | None:
    """The number of a GPU, as PyTorch or CuPy has it; None where it is none."""
    if getattr(handle, "type", None) == "cuda":
        return int(handle.index or 0)
    number = getattr(handle, "id", None)
    return number if isinstance(number, int) and type(handle).__name__ == "Device" else None


_PLACES: dict[str, Callable[[Any], list[Place]]] = {
    "pyopencl": _of_pyopencl, "dpctl": _of_dpctl, **dict.fromkeys(("torch", "cupy", "cuda", "pyedmcl"), _of_cuda),
}  # fmt: skip
