"""What is known of a device, free of any OpenCL binding."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

#: Runtimes, and the place of each where devices of one kind are chosen from: the least comes first. Among processors
#: it is the measured speed. Among GPUs the vendor's own driver comes before a general one, and Intel last of the three,
#: since it is mostly the small one beside a larger card.
RUNTIMES = {
    "nvidia": 0, "amd": 0, "intel-cpu": 0, "intel-gpu": 1, "pocl": 2, "other": 3, "rusticl": 4, "oclgrind": 5,
}  # fmt: skip


@dataclass(frozen=True)
class DeviceInfo:
    """A device as discovered.

    Attributes
    ----------
    id : str
        ``"p:d"``, platform and device index, behind the executor's name where that is not "opencl"; stable within one
        machine set-up.
    name, vendor, platform, version, driver : str
        As the driver reports them (whitespace stripped); ``version`` is CL_DEVICE_VERSION.
    kind : str
        "gpu", "accelerator", "cpu" or "simulator".
    runtime : str
        One of :data:`RUNTIMES`.
    compute_units, max_work_group, clock_mhz : int
    local_bytes, global_bytes, max_alloc_bytes : int
        Memory limits as reported, in bytes.
    fp64, fp16, subgroups : bool
    opencl_c : str
        CL_DEVICE_OPENCL_C_VERSION.
    executor : str
        What opens it; a name in :mod:`pyedmcl.device.registry`.
    """

    id: str
    name: str
    vendor: str
    platform: str
    version: str
    driver: str
    kind: str
    runtime: str
    compute_units: int
    max_work_group: int
    clock_mhz: int
    local_bytes: int
    global_bytes: int
    max_alloc_bytes: int
    fp64: bool
    fp16: bool
    subgroups: bool
    opencl_c: str
    executor: str = "opencl"

    def __hash__(self) -> int:
        # What follows from a device is looked up some thirty times in a small call.
        return hash((self.id, self.name, self.driver))

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)
