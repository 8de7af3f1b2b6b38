"""The executors that there are. A new one is a class, a row here, and a test: nothing above this room knows of it.

Modules are named and not imported, so that a machine needs only the binding of the executor that it uses.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .executor import Executor
from .info import DeviceInfo


@dataclass(frozen=True)
class ExecutorRow:
    """One implementation of :class:`pyedmcl.device.executor.Executor`.

    Attributes
    ----------
    devices : str
        ``module:function`` of this room. ``function(refresh)`` lists the devices that the executor can open, each with
        ``executor`` set to the row's name and an id ``"name:p:d"`` ("p:d" in the first row).
    executor : str
        ``module:class`` of this room, called with a device of that list.
    """

    devices: str
    executor: str


#: Name to row, in the order in which devices are listed.
EXECUTORS: dict[str, ExecutorRow] = {
    "opencl": ExecutorRow("opencl_devices:devices", "opencl:OpenCLExecutor"),
}


def devices(*, refresh: bool = False) -> list[DeviceInfo]:
    """The devices of all executors."""
    found: list[DeviceInfo] = []
    for row in EXECUTORS.values():
        found += _load(row.devices)(refresh)
    return found


def open_executor(info: DeviceInfo) -> Executor:
    """A new executor for a device. Raises what the executor raises."""
    executor: Executor = _load(EXECUTORS[info.executor].executor)(info)
    return executor


def _load(place: str) -> Callable[..., Any]:
    module, _, name = place.partition(":")
    loaded: Callable[..., Any] = getattr(importlib.import_module(f"{__package__}.{module}"), name)
    return loaded
