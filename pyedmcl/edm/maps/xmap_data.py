"""What a device gets of a map: targets grouped by dimension, gaps and library rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...engines.crossmap import MapData
from .pairs import PairsProblem, gap_patterns


def map_data(problem: PairsProblem) -> MapData:
    """What the device gets of a problem whose E is known: targets grouped by dimension and pattern of gaps."""
    return layered_map_data(problem, np.array([problem.E], int))


def layered_map_data(problem: PairsProblem, E: NDArray[np.int_]) -> MapData:
    """The same for several layers with dimensions ``E`` (n_layers, n_targets)."""
    conditioned, n = problem.data.conditioned, problem.data.series.n_steps
    gap_pattern, library_masks = gap_patterns(problem)
    neighbors = n - (E.max(axis=1) - 1) * problem.tau - abs(problem.Tp)  # rows that may be neighbours, of each layer
    predicted = hidden = None
    if problem.rows is not None:
        gap_pattern, library_masks = row_patterns(problem, E, gap_pattern, library_masks)
        least = [min(map(int, own)) for own in _library_rows(E, gap_pattern, library_masks, problem.tau)]
        neighbors, predicted = np.minimum(neighbors, least), problem.rows.predicted(n)
        hidden = problem.rows.holes(n)
    gaps = conditioned.gaps.any() or problem.target_data.conditioned.gaps.any() or hidden is not None
    return MapData(
        conditioned.values, E, problem.tau, problem.Tp, problem.exclusion_radius, problem.knn, gap_pattern,
        library_masks, gaps=gaps | (neighbors - 2 * problem.exclusion_radius - 1 < 1), search=problem.search,
        targets=None if problem.targets is None else problem.targets.conditioned.values, predicted=predicted,
        hidden=hidden, compact=problem.compact,
    )  # fmt: skip


def _library_rows(
    E: NDArray[np.int_], patterns: NDArray[np.int_], masks: dict[int, Any], tau: int
) -> Iterator[list[Any]]:
    """Library rows of the patterns of each layer."""
    for dims, own in zip(E, patterns, strict=True):
        pairs = sorted({*zip(dims.tolist(), own.tolist(), strict=True)})
        yield [masks[number][(dim - 1) * tau :].sum() for dim, number in pairs]


def row_patterns(
    problem: PairsProblem, E: NDArray[np.int_], gap_pattern: NDArray[np.int_], masks: dict[int, Any]
) -> tuple[NDArray[np.int_], dict[int, Any]]:
    """Patterns of gaps together with the rows of the library, which may depend on the dimension.

    Rows that have no state in a dimension count as allowed: dimensions with no other difference share a search.
    """
    assert problem.rows is not None
    patterns, mask_of = np.zeros(E.shape, int), {}
    numbers: dict[bytes, int] = {}
    n = problem.data.series.n_steps
    for dim, number in sorted({*zip(E.ravel().tolist(), np.broadcast_to(gap_pattern, E.shape).ravel().tolist(),
                                    strict=True)}):  # fmt: skip
        rows = problem.rows.library_mask(n, dim, problem.tau, problem.Tp)
        mask = np.ones(n, bool) if rows is None else rows.copy()
        if number:
            mask &= masks[number]
        mask[: (dim - 1) * problem.tau] = True
        pattern = numbers.setdefault(mask.tobytes(), len(numbers) + 1)
        mask_of[pattern] = mask
        patterns[np.equal(E, dim) & (gap_pattern == number)] = pattern
    return patterns, mask_of
