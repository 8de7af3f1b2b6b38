"""How much work a call is, roughly: long ones repay tuning."""

from __future__ import annotations

from collections.abc import Sequence


def operations(
    dims: Sequence[int], *, n_library: int, n_query: int, n_series: int = 1, n_targets: int = 0
) -> float:
    """Arithmetic operations of a search and of what is predicted from it, roughly.

    Parameters
    ----------
    dims : sequence of int
        Embedding dimensions.
    n_library, n_query : int
        Rows of the library and of the query.
    n_series : int
        Libraries.
    n_targets : int
        Targets that are predicted from each library.
    """
    pairs = float(n_library) * n_query * n_series
    # The same count as the pacing of launches: two sweeps of 2 E and a few operations per dimension for each pair.
    search = pairs * (4 * max(dims) + 4 * len(set(dims)) + 2)
    lookup = 2.0 * n_query * n_series * n_targets * (max(dims) + 5)
    return search + lookup
