"""List the devices of this machine."""

from __future__ import annotations

import contextlib

from ..errors import DeviceNotFoundError
from . import registry
from .info import DeviceInfo


def discover(*, executor: str | None = None, refresh: bool = False) -> list[DeviceInfo]:
    """All OpenCL devices, simulators included and marked as such; or those of the executor that is named.

    GPUs of NVIDIA whose OpenCL is not there are listed through CUDA. The list is made once per process.

    Parameters
    ----------
    executor : str, optional
        A name in :data:`pyedmcl.device.registry.EXECUTORS`.
    refresh : bool
        Ask the drivers again.

    Returns
    -------
    list of DeviceInfo

    Raises
    ------
    DeviceNotFoundError
        PyOpenCL, or the binding of the executor, cannot be imported.
    LaunchError
        This process was forked from one that had already loaded OpenCL.
    """
    return registry.devices(executor, refresh=refresh)


def discover_every() -> list[DeviceInfo]:
    """The devices of all executors, without those of bindings that are not there.

    Raises
    ------
    DeviceNotFoundError
        No binding is there that a device needs.
    """
    infos = discover()
    for name in registry.EXECUTORS:
        with contextlib.suppress(DeviceNotFoundError):
            infos += [info for info in discover(executor=name) if info not in infos]
    return infos
