"""The executors that there are. A new one is a class, a row here, and a test: nothing above this room knows of it.

Modules are named and not imported, so that a machine needs only the binding of the executor that it uses.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import DeviceNotFoundError
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
        ``module:class`` of this room, called with a device of that list, and perhaps with a context of the caller.
    when_named : bool
        Whether its devices count only where a request names the executor ("name", "name:gpu", "name:0:0"), so that its
        binding is not even imported otherwise.
    stands_in_for : str
        A runtime. Where a row that is not named has no device of it, the devices of this row count unnamed, too.
    """

    devices: str
    executor: str
    when_named: bool = False
    stands_in_for: str = ""


#: Name to row, in the order in which devices are listed.
EXECUTORS: dict[str, ExecutorRow] = {
    "opencl": ExecutorRow("opencl_devices:devices", "opencl:OpenCLExecutor"),
    "sycl": ExecutorRow("sycl_devices:devices", "sycl:SyclExecutor", when_named=True),
    "spirv": ExecutorRow("sycl_devices:spirv_devices", "sycl:SpirvExecutor", when_named=True),
    "cuda": ExecutorRow("cuda_devices:devices", "cuda:CudaExecutor", when_named=True, stands_in_for="nvidia"),
}


def named_in(request: str) -> tuple[str | None, str]:
    """The executor that a request names, if it does, and the rest of the request."""
    name, _, rest = request.strip().partition(":")
    return (name.lower(), rest.strip()) if name.lower() in EXECUTORS else (None, request.strip())


def devices(executor: str | None = None, *, refresh: bool = False) -> list[DeviceInfo]:
    """The devices of an executor, or of all whose devices count unless they are named.

    Raises
    ------
    DeviceNotFoundError
        A binding cannot be imported, and nothing stands in for it.
    """
    if executor is not None:
        listed: list[DeviceInfo] = _load(EXECUTORS[executor].devices)(refresh)
        return listed
    infos: list[DeviceInfo] = []
    missing: list[DeviceNotFoundError] = []
    # Those that stand in come last, when it is known whether they are needed.
    for name, row in sorted(EXECUTORS.items(), key=lambda item: item[1].when_named):
        if not row.when_named or (row.stands_in_for and not _has(infos, row.stands_in_for)):
            try:
                infos += devices(name, refresh=refresh)
            except DeviceNotFoundError as error:
                missing += [] if row.when_named else [error]
    if missing and not infos:
        raise missing[0]
    return infos


def unnamed(infos: Sequence[DeviceInfo]) -> list[DeviceInfo]:
    """Those of a list that count where no executor is named."""
    plain = [info for info in infos if not EXECUTORS[info.executor].when_named]
    return plain + [info for info in infos if (runtime := EXECUTORS[info.executor].stands_in_for)
                    and not _has(plain, runtime)]  # fmt: skip


def _has(infos: Sequence[DeviceInfo], runtime: str) -> bool:
    return any(info.runtime == runtime for info in infos)


def open_executor(info: DeviceInfo, context: Any = None) -> Executor:
    """A new executor for a device, in a context of the caller where there is one. Raises what the executor raises."""
    passed = (info,) if context is None else (info, context)
    executor: Executor = _load(EXECUTORS[info.executor].executor)(*passed)
    return executor


def _load(place: str) -> Callable[..., Any]:
    module, _, name = place.partition(":")
    loaded: Callable[..., Any] = getattr(importlib.import_module(f"{__package__}.{module}"), name)
    return loaded
