"""Choose devices: pure functions over a list of descriptions."""

from __future__ import annotations

import fnmatch
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from .. import config
from ..errors import DeviceNotFoundError, InputError, shown
from . import registry
from .info import RUNTIMES, DeviceInfo
from .quirks import POCL_FROM, quirks_for
from .runtimes import LOADED_BEFORE, intel_library

_KINDS = {"gpu": 0, "accelerator": 1, "cpu": 2, "simulator": 3}

HOW_TO_GET_ONE = (
    f"Install a runtime for the processor with: pip install 'pyedmcl[cpu]' (x86-64), or PoCL: {POCL_FROM}. "
    "If this machine has a GPU, 'pyedmcl devices --doctor' says why it is not seen."
)


def _how_to_get_one() -> str:
    """What to do where nothing was found, which differs where pip has installed a runtime that was not seen."""
    if intel_library() is None:
        return HOW_TO_GET_ONE
    return f"{HOW_TO_GET_ONE} One of pip is here: if this program used PyOpenCL before pyedmcl, import pyedmcl first."


@dataclass(frozen=True)
class DeviceChoice:
    """A device and, for the user, why it was taken."""

    device: DeviceInfo
    reason: str


# Who asked and what for -> the devices that there were, and the choice: each small call asks the same.
_chosen: dict[tuple[str, str | None], tuple[tuple[DeviceInfo, ...], DeviceChoice]] = {}
_KEPT_MOST = 64


def select(request: str | None = None, *, devices: Sequence[DeviceInfo] | None = None) -> DeviceChoice:
    """Choose a device.

    Parameters
    ----------
    request : str, optional
        "gpu", "cpu", "accelerator", "simulator", "nvidia", "amd", "intel", "pocl" or another runtime, an id
        ``"p:d"``, or a part or glob pattern of a name, platform or vendor in any case; "sycl", alone or before any of
        these ("sycl:gpu"), for the devices that dpctl reaches; "spirv" likewise, with programs in SPIR-V; "cuda" for
        GPUs through NVIDIA's driver alone, which count unnamed, too, where its OpenCL is not there. Without one,
        ``PYEDMCL_DEVICE`` counts; without that, a GPU comes before an accelerator before a processor. Of what names
        several, see :func:`select_several`, the first.
    devices : sequence of DeviceInfo, optional
        What to choose from; else what :func:`pyedmcl.device.discover.discover` finds.

    Raises
    ------
    DeviceNotFoundError
        Nothing matches; the message lists the devices there are, or how to get one.
    """
    source = "asked for"
    if request is not None and not isinstance(request, str):
        raise InputError(
            f"device={shown(request)}: text is needed, such as 'gpu', a part of a name, or an id such as '0:0'"
        )
    if request is None or not request.strip():
        request = config.current().device
        source = "PYEDMCL_DEVICE is"
    if request is not None and _is_several(request.strip()):
        return select_several(request, devices=devices)[0]
    devices = _of_executor(registry.named_in(request or "")[0], devices)
    kept = _chosen.get((source, request))
    if kept is not None and len(kept[0]) == len(devices) and all(map(operator.is_, kept[0], devices)):
        return kept[1]
    choice = _choose(request, source, devices)
    if len(_chosen) > _KEPT_MOST:
        _chosen.clear()
    _chosen[source, request] = tuple(devices), choice
    return choice


def _choose(request: str | None, source: str, devices: Sequence[DeviceInfo]) -> DeviceChoice:
    """What :func:`select` chooses of some devices; ``source`` says who asked."""
    executor, named = registry.named_in(request or "")
    if not devices:
        raise DeviceNotFoundError(
            f"there is no OpenCL device on this machine. {_how_to_get_one()}" if executor is None else
            f"device={shown(request)}: there is no device that {executor} reaches; 'pyedmcl devices --doctor' says why."
            f" If that lists one, {LOADED_BEFORE}"
        )  # fmt: skip
    if not named:
        choice = _automatic(devices)
        return choice if executor is None else replace(choice, reason=f"{source} {request!r}: {choice.reason}")
    matches = sorted(filter(_matcher(named), devices), key=rank)
    if not matches:
        raise DeviceNotFoundError(
            f"no device matches {shown(request)}. There are:\n{table(devices)}\n"
            "Name one by its id or a part of its name."
        )
    others = "" if len(matches) == 1 else f", the first of {len(matches)} that match"
    return DeviceChoice(matches[0], f"{source} {request!r}{others}")



class OpenCLHandle(Protocol):
    """A queue, context or device of PyOpenCL; see :mod:`pyedmcl.device.foreign`."""

    @property
    def int_ptr(self) -> int: ...


class SyclHandle(Protocol):
    """A queue or device of dpctl; see :mod:`pyedmcl.device.foreign`."""

    def addressof_ref(self) -> int: ...


class CudaHandle(Protocol):
    """A stream of PyTorch, or another stream or GPU of CUDA; see :mod:`pyedmcl.device.foreign`."""

    @property
    def cuda_stream(self) -> int: ...


Handle = OpenCLHandle | SyclHandle | CudaHandle
#: What a function's ``device`` may be: a name, the caller's own queue, context or device, or several of these.
DeviceNames = str | Sequence[str | Handle | None] | Handle | None


def _of_executor(executor: str | None, devices: Sequence[DeviceInfo] | None) -> Sequence[DeviceInfo]:
    """The devices of an executor, or of all that count unless they are named; of a list, or of those there are."""
    if devices is None:
        from . import discover

        return discover.discover(executor=executor)
    return registry.unnamed(devices) if executor is None else [info for info in devices if info.executor == executor]


_IDS = re.compile(r"\s*(\w+:)?\d+:\d+\s*(,\s*(\w+:)?\d+:\d+\s*)+")


def select_several(request: DeviceNames = None, *, devices: Sequence[DeviceInfo] | None = None) -> list[DeviceChoice]:
    """Choose one or more devices.

    Parameters
    ----------
    request : str or sequence of str, optional
        As for :func:`select`, or "gpus" for all GPUs, "all" for all GPUs, accelerators and one runtime of the
        processor, "gpu:local" for the GPU that belongs to this process of a cluster's node (by its local rank), several
        ids with commas between them, or a sequence of any of these. A device that is named twice is taken once.
    devices : sequence of DeviceInfo, optional
        What to choose from; else what :func:`pyedmcl.device.discover.discover` finds.

    Raises
    ------
    DeviceNotFoundError
        A name matches nothing.
    """
    if request is None:
        request = config.current().device
    if isinstance(request, (list, tuple)):
        if not request:
            raise InputError(f"device={shown(request)}: at least one device is needed, or None for the default one")
        chosen = [choice for name in request for choice in select_several(name, devices=devices)]
    elif request is not None and not isinstance(request, str):
        raise InputError(f"device={shown(request)}: the name of a device, or a list of names; see pyedmcl devices")
    else:
        chosen = _named(request, devices)
    return list({choice.device.id: choice for choice in chosen}.values())


def _is_several(name: str) -> bool:
    return registry.named_in(name)[1].lower() in ("gpus", "all", "gpu:local") or _IDS.fullmatch(name) is not None


def _named(request: str | None, devices: Sequence[DeviceInfo] | None) -> list[DeviceChoice]:
    name = (request or "").strip().lower()
    if not _is_several(name):
        return [select(request, devices=devices)]
    if _IDS.fullmatch(name):
        return [select(each, devices=devices) for each in name.split(",")]
    executor, name = registry.named_in(name)
    devices = _of_executor(executor, devices)
    return [_local(devices)] if name == "gpu:local" else _all(name, devices)


def _usable(devices: Sequence[DeviceInfo]) -> list[DeviceInfo]:
    """Those that may be chosen unasked, the best ones first."""
    usable = (info for info in devices if info.kind != "simulator" and quirks_for(info).unusable is None)
    return sorted(usable, key=rank)


def _all(name: str, devices: Sequence[DeviceInfo]) -> list[DeviceChoice]:
    usable = _usable(devices)
    chosen = [info for info in usable if info.kind == "gpu"]
    if name == "all":
        # Runtimes of the processor share its cores: one of them is all of it.
        chosen += [info for info in usable if info.kind not in ("gpu", "cpu")]
        chosen += [info for info in usable if info.kind == "cpu"][:1]
    if not chosen:
        lacking = "GPU" if name == "gpus" else "usable device"
        raise DeviceNotFoundError(
            f"device={name!r}: there is no {lacking}. There are:\n{table(devices)}\n{HOW_TO_GET_ONE}"
        )
    return [DeviceChoice(info, f"one of {len(chosen)} that {name!r} names") for info in chosen]


def _local(devices: Sequence[DeviceInfo]) -> DeviceChoice:
    """The GPU of this process of a node; processes take turns where there are more of them than GPUs."""
    gpus = [choice.device for choice in _all("gpus", devices)]
    rank_here = config.local_rank()
    if rank_here is None:
        raise DeviceNotFoundError(
            "device='gpu:local': no variable tells this process's place on its node "
            f"({', '.join(config.LOCAL_RANKS)}); start it with srun or mpiexec, or name a device"
        )
    name, number = rank_here
    return DeviceChoice(gpus[number % len(gpus)], f"{name}={number}, of {len(gpus)} GPUs")


def _automatic(devices: Sequence[DeviceInfo]) -> DeviceChoice:
    ordered = _usable(devices)
    if not ordered:
        reasons = "\n".join(f"  {info.id}  {quirks_for(info).unusable or 'a simulator'}" for info in devices)
        raise DeviceNotFoundError(
            f"none of the OpenCL devices can be used unasked:\n{table(devices)}\n{reasons}\n{HOW_TO_GET_ONE}"
        )
    best = ordered[0]
    same = [info for info in ordered if info.kind == best.kind]
    if len(ordered) == 1:
        reason = "the only usable device"
    elif len(same) == 1:
        reason = f"the only {_label(best.kind)}"
    elif best.kind == "cpu":
        reason = f"no GPU; the fastest of {len(same)} processor runtimes"
    else:
        reason = f"the first of {len(same)} {_label(best.kind)}s"
    return DeviceChoice(best, reason)


def _label(kind: str) -> str:
    return {"gpu": "GPU", "cpu": "processor"}.get(kind, kind)


def rank(info: DeviceInfo) -> tuple[object, ...]:
    """Sort key: the device to prefer comes first."""
    version = tuple(-int(part) for part in re.findall(r"\d+", info.driver)[:2]) if info.runtime == "pocl" else ()
    # "cpu" and the like name a class, in which a broken runtime must not come before one that works.
    broken = quirks_for(info).unusable is not None
    place = tuple(int(part) for part in re.findall(r"\d+", info.id))
    memory = -info.global_bytes if info.kind == "gpu" else 0
    return (broken, _KINDS.get(info.kind, 9), RUNTIMES[info.runtime], version, memory, place)


def _matcher(request: str) -> Callable[[DeviceInfo], bool]:
    name = request.lower()
    if re.fullmatch(r"\d+:\d+", name):
        return lambda info: info.id in (name, f"{info.executor}:{name}")
    if name in _KINDS:
        return lambda info: info.kind == name
    if name == "nvidia":
        return lambda info: info.runtime == name or _vendor(info, "nvidia")
    if name == "amd":
        # Processor runtimes report the maker of the processor; who asks for AMD means a GPU.
        return lambda info: info.runtime == "amd" or (info.kind == "gpu" and _vendor(info, "amd", "advanced micro"))
    if name == "intel":
        return lambda info: info.runtime.startswith("intel-") or (info.kind == "gpu" and _vendor(info, "intel"))
    if name in RUNTIMES and name != "other":
        return lambda info: info.runtime == name
    pattern = name if any(sign in name for sign in "*?[") else f"*{name}*"

    def by_text(info: DeviceInfo) -> bool:
        return any(fnmatch.fnmatchcase(text.lower(), pattern) for text in (info.name, info.platform, info.vendor))

    return by_text


def _vendor(info: DeviceInfo, *parts: str) -> bool:
    return any(part in info.vendor.lower() for part in parts)


def table(devices: Sequence[DeviceInfo]) -> str:
    """One line per device: id, kind, name, platform."""
    return "\n".join(f"  {info.id}  {info.kind:<11}  {info.name} ({info.platform} {info.driver})" for info in devices)
