"""Where a result of one device comes from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ..jobs import provenance as jobs

if TYPE_CHECKING:
    from ..device.executor import Executor


def provenance(
    executor: Executor, kernels: Iterable[str], parameters: Mapping[str, Any], **more: Any
) -> dict[str, Any]:
    """:func:`pyedmcl.jobs.provenance.provenance`, with the parameters that were chosen for the search."""
    return jobs.provenance([executor], kernels, parameters=dict(parameters), **more)
