"""Where a result comes from: device, driver, kernels, parameters."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ..device.fingerprint import device_key
from ..kernels import spec
from ..tuning import policy

if TYPE_CHECKING:
    from ..device.executor import Executor


@functools.cache
def _digest(name: str) -> str:
    return spec(name).digest()


def provenance(
    executor: Executor, kernels: Iterable[str], parameters: Mapping[str, Any], **more: Any
) -> dict[str, Any]:
    """A record that says what would be needed to get the same bits again.

    ``tuning`` lists, for each kernel, the parameters that were chosen and how well they are known (their grade).
    """
    from .. import __version__

    info = executor.info
    return {
        "version": __version__,
        "device": info.name,
        "device_id": info.id,
        "driver": info.driver,
        "device_key": device_key(info).as_dict(),
        "kernels": {name: _digest(name) for name in kernels},
        "parameters": dict(parameters),
        "tuning": policy.record(),
        **more,
    }
