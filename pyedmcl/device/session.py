"""Open devices: one executor per process and device, made at first use."""

from __future__ import annotations

import os
import threading

from ..errors import warn
from . import discover, registry, select
from .executor import Executor
from .info import DeviceInfo
from .quirks import quirks_for

_lock = threading.Lock()
_open: dict[tuple[int, DeviceInfo], Executor] = {}


def open_device(request: str | None = None) -> Executor:
    """The executor of the device that ``request`` names; see :func:`pyedmcl.device.select.select`.

    Raises
    ------
    DeviceNotFoundError
        No device matches.
    LaunchError
        The driver refuses a context.
    """
    return executor_for(select.select(request).device)


def open_devices(request: select.DeviceNames = None) -> list[Executor]:
    """The executors of the devices that ``request`` names; see :func:`pyedmcl.device.select.select_several`."""
    return [executor_for(choice.device) for choice in select.select_several(request)]


def executor_for(info: DeviceInfo) -> Executor:
    """The executor of a discovered device: the same one for every caller in this process."""
    key = (os.getpid(), info)
    executor = _open.get(key)
    if executor is not None:
        return executor
    discover.discover()  # before the lock: in a forked child this says why no device can be used
    with _lock:
        if key not in _open:
            _warn_of(info)
            _open[key] = registry.open_executor(info)
        return _open[key]


def _warn_of(info: DeviceInfo) -> None:
    """Say what is wrong with an unusable device, which is opened only where somebody named it."""
    quirks = quirks_for(info)
    if quirks.unusable is not None:
        warn(f"{info.id} {info.name} is used since it was named, but {quirks.unusable}. Instead: {quirks.instead}")


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
