"""Find, choose and open devices; queues and arrays of the caller as places of work and of results."""

from __future__ import annotations

import contextlib
import fnmatch
import math
import operator
import os
import re
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast

import numpy as np

from .. import config
from ..errors import DeviceNotFoundError, InputError, shown, warn
from . import cuda, opencl, runtimes, sycl
from . import executor as registry
from . import quirks as probe
from .cuda import CudaError, CudaStream
from .executor import Buffer, Executor
from .info import RUNTIMES, DeviceInfo
from .quirks import POCL_FROM, quirks_for
from .runtimes import LOADED_BEFORE, intel_library

# List the devices of this machine.


def discover(*, executor: str | None = None, refresh: bool = False) -> list[DeviceInfo]:
    """All OpenCL devices, simulators included and marked as such; or those of the executor that is named.

    GPUs of NVIDIA whose OpenCL is not there are listed through CUDA. The list is made once per process.

    Parameters
    ----------
    executor : str, optional
        A name in :data:`pyedmcl.device.executor.EXECUTORS`.
    refresh : bool
        Ask the drivers again.

    Returns
    -------
    list of DeviceInfo
    """
    return registry.devices(executor, refresh=refresh)


def discover_every() -> list[DeviceInfo]:
    """The devices of all executors, without those of bindings that are not there."""
    infos = discover()
    for name in registry.EXECUTORS:
        with contextlib.suppress(DeviceNotFoundError):
            infos += [info for info in discover(executor=name) if info not in infos]
    return infos


_KINDS = {"gpu": 0, "accelerator": 1, "cpu": 2, "simulator": 3}

HOW_TO_GET_ONE = (
    f"Install a runtime for the processor with: pip install 'pyedmcl[cpu]' (x86-64), or PoCL: {POCL_FROM}. "
    "If this machine has a GPU, 'pyedmcl devices --doctor' says why it is not seen."
)


def _how_to_get_one() -> str:
    """What to do where nothing was found, which differs where pip has installed a runtime that was not seen."""
    if intel_library() is None:
        return HOW_TO_GET_ONE
    return f"{HOW_TO_GET_ONE} One of pip is here: if this program used PyOpenCL before pyedmcl, import pyedmcl first."


@dataclass(frozen=True)
class DeviceChoice:
    """A device and, for the user, why it was taken."""

    device: DeviceInfo
    reason: str


# Who asked and what for -> the devices that there were, and the choice: each small call asks the same.
_chosen: dict[tuple[str, str | None], tuple[tuple[DeviceInfo, ...], DeviceChoice]] = {}
_KEPT_MOST = 64


def select(request: str | None = None, *, devices: Sequence[DeviceInfo] | None = None) -> DeviceChoice:
    """Choose a device.

    Parameters
    ----------
    request : str, optional
        "gpu", "cpu", "accelerator", "simulator", "nvidia", "amd", "intel", "pocl" or another runtime, an id
        ``"p:d"``, or a part or glob pattern of a name, platform or vendor in any case; "sycl", alone or before any of
        these ("sycl:gpu"), for the devices that dpctl reaches; "spirv" likewise, with programs in SPIR-V; "cuda" for
        GPUs through NVIDIA's driver alone, which count unnamed, too, where its OpenCL is not there. Without one,
        ``PYEDMCL_DEVICE`` counts; without that, a GPU comes before an accelerator before a processor. Of what names
        several, see :func:`select_several`, the first.
    devices : sequence of DeviceInfo, optional
        What to choose from; else what :func:`pyedmcl.device.select.discover` finds.
    """
    source = "asked for"
    if request is not None and not isinstance(request, str):
        raise InputError(
            f"device={shown(request)}: text is needed, such as 'gpu', a part of a name, or an id such as '0:0'"
        )
    if request is None or not request.strip():
        request = config.current().device
        source = "PYEDMCL_DEVICE is"
    if request is not None and _is_several(request.strip()):
        return select_several(request, devices=devices)[0]
    devices = _of_executor(registry.named_in(request or "")[0], devices)
    kept = _chosen.get((source, request))
    if kept is not None and len(kept[0]) == len(devices) and all(map(operator.is_, kept[0], devices)):
        return kept[1]
    choice = _choose(request, source, devices)
    if len(_chosen) > _KEPT_MOST:
        _chosen.clear()
    _chosen[source, request] = tuple(devices), choice
    return choice


def _choose(request: str | None, source: str, devices: Sequence[DeviceInfo]) -> DeviceChoice:
    """What :func:`select` chooses of some devices; ``source`` says who asked."""
    executor, named = registry.named_in(request or "")
    if not devices:
        raise DeviceNotFoundError(
            f"there is no OpenCL device on this machine. {_how_to_get_one()}" if executor is None else
            f"device={shown(request)}: there is no device that {executor} reaches; 'pyedmcl devices --doctor' says why."
            f" If that lists one, {LOADED_BEFORE}"
        )  # fmt: skip
    if not named:
        choice = _automatic(devices)
        return choice if executor is None else replace(choice, reason=f"{source} {request!r}: {choice.reason}")
    matches = sorted(filter(_matcher(named), devices), key=rank)
    if not matches:
        raise DeviceNotFoundError(
            f"no device matches {shown(request)}. There are:\n{table(devices)}\n"
            "Name one by its id or a part of its name."
        )
    others = "" if len(matches) == 1 else f", the first of {len(matches)} that match"
    return DeviceChoice(matches[0], f"{source} {request!r}{others}")



class OpenCLHandle(Protocol):
    """A queue, context or device of PyOpenCL; see :mod:`pyedmcl.device.select`."""

    @property
    def int_ptr(self) -> int: ...


class SyclHandle(Protocol):
    """A queue or device of dpctl; see :mod:`pyedmcl.device.select`."""

    def addressof_ref(self) -> int: ...


class CudaHandle(Protocol):
    """A stream of PyTorch, or another stream or GPU of CUDA; see :mod:`pyedmcl.device.select`."""

    @property
    def cuda_stream(self) -> int: ...


Handle = OpenCLHandle | SyclHandle | CudaHandle
#: What a function's ``device`` may be: a name, the caller's own queue, context or device, or several of these.
DeviceNames = str | Sequence[str | Handle | None] | Handle | None


def _of_executor(executor: str | None, devices: Sequence[DeviceInfo] | None) -> Sequence[DeviceInfo]:
    """The devices of an executor, or of all that count unless they are named; of a list, or of those there are."""
    if devices is None:
        return discover(executor=executor)
    return registry.unnamed(devices) if executor is None else [info for info in devices if info.executor == executor]


_IDS = re.compile(r"\s*(\w+:)?\d+:\d+\s*(,\s*(\w+:)?\d+:\d+\s*)+")


def select_several(request: DeviceNames = None, *, devices: Sequence[DeviceInfo] | None = None) -> list[DeviceChoice]:
    """Choose one or more devices.

    Parameters
    ----------
    request : str or sequence of str, optional
        As for :func:`select`, or "gpus" for all GPUs, "all" for all GPUs, accelerators and one runtime of the
        processor, "gpu:local" for the GPU that belongs to this process of a cluster's node (by its local rank), several
        ids with commas between them, or a sequence of any of these. A device that is named twice is taken once.
    devices : sequence of DeviceInfo, optional
        What to choose from; else what :func:`pyedmcl.device.select.discover` finds.
    """
    if request is None:
        request = config.current().device
    if isinstance(request, (list, tuple)):
        if not request:
            raise InputError(f"device={shown(request)}: at least one device is needed, or None for the default one")
        chosen = [choice for name in request for choice in select_several(name, devices=devices)]
    elif request is not None and not isinstance(request, str):
        raise InputError(f"device={shown(request)}: the name of a device, or a list of names; see pyedmcl devices")
    else:
        chosen = _named(request, devices)
    return list({choice.device.id: choice for choice in chosen}.values())


def _is_several(name: str) -> bool:
    return registry.named_in(name)[1].lower() in ("gpus", "all", "gpu:local") or _IDS.fullmatch(name) is not None


def _named(request: str | None, devices: Sequence[DeviceInfo] | None) -> list[DeviceChoice]:
    name = (request or "").strip().lower()
    if not _is_several(name):
        return [select(request, devices=devices)]
    if _IDS.fullmatch(name):
        return [select(each, devices=devices) for each in name.split(",")]
    executor, name = registry.named_in(name)
    devices = _of_executor(executor, devices)
    return [_local(devices)] if name == "gpu:local" else _all(name, devices)


def _usable(devices: Sequence[DeviceInfo]) -> list[DeviceInfo]:
    """Those that may be chosen unasked, the best ones first."""
    usable = (info for info in devices if info.kind != "simulator" and quirks_for(info).unusable is None)
    return sorted(usable, key=rank)


def _all(name: str, devices: Sequence[DeviceInfo]) -> list[DeviceChoice]:
    usable = _usable(devices)
    chosen = [info for info in usable if info.kind == "gpu"]
    if name == "all":
        # Runtimes of the processor share its cores: one of them is all of it.
        chosen += [info for info in usable if info.kind not in ("gpu", "cpu")]
        chosen += [info for info in usable if info.kind == "cpu"][:1]
    if not chosen:
        lacking = "GPU" if name == "gpus" else "usable device"
        raise DeviceNotFoundError(
            f"device={name!r}: there is no {lacking}. There are:\n{table(devices)}\n{HOW_TO_GET_ONE}"
        )
    return [DeviceChoice(info, f"one of {len(chosen)} that {name!r} names") for info in chosen]


def _local(devices: Sequence[DeviceInfo]) -> DeviceChoice:
    """The GPU of this process of a node; processes take turns where there are more of them than GPUs."""
    gpus = [choice.device for choice in _all("gpus", devices)]
    rank_here = config.local_rank()
    if rank_here is None:
        raise DeviceNotFoundError(
            "device='gpu:local': no variable tells this process's place on its node "
            f"({', '.join(config.LOCAL_RANKS)}); start it with srun or mpiexec, or name a device"
        )
    name, number = rank_here
    return DeviceChoice(gpus[number % len(gpus)], f"{name}={number}, of {len(gpus)} GPUs")


def _automatic(devices: Sequence[DeviceInfo]) -> DeviceChoice:
    ordered = _usable(devices)
    if not ordered:
        reasons = "\n".join(f"  {info.id}  {quirks_for(info).unusable or 'a simulator'}" for info in devices)
        raise DeviceNotFoundError(
            f"none of the OpenCL devices can be used unasked:\n{table(devices)}\n{reasons}\n{HOW_TO_GET_ONE}"
        )
    best = ordered[0]
    same = [info for info in ordered if info.kind == best.kind]
    if len(ordered) == 1:
        reason = "the only usable device"
    elif len(same) == 1:
        reason = f"the only {_label(best.kind)}"
    elif best.kind == "cpu":
        reason = f"no GPU; the fastest of {len(same)} processor runtimes"
    else:
        reason = f"the first of {len(same)} {_label(best.kind)}s"
    return DeviceChoice(best, reason)


def _label(kind: str) -> str:
    return {"gpu": "GPU", "cpu": "processor"}.get(kind, kind)


def rank(info: DeviceInfo) -> tuple[object, ...]:
    """Sort key: the device to prefer comes first."""
    version = tuple(-int(part) for part in re.findall(r"\d+", info.driver)[:2]) if info.runtime == "pocl" else ()
    # "cpu" and the like name a class, in which a broken runtime must not come before one that works.
    broken = quirks_for(info).unusable is not None
    place = tuple(int(part) for part in re.findall(r"\d+", info.id))
    memory = -info.global_bytes if info.kind == "gpu" else 0
    return (broken, _KINDS.get(info.kind, 9), RUNTIMES[info.runtime], version, memory, place)


def _matcher(request: str) -> Callable[[DeviceInfo], bool]:
    name = request.lower()
    if re.fullmatch(r"\d+:\d+", name):
        return lambda info: info.id in (name, f"{info.executor}:{name}")
    if name in _KINDS:
        return lambda info: info.kind == name
    if name == "nvidia":
        return lambda info: info.runtime == name or _vendor(info, "nvidia")
    if name == "amd":
        # Processor runtimes report the maker of the processor; who asks for AMD means a GPU.
        return lambda info: info.runtime == "amd" or (info.kind == "gpu" and _vendor(info, "amd", "advanced micro"))
    if name == "intel":
        return lambda info: info.runtime.startswith("intel-") or (info.kind == "gpu" and _vendor(info, "intel"))
    if name in RUNTIMES and name != "other":
        return lambda info: info.runtime == name
    pattern = name if any(sign in name for sign in "*?[") else f"*{name}*"

    def by_text(info: DeviceInfo) -> bool:
        return any(fnmatch.fnmatchcase(text.lower(), pattern) for text in (info.name, info.platform, info.vendor))

    return by_text


def _vendor(info: DeviceInfo, *parts: str) -> bool:
    return any(part in info.vendor.lower() for part in parts)


def table(devices: Sequence[DeviceInfo]) -> str:
    """One line per device: id, kind, name, platform."""
    return "\n".join(f"  {info.id}  {info.kind:<11}  {info.name} ({info.platform} {info.driver})" for info in devices)


# The caller's own queue, context or device as ``device=``: where the work is to be done, and after what.
#
# Objects are known by the module of their type, so that no binding is imported for a name.


@dataclass(frozen=True)
class Place:
    """A device, as the caller holds it."""

    info: DeviceInfo
    # The caller's context; None: one of ours.
    context: Any = None
    # The caller's queue, whose work comes first; None: there is none.
    queue: Any = None


def is_handle(request: Any) -> bool:
    """Whether a request is an object of a binding, and no name."""
    return _root(request) in _PLACES


def places(request: Any) -> list[Place]:
    """Where the work of a handle is done; of a context with several devices, on each of them."""
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
    info = opencl.info_of(device)
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
    listing = sycl.found()
    listed = listing.devices if sycl.missing() is not None else listing.devices + listing.spirv
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
    info = cuda.info_of(number)
    if info is None:
        raise InputError(f"device={shown(handle)}: there is no GPU {number} that NVIDIA's driver lists here")
    return [Place(info, queue=None if stream is None else stream.address)]


def stream_of(handle: Any) -> cuda.CudaStream | None:
    """A stream of CUDA, whoever made it; None where it is none."""
    if isinstance(handle, cuda.CudaStream):
        return handle
    for address, number in (("cuda_stream", "device_index"), ("ptr", "device_id")):  # of PyTorch, of CuPy
        if isinstance(getattr(handle, address, None), int) and isinstance(getattr(handle, number, None), int):
            return cuda.CudaStream(getattr(handle, address), max(getattr(handle, number), 0))
    if callable(getattr(handle, "__cuda_stream__", None)):
        return cuda.CudaStream(int(handle.__cuda_stream__()[1]), 0)
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


# Arrays of the caller in device memory, as places for results: which there are, and what must hold for them.
#
# As in :mod:`pyedmcl.device.select`, objects are known by what they are made of, and no binding is imported for others.


# CU_STREAM_LEGACY, for which all other streams wait but those that say not to.
_DEFAULT_STREAM = 1
#: What results can be put into.
KINDS = "a pyopencl.array.Array, an array of CUDA (PyTorch, CuPy, numba), or one in memory of SYCL (USM), is needed"


@dataclass(frozen=True)
class ForeignArray:
    """A contiguous array in device memory that may be written."""

    # The caller's object.
    array: Any
    # How messages call it.
    what: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    # The binding's object.
    memory: Any
    # Number of the element of the memory that the array begins with.
    first: int
    # A queue of the memory's context, which may be given as ``device=``.
    queue: Any
    # The binding's context of the memory.
    context: Any

    def require(self, shape: tuple[int, ...], dtype: Any) -> None:
        """Raise InputError unless the array has room for a result of this shape and type, and no more."""
        if self.shape != shape or self.dtype != np.dtype(dtype):
            raise InputError(
                f"{self.what}: it has the shape {self.shape} and {self.dtype} numbers, the result has {shape} and "
                f"{np.dtype(dtype)}; make the array with these"
            )

    def on(self, executor: Executor) -> Buffer:
        """The array's memory as a buffer of an executor, which must be of the same context. Raises InputError."""
        if not executor.reaches(self.context):
            raise InputError(
                f"{self.what}: the array does not lie in the context of {executor.info.id} {executor.info.name}, on "
                f"which the work is done; leave device= out, or give a queue of the array's own context"
            )
        return executor.borrow(self.memory, (self.first + math.prod(self.shape)) * self.dtype.itemsize)


def is_array(value: Any) -> bool:
    """Whether a value is an array in device memory, of whatever library."""
    return _reader(value) is not None


def described(value: Any, what: str) -> ForeignArray:
    """What there is to know of an array of the caller."""
    reader = _reader(value)
    if reader is None:
        raise InputError(f"{what}: {KINDS}, not a {type(value).__name__}")
    return reader(value, what)


def _reader(value: Any) -> Callable[[Any, str], ForeignArray] | None:
    if type(value).__module__.partition(".")[0] == "pyopencl" and hasattr(value, "base_data"):
        return _foreign_arrays_of_pyopencl
    if isinstance(getattr(value, "__sycl_usm_array_interface__", None), dict):
        return _of_usm
    if isinstance(getattr(value, "__cuda_array_interface__", None), dict):
        return _foreign_arrays_of_cuda
    return None


def _foreign_arrays_of_pyopencl(array: Any, what: str) -> ForeignArray:
    cl = runtimes.opencl()
    if not isinstance(array.base_data, cl.MemoryObject):
        raise InputError(f"{what}: the array lies in shared virtual memory; make it with pyopencl.array.empty(queue, "
                         "...)")  # fmt: skip
    if array.queue is None:
        raise InputError(f"{what}: the array has no queue; give it one with .with_queue(queue)")
    _require_plain(array.flags.c_contiguous, not array.base_data.flags & cl.mem_flags.READ_ONLY, what)
    dtype = np.dtype(array.dtype)
    first, rest = divmod(array.offset, dtype.itemsize)
    if rest:
        raise InputError(f"{what}: the array begins between two elements of its memory; make a new one")
    return ForeignArray(array, what, tuple(array.shape), dtype, array.base_data, first, array.queue, array.context)


def _of_usm(array: Any, what: str) -> ForeignArray:
    dpctl = runtimes.sycl()
    held = array.__sycl_usm_array_interface__
    dtype, shape = np.dtype(held["typestr"]), tuple(held["shape"])
    address, read_only = held["data"]
    strides = held.get("strides")
    _require_plain(strides is None or _steps(shape) == tuple(strides), not read_only, what)
    memory = dpctl.memory.as_usm_memory(array)
    # The memory may begin with the allocation, and the array behind that.
    start = address + held.get("offset", 0) * dtype.itemsize - memory.__sycl_usm_array_interface__["data"][0]
    first, rest = divmod(start, dtype.itemsize)
    if rest or first < 0:
        raise InputError(f"{what}: the array begins between two elements of its memory; make a new one")
    queue = memory.sycl_queue
    return ForeignArray(array, what, shape, dtype, memory, first, queue, queue.sycl_context)


def _foreign_arrays_of_cuda(array: Any, what: str) -> ForeignArray:
    held = array.__cuda_array_interface__
    dtype, shape = np.dtype(held["typestr"]), tuple(held["shape"])
    address, read_only = held["data"]
    strides = held.get("strides")
    in_bytes = tuple(step * dtype.itemsize for step in _steps(shape))
    _require_plain(strides is None or in_bytes == tuple(strides), not read_only, what)
    try:
        place = cuda.place_of(address)
    except CudaError as error:
        raise InputError(f"{what}: NVIDIA's driver does not know the array's memory ({error})") from error
    stream = CudaStream(_stream_of(array, held, place[1]), place[1])
    return ForeignArray(array, what, shape, dtype, address, 0, stream, place)


def _stream_of(array: Any, held: dict[str, Any], number: int) -> int:
    """The stream on which an array's values are made: what its interface says, else its library's at the moment."""
    if held.get("stream") is not None:
        return int(held["stream"])
    if type(array).__module__.partition(".")[0] == "torch":
        return int(sys.modules["torch"].cuda.current_stream(number).cuda_stream)
    return _DEFAULT_STREAM


def _steps(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Elements from one entry to the next along each axis of a contiguous array."""
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def _require_plain(contiguous: bool, writable: bool, what: str) -> None:
    if not contiguous:
        raise InputError(
            f"{what}: the array has gaps between its elements, or another order than C's; give a contiguous one"
        )
    if not writable:
        raise InputError(f"{what}: the array's memory is read-only; give memory that kernels may write")


# Open devices: one executor per process and device, made at first use.


_lock = threading.Lock()
# By process, device, and the caller's context where there is one.
_open: dict[tuple[int, DeviceInfo, Any], Executor] = {}
# Executors in contexts of the caller: each keeps its context alive.
_FOREIGN_KEPT = 8


def open_device(request: DeviceNames = None) -> Executor:
    """The executor of the device that ``request`` names or is; see :func:`pyedmcl.device.select.select`."""
    if is_handle(request) or isinstance(request, (list, tuple)):
        return open_devices(request)[0]
    return executor_for(select(cast("str | None", request)).device)


def open_devices(request: DeviceNames = None) -> list[Executor]:
    """The executors of the devices that ``request`` names or is; see :func:`pyedmcl.device.select.select_several`.

    Where it is a queue of the caller, what is done next waits for what is on that queue.
    """
    if is_handle(request):
        return [_executor_at(place) for place in places(request)]
    if isinstance(request, (list, tuple)) and any(map(is_handle, request)):
        opened = [executor for each in request for executor in open_devices(each)]
        return list(dict.fromkeys(opened))
    return [executor_for(choice.device) for choice in select_several(request)]


def _executor_at(place: Place) -> Executor:
    executor = executor_for(place.info, place.context)
    if place.queue is not None:
        executor.follow(place.queue)
    return executor


def executor_for(info: DeviceInfo, context: Any = None) -> Executor:
    """The executor of a discovered device, or in a context of the caller: the same one for all in this process."""
    key = (os.getpid(), info, context)
    executor = _open.get(key)
    if executor is not None:
        return executor
    discover(executor=info.executor)  # before the lock: in a forked child this says why no device can be used
    with _lock:
        if key not in _open:
            _warn_of(info)
            opened = registry.open_executor(info, context)
            if probe.ask(opened):
                quirks_for.cache_clear()
            _open[key] = opened
            for old in [key for key in _open if key[2] is not None][:-_FOREIGN_KEPT]:
                del _open[old]  # who still uses it holds it
        return _open[key]


def _warn_of(info: DeviceInfo) -> None:
    """Say what is wrong with an unusable device, which is opened only where somebody named it."""
    quirks = quirks_for(info)
    if quirks.unusable is not None:
        warn(f"{info.id} {info.name} is used since it was named, but {quirks.unusable}. Instead: {quirks.instead}")


def settle() -> None:
    """Wait until all that the executors of this process left to the background is compiled."""
    for executor in [executor for key, executor in list(_open.items()) if key[0] == os.getpid()]:
        executor.settle()


def close_all() -> None:
    """Close every executor of this process."""
    with _lock:
        mine = [key for key in _open if key[0] == os.getpid()]
        executors = [_open.pop(key) for key in mine]
    for executor in executors:
        executor.close()


def _after_fork() -> None:
    # Another thread may have held the lock at the fork; in the child nobody would ever give it back.
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
