"""Neighbours as kEDM has them: rows at distance zero are the row itself where library and prediction differ."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...device.session import open_device
from ...edm.forecasts.simplex_fit import Projection, laid_out
from ...edm.shared.arguments import MOST_NEIGHBOURS
from ...edm.shared.states import embed
from ...neighbors.exhaustive import ExhaustiveSearcher
from ...reference.order import nearest_first
from .arguments import Floats

Doubles = NDArray[np.float64]
Rows = NDArray[np.int64]
_CELLS = 1 << 20
_FEW = 2  # neighbours beyond those asked for: most rows have one twin at most


def same(lib: Floats, pred: Floats) -> bool:
    """Whether both are the same series, so that a row is its own neighbour."""
    return lib is pred or (lib.shape == pred.shape and np.array_equal(lib, pred, equal_nan=True))


def nearest(
    lib: Floats, pred: Floats, target_values: Doubles, E: int, tau: int, Tp: int, own: bool
) -> tuple[Rows, Doubles]:
    """The E + 1 nearest library rows of each embedded row of ``pred``.

    Parameters
    ----------
    lib, pred : ndarray (n, columns), (m, columns)
    target_values : ndarray (n,)
        What is predicted; rows that lead to a gap are no neighbours.
    E, tau, Tp : int
    own : bool
        Whether both are one series: then each row is left out of its own neighbours; else those at distance zero are.

    Returns
    -------
    rows, distances : ndarray (m - (E-1) tau, E + 1)
        Infinite distances where there are fewer.
    """
    k, first = E + 1, (E - 1) * tau
    has_target = np.zeros(len(lib), bool)
    has_target[: len(lib) - Tp] = np.isfinite(target_values[Tp : len(lib)])
    enough = min(k if own else k + _FEW, MOST_NEIGHBOURS)
    problem = Projection(
        library=lib, query=lib if own else pred, target_values=target_values, lags=E, tau=tau, Tp=Tp, k=enough,
        exclusion_radius=0 if own else -1, library_mask=None, rows=np.empty(0, np.int64), observed=np.empty(0),
    )  # fmt: skip
    rows, distance = _search(problem, has_target)
    rows, distance = rows[first:], distance[first:]
    if own:
        return rows, distance
    states, query_states = embed(lib.astype(np.float64), E, tau), embed(pred.astype(np.float64), E, tau)[first:]
    near = np.argwhere(distance == 0)
    if len(near):
        apart = np.abs(states[rows[near[:, 0], near[:, 1]]] - query_states[near[:, 0]]).max(axis=1)
        distance[near[:, 0], near[:, 1]] = np.where(apart > 0, np.finfo(np.float32).tiny, np.inf)
    order = nearest_first(distance)
    short = np.isinf(distance).sum(axis=1) > _FEW  # more twins than were allowed for, or few rows at all
    rows, distance = np.take_along_axis(rows, order, 1)[:, :k], np.take_along_axis(distance, order, 1)[:, :k]
    library_rows = np.flatnonzero(has_target & np.isfinite(states).all(axis=1))
    _on_host(states, query_states, library_rows, np.flatnonzero(short), rows, distance)
    return rows, distance


def _search(problem: Projection, known: NDArray[np.bool_]) -> tuple[Rows, Doubles]:
    executor = open_device(None)
    search, library, query = laid_out(problem, "float32")
    searcher = ExhaustiveSearcher(executor, search, "neighbours")
    try:
        mask = None if known[: len(known) - problem.Tp].all() else known
        tables = next(searcher.tables(searcher.load_layouts(library, query), mask))
        rows_of, squared = tables.read(executor, search.dims[0], 1)
    finally:
        searcher.release()
    rows = rows_of[0].astype(np.int64)
    distance = np.where(rows >= 0, np.sqrt(squared[0].astype(np.float64)), np.inf)
    return np.maximum(rows, 0), distance


def _on_host(states: Doubles, asked: Doubles, library_rows: Rows, which: Rows, rows: Rows, distance: Doubles) -> None:
    """Order the whole library for some of the rows asked for."""
    k = rows.shape[1]
    step = max(_CELLS // (len(library_rows) * states.shape[1] + 1), 1)
    for a in range(0, len(which), step):
        queries = which[a : a + step]
        far = np.sqrt(((asked[queries][:, None] - states[library_rows]) ** 2).sum(axis=2))
        far[~(far > 0)] = np.inf
        order = nearest_first(far, k)
        rows[queries, : order.shape[1]] = library_rows[order]
        distance[queries] = np.inf
        distance[queries, : order.shape[1]] = np.take_along_axis(far, order, 1)
