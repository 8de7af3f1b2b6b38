"""A map of local linear fits that is computed in one go; small ones go through the launches of the one before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..jobs.blocks import Record
from ..launch.invariants import require_rho
from ..launch.replay import FEW_BYTES, replayed
from .smap_map import SmapMap
from .smap_map_data import SmapMapData

if TYPE_CHECKING:
    from ..device.executor import Executor


def whole_smap_map(
    executor: Executor, data: SmapMapData, first: int, layers: Sequence[NDArray[Any]]
) -> Record | None:
    """Write the skill of libraries from ``first`` on for all targets to ``layers`` (n_libraries, n_targets), by theta.

    None, with nothing written, where what is done depends on more than shapes and options.
    """
    n = len(layers[0])
    many = max(data.values.nbytes, data.libraries.nbytes, sum(layer.nbytes for layer in layers)) > FEW_BYTES
    if many or data.slopes is not None or data.gaps or data.ridge or data.asked is not None or data.gap_pattern.any():
        return None
    none_doubtful, doubtful = np.zeros(n, np.int32), np.zeros((len(layers), n), np.int32)

    def work(executor: Executor) -> Record:
        mapping = SmapMap(executor, data, none_doubtful)
        try:
            if n <= mapping.batch:
                mapping.maps(first, layers, none_doubtful, doubtful)
            else:
                mapping.skill(first, first + n, layers)
            return Record(mapping.parameters, "", tuple(mapping.precision))
        finally:
            mapping.release()

    options = data.tau, data.Tp, data.exclusion_radius, data.thetas, data.compact
    inputs = {"values": data.values, "libraries": data.libraries, "none_doubtful": none_doubtful}
    outputs = {"doubtful": doubtful, **{f"rho {place}": layer for place, layer in enumerate(layers)}}
    record = replayed(executor, ("smap_map", data.E.tobytes(), options, first), inputs, outputs, work)
    if doubtful.any() and data.values.dtype == np.float32:
        mapping = SmapMap(executor, data)
        try:
            mapping.again_in_double(first, doubtful, layers)
        finally:
            mapping.release()
    for layer in layers:
        require_rho(executor, layer, "smap_map")
    return record
