"""How much device memory a plan may use."""

from __future__ import annotations

import contextlib
import functools
import os
import time
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from .. import config
from ..errors import HostMemoryError
from .info import DeviceInfo
from .quirks import quirks_for

_share: ContextVar[float] = ContextVar("share", default=1.0)


@dataclass(frozen=True)
class MemoryBudget:
    """Bytes that may be planned with.

    Attributes
    ----------
    total : int
        For all buffers together.
    largest : int
        For one buffer.
    """

    total: int
    largest: int


def host_available() -> int | None:
    """Bytes of host memory that can be had without swapping, or None where the system does not say.

    A container's limit counts where it is lower than what the machine has free.
    """
    free: list[int] = []
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                free.append(int(line.split()[1]) * 1024)
    except (OSError, ValueError):
        pass
    for limit, used in (
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ):
        try:
            free.append(max(int(Path(limit).read_text()) - int(Path(used).read_text()), 0))
        except (OSError, ValueError):  # "max": no limit
            continue
    if not free:
        try:
            free.append(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
        except (AttributeError, OSError, ValueError):
            return None
    return min(free)


@functools.lru_cache(maxsize=1)
def _recently_available(second: int) -> int | None:
    # Small calls plan several times in a millisecond; asking the system each time would cost more than they do.
    return host_available()


def host_refusal(error: MemoryError) -> HostMemoryError:
    """Our error for memory that this machine did not give; as after a refusal of a device, less may do."""
    free = host_available()
    refusal = HostMemoryError(
        f"this machine has not enough free memory: {error or 'an allocation failed'}"
        f"{'' if free is None else f'; {free:,} bytes are free'}. Compute fewer series or rows at a time; "
        "a function with out= keeps its result on the disk."
    )
    refusal.refused = True
    return refusal


@contextlib.contextmanager
def memory_share(share: float) -> Iterator[None]:
    """Within the block, plans may use this share of the memory that they might use around it.

    How work is tried again after a device refused what was planned: everything that plans asks :func:`budget`.
    """
    token = _share.set(_share.get() * share)
    try:
        yield
    finally:
        _share.reset(token)


def plan_of() -> tuple[object, ...]:
    """What the user and a second try say of the memory to plan with: where it is equal, so are sizes of plans."""
    settings = config.current()
    return settings.memory_fraction, settings.memory_limit, _share.get()


def budget(info: DeviceInfo, *, settings: config.Config | None = None, host_free: int | None = None) -> MemoryBudget:
    """The budget of a device under the user's settings.

    Parameters
    ----------
    info : DeviceInfo
    settings : Config, optional
        Else :func:`pyedmcl.config.current`.
    host_free : int, optional
        Available host memory in bytes, asked from the system where left out; counts for devices that live in it.
    """
    settings = settings or config.current()
    quirks = quirks_for(info)
    total = int(info.global_bytes * quirks.memory_share * settings.memory_fraction)
    if info.kind in ("cpu", "simulator"):
        free = _recently_available(int(time.monotonic())) if host_free is None else host_free
        if free is not None:
            total = min(total, int(free * settings.memory_fraction))
    if settings.memory_limit is not None:
        total = min(total, settings.memory_limit)
    total = max(int(total * _share.get()), 1)
    return MemoryBudget(total=total, largest=max(min(total, quirks.largest_bytes), 1))
