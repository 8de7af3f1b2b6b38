"""A stable identity of a device: the key of tuned parameters and a line in store manifests."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from .info import DeviceInfo


@dataclass(frozen=True)
class DeviceKey:
    """What decides which parameters are fast on a device; the same on every machine with this device and driver.

    Attributes
    ----------
    vendor, name, runtime, version, driver : str
        As the driver reports them; ``version`` is CL_DEVICE_VERSION, in which PoCL names its compiler target.
    compute_units, max_work_group, local_bytes : int
    """

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
