"""PyRQA's choice of devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...device.info import DeviceInfo
from ...device.select import discover
from ...errors import InputError
from .exceptions import (
    DeviceFissionNotSupportedException,
    NoOpenCLPlatformDetectedException,
    OpenCLDeviceIndexOutOfBoundsException,
    OpenCLPlatformIndexOutOfBoundsException,
)


class OpenCL:
    """Devices of one platform, by number, as ``pyedmcl devices`` lists them (platform:device).

    Parameters
    ----------
    platform_id : int
    device_ids : sequence of int
        Several share the work.
    verbose, config_file_path
        Without effect.
    command_line, enable_device_fission, sub_device_properties, sub_device_ids
        Must be left out.

    Attributes
    ----------
    devices : list of DeviceInfo

    Raises
    ------
    InputError
        There is no such device; the subclass says what there is not.
    """

    def __init__(
        self, verbose: bool = False, command_line: bool = False, platform_id: int | None = 0,
        device_ids: Sequence[int] = (0,), config_file_path: Any = None, enable_device_fission: bool = False,
        sub_device_properties: Any = None, sub_device_ids: Any = None,
    ) -> None:  # fmt: skip
        if command_line:
            raise InputError(
                f"command_line={command_line!r}: nothing is asked on the command line; give platform_id and "
                "device_ids, which `pyedmcl devices` lists"
            )
        if enable_device_fission or sub_device_properties or sub_device_ids:
            raise DeviceFissionNotSupportedException(
                "enable_device_fission, sub_device_properties, sub_device_ids: devices are used as a whole; leave "
                "these out"
            )
        self.verbose = verbose
        self.platform_id = 0 if platform_id is None else platform_id
        self.device_ids = tuple(device_ids)
        self.reset()

    def reset(self) -> None:
        """Look for the devices again."""
        devices = self.get_device_ids_per_platform_id()
        if not devices:
            raise NoOpenCLPlatformDetectedException("no OpenCL platform: `pyedmcl devices --doctor` says why")
        if self.platform_id not in devices:
            raise OpenCLPlatformIndexOutOfBoundsException(
                f"platform_id={self.platform_id!r}: there are {sorted(devices)}, see `pyedmcl devices`"
            )
        for number in self.device_ids or (-1,):
            if number not in devices[self.platform_id]:
                raise OpenCLDeviceIndexOutOfBoundsException(
                    f"device_ids={self.device_ids!r}: platform {self.platform_id} has {devices[self.platform_id]}, see "
                    "`pyedmcl devices`"
                )
        info_of = {info.id: info for info in discover(executor="opencl")}
        self.devices: list[DeviceInfo] = [info_of[name] for name in self.names]

    @property
    def names(self) -> list[str]:
        """What :func:`pyedmcl.rqa` calls the devices."""
        return [f"{self.platform_id}:{number}" for number in self.device_ids]

    @staticmethod
    def get_device_ids_per_platform_id() -> dict[int, list[int]]:
        """Numbers of the devices of each platform."""
        numbers: dict[int, list[int]] = {}
        for info in discover(executor="opencl"):
            platform, number = map(int, info.id.split(":"))
            numbers.setdefault(platform, []).append(number)
        return numbers
