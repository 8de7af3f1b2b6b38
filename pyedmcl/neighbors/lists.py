"""Lists of neighbours that a search of one library leaves on the device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ..device.executor import Buffer, Executor


@dataclass(frozen=True)
class NeighborLists:
    """Neighbours of all query rows among one library, valid until the next search.

    Attributes
    ----------
    rows, values : Buffer
        int32 rows and squared distances, (n_query, k), the nearest first; -1 and 3e38 where there is none.
    n_query, k : int
    dtype : str
    visited : float
        Share of all pairs of query and library states whose distance was computed.
    """

    rows: Buffer
    values: Buffer
    n_query: int
    k: int
    dtype: str
    visited: float

    def read(self, executor: Executor) -> tuple[NDArray[np.int32], NDArray[Any]]:
        """Rows and squared distances (n_query, k) as host arrays."""
        shape = (self.n_query, self.k)
        rows = executor.download(self.rows, np.empty(shape, np.int32))
        return rows, executor.download(self.values, np.empty(shape, self.dtype))
