"""Open devices: one executor per process and device, made at first use."""

from __future__ import annotations

import os
import threading
from typing import Any, cast

from ..errors import warn
from . import discover, foreign, probe, registry, select
from .executor import Executor
from .info import DeviceInfo
from .quirks import quirks_for

_lock = threading.Lock()
# By process, device, and the caller's context where there is one.
_open: dict[tuple[int, DeviceInfo, Any], Executor] = {}
# Executors in contexts of the caller: each keeps its context alive.
_FOREIGN_KEPT = 8


def open_device(request: select.DeviceNames = None) -> Executor:
    """The executor of the device that ``request`` names or is; see :func:`pyedmcl.device.select.select`.

    Raises
    ------
    DeviceNotFoundError
        No device matches.
    InputError
        A queue, context or device of the caller cannot be used.
    LaunchError
        The driver refuses a context.
    """
    if foreign.is_handle(request) or isinstance(request, (list, tuple)):
        return open_devices(request)[0]
    return executor_for(select.select(cast("str | None", request)).device)


def open_devices(request: select.DeviceNames = None) -> list[Executor]:
    """The executors of the devices that ``request`` names or is; see :func:`pyedmcl.device.select.select_several`.

    Where it is a queue of the caller, what is done next waits for what is on that queue.
    """
    if foreign.is_handle(request):
        return [_executor_at(place) for place in foreign.places(request)]
    if isinstance(request, (list, tuple)) and any(map(foreign.is_handle, request)):
        opened = [executor for each in request for executor in open_devices(each)]
        return list(dict.fromkeys(opened))
    return [executor_for(choice.device) for choice in select.select_several(request)]


def _executor_at(place: foreign.Place) -> Executor:
    executor = executor_for(place.info, place.context)
    if place.queue is not None:
        executor.follow(place.queue)
    return executor


def executor_for(info: DeviceInfo, context: Any = None) -> Executor:
    """The executor of a discovered device, or in a context of the caller: the same one for all in this process."""
    key = (os.getpid(), info, context)
    executor = _open.get(key)
    if executor is not None:
        return executor
    discover.discover(executor=info.executor)  # before the lock: in a forked child this says why no device can be used
    with _lock:
        if key not in _open:
            _warn_of(info)
            opened = registry.open_executor(info, context)
            if probe.ask(opened):
                quirks_for.cache_clear()
            _open[key] = opened
            for old in [key for key in _open if key[2] is not None][:-_FOREIGN_KEPT]:
                del _open[old]  # who still uses it holds it
        return _open[key]


def _warn_of(info: DeviceInfo) -> None:
    """Say what is wrong with an unusable device, which is opened only where somebody named it."""
    quirks = quirks_for(info)
    if quirks.unusable is not None:
        warn(f"{info.id} {info.name} is used since it was named, but {quirks.unusable}. Instead: {quirks.instead}")


def settle() -> None:
    """Wait until all that the executors of this process left to the background is compiled."""
    for executor in [executor for key, executor in list(_open.items()) if key[0] == os.getpid()]:
        executor.settle()


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
