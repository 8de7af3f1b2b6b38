"""List the devices of this machine."""

from __future__ import annotations

from . import registry
from .info import DeviceInfo


def discover(*, refresh: bool = False) -> list[DeviceInfo]:
    """All devices, simulators included and marked as such.

    The list is made once per process.

    Parameters
    ----------
    refresh : bool
        Ask the drivers again.

    Returns
    -------
    list of DeviceInfo

    Raises
    ------
    DeviceNotFoundError
        PyOpenCL cannot be imported.
    LaunchError
        This process was forked from one that had already loaded OpenCL.
    """
    return registry.devices(refresh=refresh)
