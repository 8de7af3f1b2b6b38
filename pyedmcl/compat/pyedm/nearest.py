"""Nearest neighbours in pyEDM's order: by distance, then nearness in time, then row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...device.session import open_device
from ...edm.shared.arguments import MOST_NEIGHBOURS
from ...edm.shared.states import condition_together
from ...errors import warn
from ...launch.invariants import require_rows
from ...neighbors.coordinates import coordinate_problem, lay_out_states
from ...neighbors.exhaustive import ExhaustiveSearcher

if TYPE_CHECKING:
    from .task import Task

Doubles = NDArray[np.float64]
Rows = NDArray[np.int64]
_CELLS = 1 << 20
# Distances this near each other may be equal for pyEDM: such rows are ordered on the host.
_NEAR = {"float32": 1e-5, "float64": 1e-12}


def nearest(states: Doubles, library: Rows, queries: Rows, k: int, radius: int) -> tuple[Rows, Doubles]:
    """The k nearest library rows of each row asked for, itself and those within the radius excepted.

    Parameters
    ----------
    states : ndarray (n, n_coordinates)
    library, queries : ndarray of int
        Rows; those of the library ascending.
    k, radius : int

    Returns
    -------
    rows, distances : ndarray (len(queries), k)
        Infinite distances, of any row, where there are fewer.
    """
    width = min(k + 1, len(library))
    neighbours = np.full((len(queries), max(width, k)), library[0])
    distance = np.full(neighbours.shape, np.inf)
    if width > MOST_NEIGHBOURS:
        undecided = np.arange(len(queries))
    else:
        rows, dtype = _on_device(states, library, queries, width, radius)
        exists = rows >= 0
        neighbours[:, :width] = np.where(exists, rows, library[0])
        distance[:, :width] = np.where(exists, _distances(states, queries, neighbours[:, :width]), np.inf)
        near, far = neighbours[:, :width], distance[:, :width]  # beyond are pads, which k may have very many of
        order = np.lexsort((near, np.abs(near - queries[:, None]), far), axis=1)
        near[:], far[:] = np.take_along_axis(near, order, 1), np.take_along_axis(far, order, 1)
        undecided = np.empty(0, np.int64)
        if neighbours.shape[1] > k:
            tied = distance[:, k] <= distance[:, k - 1] * (1 + _NEAR[dtype])
            undecided = np.flatnonzero(tied & np.isfinite(distance[:, k]))
    neighbours, distance = neighbours[:, :k].copy(), distance[:, :k].copy()
    _on_host(states, library, queries, k, radius, undecided, neighbours, distance)
    pads = ~np.isfinite(distance)
    neighbours[pads] = np.broadcast_to(neighbours[:, :1], neighbours.shape)[pads]
    return neighbours, distance


def _on_device(states: Doubles, library: Rows, queries: Rows, k: int, radius: int) -> tuple[Rows, str]:
    executor = open_device(None)
    dtype = "float64" if executor.info.fp64 else "float32"
    first = int(min(library[0], queries.min()))
    n = int(max(library[-1], queries.max())) + 1 - first
    problem = coordinate_problem(states.shape[1], k, 0, radius, n, n, dtype)
    layout = lay_out_states(condition_together(states[first : first + n], dtype), problem, n, n)
    library_mask = np.zeros(n, bool)
    library_mask[library - first] = True
    searcher = ExhaustiveSearcher(executor, problem, "neighbours")
    try:
        tables = next(searcher.tables(searcher.load_layouts(layout, layout), library_mask))
        rows = executor.download(tables.rows, np.empty((n, k), np.int32))
        require_rows(executor, rows, n, "knn")
    finally:
        searcher.release()
    chosen = rows[queries - first].astype(np.int64)
    return np.where(chosen >= 0, chosen + first, -1), dtype


def _distances(states: Doubles, asked: Rows, rows: Rows) -> Doubles:
    out: Doubles = np.sqrt(((states[rows] - states[asked][:, None]) ** 2).sum(axis=2))
    return out


def _on_host(
    states: Doubles, library: Rows, queries: Rows, k: int, radius: int, which: Rows, neighbours: Rows, distance: Doubles
) -> None:
    """Order the whole library for some of the rows asked for."""
    step = max(_CELLS // (len(library) * states.shape[1]), 1)
    for a in range(0, len(which), step):
        part = which[a : a + step]
        rows = np.broadcast_to(library, (len(part), len(library)))
        apart = np.abs(rows - queries[part][:, None])
        far = np.where(apart > radius, _distances(states, queries[part], rows), np.inf)
        order = np.lexsort((rows, apart, far), axis=1)[:, :k]
        neighbours[part, : order.shape[1]] = np.take_along_axis(rows, order, 1)
        distance[part, : order.shape[1]] = np.take_along_axis(far, order, 1)


def warn_of_few(task: Task, distance: Doubles) -> None:
    """Say when rows have fewer neighbours than asked for."""
    exists = np.isfinite(distance)
    if distance.size and not exists.all():
        nothing = "" if exists.any(axis=1).all() else "; some have none, and their predictions are NaN"
        warn(
            f"{task.name}: fewer than knn={task.knn} neighbours outside exclusionRadius {task.exclusionRadius} for "
            f"some predictions, which use those there are{nothing}",
            UserWarning,
        )  # fmt: skip


