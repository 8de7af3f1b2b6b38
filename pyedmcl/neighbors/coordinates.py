"""States with any coordinates in the layouts of the neighbour search, which reads a row's e-th one e lags before.

Delay coordinates of one series are read where they are. Other coordinates (those of several series, or ones that a user
brings) are laid one behind another, a "lag" apart that is longer than the series: the same kernels then search them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.sentinels import GAP
from ..launch.sizes import round_up
from .plan import SearchProblem


def coordinate_problem(
    n_coordinates: int, k: int, Tp: int, exclusion_radius: int, n_library: int, n_query: int, dtype: str
) -> SearchProblem:
    """Search for the k nearest among rows of ``n_coordinates``; see :class:`SearchProblem` for the other parameters."""
    lag = round_up(max(n_library, n_query) + 64, 256)  # one compiled kernel serves lengths that differ little
    return SearchProblem(
        (n_coordinates,), (k,), lag, Tp, exclusion_radius, n_library, n_query, dtype, coordinates=True
    )  # fmt: skip


def delay_problem(
    E: int, tau: int, k: int, Tp: int, exclusion_radius: int, n_library: int, n_query: int, dtype: str
) -> SearchProblem:
    """Search for the k nearest among delay embeddings of single series; see :class:`SearchProblem`."""
    return SearchProblem((E,), (k,), tau, Tp, exclusion_radius, n_library, n_query, dtype)


def lay_out(series: NDArray[Any], problem: SearchProblem, n_steps: int, end: int) -> NDArray[Any]:
    """Series in the layout of a search of their delay coordinates: (n_series, stride).

    Parameters
    ----------
    series : ndarray (n_steps, n_series), conditioned, NaN for gaps
    problem : SearchProblem
    n_steps : int
        Rows that the problem counts for them, as library or as query.
    end : int
        Rows from here on are left out.
    """
    out = np.full((series.shape[1], problem.stride(n_steps)), GAP, problem.dtype)
    out[:, problem.front : problem.front + end] = series[:end].T
    out[np.isnan(out)] = GAP
    return out


def lay_out_in_itself(series: NDArray[Any], problem: SearchProblem) -> tuple[NDArray[Any], NDArray[Any]]:
    """Series (n_steps, n_series) in the layouts of a library and of a query; one object where both are alike."""
    n = problem.n_query
    query = lay_out(series, problem, n, n)
    if problem.library_end == n:
        return query, query
    library = query.copy()
    library[:, problem.front + problem.library_end : problem.front + n] = GAP
    return library, query


def lay_out_states(states: NDArray[Any], problem: SearchProblem, n_steps: int, end: int) -> NDArray[Any]:
    """States (n_steps, n_coordinates) in the layout of a search among coordinates: (1, stride)."""
    out = np.full((1, problem.stride(n_steps)), GAP, problem.dtype)
    for e in range(states.shape[1]):
        begin = problem.front - e * problem.tau
        out[0, begin : begin + end] = states[:end, e]
    out[np.isnan(out)] = GAP
    return out
