"""List the devices of this machine."""

from __future__ import annotations

from ..errors import DeviceNotFoundError
from . import registry
from .info import DeviceInfo


def discover(*, executor: str | None = None, refresh: bool = False) -> list[DeviceInfo]:
    """All OpenCL devices, simulators included and marked as such; or those of the executor that is named.

    The list is made once per process.

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
    """The devices of all executors, without those of a binding that is not there and need not be."""
    infos: list[DeviceInfo] = []
    for name, row in registry.EXECUTORS.items():
        try:
            infos += discover(executor=name)
        except DeviceNotFoundError:
            if not row.when_named:
                raise
    return infos
