"""NVIDIA's driver without OpenCL: libcuda by ctypes, and the GPUs that it lists.

They are described as NVIDIA's OpenCL driver describes the same ones, so that quirks, tuned parameters and stores are
those of their OpenCL twins.
"""

from __future__ import annotations

import contextlib
import ctypes
import re
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import DeviceNotFoundError
from . import nvrtc, runtimes
from .info import DeviceInfo

LIBRARY = "libcuda.so.1"
# Of a device: attributes by their numbers in cuda.h.
_WORK_GROUP, _LOCAL, _CLOCK, _UNITS, _MAJOR, _MINOR = 1, 8, 13, 16, 75, 76
POOLS = 115
# Of an address.
_POINTER_CONTEXT, _POINTER_DEVICE = 1, 9
_NAME_BYTES = 256

_P, _U, _I, _Z = ctypes.c_void_p, ctypes.c_uint, ctypes.c_int, ctypes.c_size_t
# The functions that are called, and what they take: numbers that are addresses must not be taken for C's int.
_FUNCTIONS: dict[str, Sequence[Any]] = {
    "cuInit": (_U,), "cuDriverGetVersion": (_P,), "cuDeviceGetCount": (_P,), "cuDeviceGetName": (_P, _I, _I),
    "cuDeviceGetAttribute": (_P, _I, _I), "cuDeviceTotalMem_v2": (_P, _I),
    "cuDevicePrimaryCtxRetain": (_P, _I), "cuDevicePrimaryCtxRelease_v2": (_I,), "cuCtxPushCurrent_v2": (_P,),
    "cuCtxPopCurrent_v2": (_P,), "cuModuleLoadDataEx": (_P, _P, _U, _P, _P), "cuModuleUnload": (_P,),
    "cuModuleGetFunction": (_P, _P, _P), "cuFuncSetAttribute": (_P, _I, _I),
    "cuLaunchKernel": (_P, _U, _U, _U, _U, _U, _U, _U, _P, _P, _P), "cuMemAlloc_v2": (_P, _Z), "cuMemFree_v2": (_P,),
    "cuMemPoolCreate": (_P, _P), "cuMemPoolDestroy": (_P,), "cuMemPoolSetAttribute": (_P, _I, _P),
    "cuMemAllocFromPoolAsync": (_P, _Z, _P, _P), "cuMemFreeAsync": (_P, _P), "cuMemAllocHost_v2": (_P, _Z),
    "cuMemFreeHost": (_P,), "cuPointerGetAttribute": (_P, _I, _P), "cuMemcpyHtoDAsync_v2": (_P, _P, _Z, _P),
    "cuMemcpyDtoHAsync_v2": (_P, _P, _Z, _P), "cuStreamCreate": (_P, _U),
    "cuStreamDestroy_v2": (_P,), "cuStreamWaitEvent": (_P, _P, _U), "cuEventCreate": (_P, _U),
    "cuEventRecord": (_P, _P), "cuEventSynchronize": (_P,), "cuEventElapsedTime": (_P, _P, _P),
    "cuEventDestroy_v2": (_P,), "cuGetErrorName": (_I, _P), "cuGetErrorString": (_I, _P),
}  # fmt: skip


class CudaError(Exception):
    """A function of libcuda that failed.

    Attributes
    ----------
    code : int
        The driver's number.
    """

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class Driver:
    """libcuda: ``driver.cuMemFree_v2(...)`` raises CudaError; ``driver.raw.cuMemFree_v2(...)`` returns a number.

    Raises
    ------
    OSError, AttributeError
        There is no driver here, or one older than CUDA 11.2.
    CudaError
        It finds no GPU, say.
    """

    def __init__(self) -> None:
        self.raw: Any = ctypes.CDLL(LIBRARY)
        for name, takes in _FUNCTIONS.items():
            function = getattr(self.raw, name)
            function.restype, function.argtypes = ctypes.c_int, list(takes)
            setattr(self, name, self._checked(function, name))
        version = ctypes.c_int()
        self.cuInit(0)
        self.cuDriverGetVersion(ctypes.byref(version))
        self.version = version.value // 1000, version.value % 1000 // 10

    def __getattr__(self, name: str) -> Any:  # for type checkers: all of _FUNCTIONS are set above
        raise AttributeError(name)

    def _checked(self, function: Any, name: str) -> Any:
        def checked(*arguments: Any) -> None:
            code = function(*arguments)
            if code:
                raise self.error(code, name)

        return checked

    def error(self, code: int, name: str) -> CudaError:
        """The error for what a function returned."""
        said = [ctypes.c_char_p(), ctypes.c_char_p()]
        self.raw.cuGetErrorName(code, ctypes.byref(said[0]))
        self.raw.cuGetErrorString(code, ctypes.byref(said[1]))
        word, text = ((each.value or b"").decode(errors="replace") for each in said)
        return CudaError(code, f"{name}: {word or code} ({text})")

    def attribute(self, device: int, which: int) -> int:
        """An attribute of a device by its number in cuda.h."""
        value = ctypes.c_int()
        self.cuDeviceGetAttribute(ctypes.byref(value), which, device)
        return value.value

    def capability(self, device: int) -> int:
        """Its compute capability: 90 for 9.0."""
        return 10 * self.attribute(device, _MAJOR) + self.attribute(device, _MINOR)


_lock = threading.Lock()
_driver: Driver | None = None
_found: list[DeviceInfo] | None = None


def driver() -> Driver:
    """NVIDIA's driver, loaded once per process.

    Raises
    ------
    DeviceNotFoundError
        There is none, or it finds no GPU.
    LaunchError
        This process was forked from one that had already used a driver.
    """
    global _driver
    runtimes.check_fork()
    if _driver is None:
        with _lock:
            if _driver is None:
                try:
                    _driver = Driver()
                except (OSError, AttributeError, CudaError) as error:
                    raise DeviceNotFoundError(f"device='cuda': NVIDIA's driver cannot be used ({error})") from error
                runtimes.in_use()
    return _driver


def devices(refresh: bool = False) -> list[DeviceInfo]:
    """The GPUs that NVIDIA's driver lists, where kernels can be compiled for them.

    Raises
    ------
    DeviceNotFoundError
        There is no driver, no GPU or no compiler; the message says what to do.
    """
    global _found
    if not sys.platform.startswith("linux"):
        raise DeviceNotFoundError("device='cuda' is for Linux; elsewhere NVIDIA's driver brings OpenCL with it")
    known = driver()
    compiler = nvrtc.nvrtc(known.version)
    with _lock:
        if _found is None or refresh:
            try:
                _found = _asked(known, compiler)
            except CudaError as error:
                raise DeviceNotFoundError(f"device='cuda': NVIDIA's driver cannot be used ({error})") from error
        return _found


def _asked(known: Driver, compiler: nvrtc.Nvrtc) -> list[DeviceInfo]:
    """The GPUs that the compiler knows, too. Raises DeviceNotFoundError where it knows none of them."""
    count, found, too_old = ctypes.c_int(), list[DeviceInfo](), None
    known.cuDeviceGetCount(ctypes.byref(count))
    for number in range(count.value):
        try:
            compiler.target(known.capability(number))
        except DeviceNotFoundError as error:
            too_old = error
        else:
            found.append(_describe(known, number))
    if too_old is not None and not found:
        raise too_old
    return found


def number_of(info: DeviceInfo) -> int:
    """The driver's number of a device."""
    return int(info.id.rpartition(":")[2])


@dataclass(frozen=True)
class CudaStream:
    """A stream of the caller, by its address, and the driver's number of its GPU; usable as ``device=``."""

    address: int
    number: int


def info_of(number: int) -> DeviceInfo | None:
    """What is known of the GPU that CUDA programs call by a number; None where there is none."""
    return next((info for info in devices() if number_of(info) == number), None)


def place_of(address: int) -> tuple[int, int]:
    """The context that memory of a GPU belongs to, and the GPU's number. Raises CudaError for other memory.

    The context is 0 for memory of a pool or of PyTorch's expandable segments, which belongs to none.
    """
    context, number = ctypes.c_void_p(), ctypes.c_int()
    driver().cuPointerGetAttribute(ctypes.byref(context), _POINTER_CONTEXT, address)
    driver().cuPointerGetAttribute(ctypes.byref(number), _POINTER_DEVICE, address)
    return context.value or 0, number.value


def _describe(known: Driver, number: int) -> DeviceInfo:
    name, total = ctypes.create_string_buffer(_NAME_BYTES), ctypes.c_size_t()
    known.cuDeviceGetName(name, _NAME_BYTES, number)
    known.cuDeviceTotalMem_v2(ctypes.byref(total), number)
    return DeviceInfo(
        id=f"cuda:0:{number}", name=name.value.decode(errors="replace").strip(), vendor="NVIDIA Corporation",
        platform="NVIDIA CUDA", version="OpenCL 3.0 CUDA", driver=version_of_module() or "unknown", kind="gpu",
        runtime="nvidia", compute_units=known.attribute(number, _UNITS),
        max_work_group=known.attribute(number, _WORK_GROUP), clock_mhz=known.attribute(number, _CLOCK) // 1000,
        local_bytes=known.attribute(number, _LOCAL), global_bytes=total.value, max_alloc_bytes=total.value // 4,
        fp64=True, fp16=False, subgroups=False, opencl_c="OpenCL C 1.2", executor="cuda",
    )  # fmt: skip


def version_of_module(root: Path = Path("/")) -> str:
    """The driver's version, such as "580.159.04", as the kernel's module says it, or NVML; empty where neither does."""
    with contextlib.suppress(OSError):
        said = re.search(r"\b\d+\.\d+(?:\.\d+)?\b", (root / "proc/driver/nvidia/version").read_text())
        if said:
            return said[0]
    if root != Path("/"):
        return ""
    with contextlib.suppress(OSError, AttributeError):
        management = ctypes.CDLL("libnvidia-ml.so.1")
        text = ctypes.create_string_buffer(_NAME_BYTES)
        if management.nvmlInit_v2() == 0 and management.nvmlSystemGetDriverVersion(text, _NAME_BYTES) == 0:
            return text.value.decode(errors="replace")
    return ""
