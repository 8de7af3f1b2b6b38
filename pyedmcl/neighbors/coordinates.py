"""States with any coordinates in the layouts of the neighbour search, which reads a row's e-th one e lags before.

Delay coordinates of one series are read where they are. Other coordinates (several series, or given ones) are laid one
behind another, a "lag" apart that is longer than the series: the same kernels then search them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.sentinels import GAP
from ..launch.sizes import round_up
from .plan import Search


@dataclass(frozen=True)
class CoordinateSearch(Search):
    """A search whose rows all have their coordinates: none is lost to lags."""

    @property
    def library_begin(self) -> int:
        return max(-self.Tp, 0)

    def restrict(self, dims: Any) -> Search:
        if tuple(dims) != self.dims:
            raise ValueError(f"a search among coordinates has one dimension, {self.dims}; asked for {tuple(dims)}")
        return self


def coordinate_search(
    n_coordinates: int, k: int, Tp: int, exclusion_radius: int, n_library: int, n_query: int, dtype: str
) -> CoordinateSearch:
    """Search for the k nearest among rows of ``n_coordinates`` given coordinates; see :class:`Search` for the rest."""
    lag = round_up(max(n_library, n_query) + 64, 256)  # one compiled kernel serves lengths that differ little
    return CoordinateSearch((n_coordinates,), (k,), lag, Tp, exclusion_radius, n_library, n_query, dtype)


def lay_out(series: NDArray[Any], search: Search, n_steps: int, end: int) -> NDArray[Any]:
    """Series in the layout of a search of their delay coordinates: (n_series, stride).

    Parameters
    ----------
    series : ndarray (n_steps, n_series), conditioned, NaN for gaps
    search : Search
    n_steps : int
        That the search knows for them, as library or as query.
    end : int
        Rows from here on are left out.
    """
    out = np.full((series.shape[1], search.stride(n_steps)), GAP, search.dtype)
    out[:, search.front : search.front + end] = series[:end].T
    out[np.isnan(out)] = GAP
    return out


def lay_out_states(states: NDArray[Any], search: CoordinateSearch, n_steps: int, end: int) -> NDArray[Any]:
    """States (n_steps, n_coordinates) in the layout of a search among coordinates: (1, stride)."""
    out = np.full((1, search.stride(n_steps)), GAP, search.dtype)
    for e in range(states.shape[1]):
        begin = search.front - e * search.tau
        out[0, begin : begin + end] = states[:end, e]
    out[np.isnan(out)] = GAP
    return out


def delay_search(
    E: int, tau: int, k: int, Tp: int, exclusion_radius: int, n_library: int, n_query: int, dtype: str
) -> Search:
    """Search for the k nearest among delay embeddings of single series; see :class:`Search`."""
    return Search((E,), (k,), tau, Tp, exclusion_radius, n_library, n_query, dtype)


def first_row(search: Search) -> int:
    """First row that can have all its coordinates."""
    return 0 if isinstance(search, CoordinateSearch) else (max(search.dims) - 1) * search.tau
