"""A device in plain values: its description, its stable identity, and the arguments that a kernel takes, packed as they
are declared.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..errors import LaunchError

#: Runtimes, and the place of each where devices of one kind are chosen from: the least comes first. Among processors
#: it is the measured speed. Among GPUs the vendor's own driver comes before a general one, and Intel last of the three,
#: since it is mostly the small one beside a larger card.
RUNTIMES = {
    "nvidia": 0, "amd": 0, "intel-cpu": 0, "intel-gpu": 1, "pocl": 2, "other": 3, "rusticl": 4, "oclgrind": 5,
}  # fmt: skip


@dataclass(frozen=True)
class DeviceInfo:
    """A device as discovered."""

    # ``"p:d"``, platform and device index, behind the executor's name where that is not "opencl"; stable within one
    # machine set-up.
    id: str
    # name, vendor, platform, version, driver: As the driver reports them (whitespace stripped); ``version`` is
    # CL_DEVICE_VERSION.
    name: str
    vendor: str
    platform: str
    version: str
    driver: str
    # "gpu", "accelerator", "cpu" or "simulator".
    kind: str
    # One of :data:`RUNTIMES`.
    runtime: str
    compute_units: int
    max_work_group: int
    clock_mhz: int
    # local_bytes, global_bytes, max_alloc_bytes: Memory limits as reported, in bytes.
    local_bytes: int
    global_bytes: int
    max_alloc_bytes: int
    fp64: bool
    fp16: bool
    subgroups: bool
    # CL_DEVICE_OPENCL_C_VERSION.
    opencl_c: str
    # What opens it; a name in :mod:`pyedmcl.device.executor`.
    executor: str = "opencl"

    def __hash__(self) -> int:
        # What follows from a device is looked up some thirty times in a small call.
        return hash((self.id, self.name, self.driver))

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


# A stable identity of a device: the key of tuned parameters and a line in store manifests.


@dataclass(frozen=True)
class DeviceKey:
    """What decides which parameters are fast on a device; the same on every machine with this device and driver."""

    # vendor, name, runtime, version, driver: As the driver reports them; ``version`` is CL_DEVICE_VERSION, in which
    # PoCL names its compiler target.
    vendor: str
    name: str
    runtime: str
    version: str
    driver: str
    compute_units: int
    max_work_group: int
    local_bytes: int

    def digest(self) -> str:
        """16 hexadecimal digits over all fields."""
        text = json.dumps(self.as_dict(), sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def is_called(self, words: str) -> bool:
        """Whether the device's runtime and name contain a text, in letters of either case."""
        return words.lower() in f"{self.runtime} {self.name}".lower()

    def as_dict(self) -> dict[str, str | int]:
        # A result holds one, and a call may make thousands of results: asdict() would copy each field deeply.
        return dict(vars(self))


def device_key(info: DeviceInfo) -> DeviceKey:
    """The key of a device. Its id and its memory are left out: they differ between equal devices."""
    return DeviceKey(
        vendor=info.vendor,
        name=info.name,
        runtime=info.runtime,
        version=info.version,
        driver=info.driver,
        compute_units=info.compute_units,
        max_work_group=info.max_work_group,
        local_bytes=info.local_bytes,
    )


# The arguments that a kernel takes: named slots, and values packed as they are declared.


@dataclass(frozen=True)
class Slot:
    """One argument of a kernel, as it is declared there."""

    name: str
    # Of the number, or of a buffer's elements (of a vector type: of its components).
    dtype: np.dtype[Any]
    # Whether it is a buffer in device memory; else a number that is copied.
    is_buffer: bool = False
    # Of a buffer: whether the kernel only reads it.
    is_const: bool = False

    def __str__(self) -> str:
        return f"a buffer of {self.dtype}" if self.is_buffer else f"a number of type {self.dtype}"


def packer(slot: Slot) -> Callable[[Any], bytes]:
    """What turns a number into the bytes of its slot.

    It raises ``struct.error`` for a number that does not fit and for one of another kind: an integer's slot takes no
    float.
    """
    return struct.Struct(slot.dtype.char).pack  # the letters of NumPy's types are those of struct


def is_buffer(value: Any) -> bool:
    """Whether a value is device memory, of whatever executor."""
    return hasattr(value, "release") and hasattr(value, "nbytes")


def refusal(kernel: str, slot: Slot, value: Any, why: str = "") -> LaunchError:
    """The error for a value that does not suit its slot."""
    shown = "a buffer" if is_buffer(value) else repr(value)
    return LaunchError(f"argument {slot.name!r} of kernel {kernel} is {slot}, and {shown} was given{why}")


def names_differ(kernel: str, slots: Iterable[Slot], arguments: Mapping[str, Any]) -> LaunchError:
    """The error for arguments that are not those of the kernel."""
    declared = [slot.name for slot in slots]
    missing = [name for name in declared if name not in arguments]
    unknown = [name for name in arguments if name not in declared]
    said = [f"no value was given for {', '.join(missing)}"] if missing else []
    said += [f"it has no argument {', '.join(unknown)}"] if unknown else []
    return LaunchError(f"kernel {kernel}: {' and '.join(said)}. It takes {', '.join(declared)}.")


def check(kernel: str, slots: Iterable[Slot], arguments: Mapping[str, Any]) -> None:
    """Raise LaunchError unless the arguments are those of the kernel, each of its kind, as a launch would."""
    slots = tuple(slots)
    if {slot.name for slot in slots} != set(arguments):
        raise names_differ(kernel, slots, arguments)
    for slot in slots:
        value = arguments[slot.name]
        if slot.is_buffer != is_buffer(value):
            raise refusal(kernel, slot, value)
        if not slot.is_buffer:
            try:
                packer(slot)(value)
            except (struct.error, OverflowError, TypeError) as error:
                raise refusal(kernel, slot, value, f" ({error})") from error
