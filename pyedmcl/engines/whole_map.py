"""A cross map that is computed in one go; small ones go through the copies and launches of the one before."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..jobs.blocks import Record
from ..launch.invariants import require_rho
from ..launch.replay import replayed
from ..neighbors.plan import SearchProblem
from ..neighbors.searcher import sure_of
from .crossmap import CrossMap, MapData

if TYPE_CHECKING:
    from collections.abc import Hashable

    from ..device.executor import Executor


def whole_map(
    executor: Executor, data: MapData, rho: NDArray[Any], report: Callable[[int], None] | None = None
) -> Record:
    """Write the skill of all libraries for all targets to ``rho`` (n_libraries, n_targets); see :class:`CrossMap`."""

    def work(executor: Executor) -> Record:
        mapping = CrossMap(executor, data)
        try:
            mapping.skill(0, len(rho), rho, report)
            return Record(mapping.parameters, "", tuple(mapping.searched))
        finally:
            mapping.release()

    key = _key(executor, data)
    if key is None:
        return work(executor)
    inputs = {"values": data.values} if data.targets is None else {"values": data.values, "targets": data.targets}
    record = replayed(executor, key, inputs, {"rho": rho}, work)
    require_rho(executor, rho, "lookup")
    return record


def _key(executor: Executor, data: MapData) -> Hashable | None:
    """What a map's launches follow from beside the shape of its series; None where its data have a say, too."""
    some_left_out = data.gap_pattern is not None and np.any(data.gap_pattern)
    if some_left_out or data.library_masks or data.hidden is not None or data.compact:
        return None
    dims = tuple(sorted(set(np.asarray(data.E).ravel().tolist())))
    n = len(data.values)
    problem = SearchProblem(
        dims, tuple(data.k or E + 1 for E in dims), data.tau, data.Tp, data.exclusion_radius, n, n,
        data.values.dtype.name,
    )  # fmt: skip
    sure = sure_of(data.search, executor.info, problem)
    if sure is None:
        return None
    E, gaps = np.asarray(data.E), np.asarray(data.gaps)
    return (
        "whole_map", problem, E.shape, E.tobytes(), gaps.tobytes(), data.k, data.search, data.n_libraries,
        data.predicted, sure,
    )  # fmt: skip
