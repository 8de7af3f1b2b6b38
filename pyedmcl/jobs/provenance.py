"""Where a result comes from: devices, drivers, kernels, parameters."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ..device.fingerprint import device_key
from ..kernels import spec
from ..tuning.parameters import record

if TYPE_CHECKING:
    from ..device.executor import Executor


@functools.cache
def _digest(kernel: str) -> str:
    return spec(kernel).digest()


def provenance(executors: Sequence[Executor], kernels: Iterable[str], **more: Any) -> dict[str, Any]:
    """A record that says what would be needed to get the same bits again.

    Parameters
    ----------
    executors : sequence of Executor
        The devices that worked on it. ``device``, ``device_id``, ``driver`` and ``device_key`` are of the first one,
        ``devices``, ``device_ids`` and ``drivers`` of all.
    kernels : iterable of str
        ``kernels`` holds the digest of the source of each.
    **more
        What the method adds: its parameters, what it chose.

    Returns
    -------
    dict
        Plain data. ``tuning`` lists, for each kernel, the tuned parameters that it was given and how well they are
        known to suit (their grade).
    """
    from .. import __version__

    infos = [executor.info for executor in executors]
    first = infos[0]
    return {
        "version": __version__,
        "device": first.name,
        "device_id": first.id,
        "driver": first.driver,
        "device_key": device_key(first).as_dict(),
        "devices": [info.name for info in infos],
        "device_ids": [info.id for info in infos],
        "drivers": [info.driver for info in infos],
        "kernels": {name: _digest(name) for name in kernels},
        "tuning": record(),
        **more,
    }
