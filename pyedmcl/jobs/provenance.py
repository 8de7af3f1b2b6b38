"""Where a result comes from: devices, drivers, kernels, parameters."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..device.fingerprint import device_key
from ..kernels import spec

if TYPE_CHECKING:
    from ..device.info import DeviceInfo


@functools.cache
def _digest(kernel: str) -> str:
    return spec(kernel).digest()


def provenance(
    infos: Sequence[DeviceInfo], kernels: Iterable[str], tuning: Mapping[str, Any], **more: Any
) -> dict[str, Any]:
    """A record that says what would be needed to get the same bits again.

    Parameters
    ----------
    infos : sequence of DeviceInfo
        The devices that worked on it. ``device``, ``device_id``, ``driver`` and ``device_key`` are of the first one,
        ``devices``, ``device_ids`` and ``drivers`` of all.
    kernels : iterable of str
        ``kernels`` holds the digest of the source of each.
    tuning : mapping
        Kernel to the parameters that it was given, see :meth:`pyedmcl.tuning.parameters.ParameterSource.record`.
    **more
        What the method adds: its parameters, what it chose.

    Returns
    -------
    dict
        Plain data. ``tuning`` lists, for each kernel, the tuned parameters that it was given and how well they are
        known to suit (their grade).
    """
    from .. import __version__

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
        "tuning": dict(tuning),
        **more,
    }
