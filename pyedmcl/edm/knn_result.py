"""What a neighbour search returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..io.result import Result


@dataclass(frozen=True, repr=False)
class KnnResult(Result):
    """Nearest neighbours of every row.

    Attributes
    ----------
    indices : ndarray of int32 (n_rows, k)
        Rows of the library, nearest first, ties by row; -1 where there is no legal neighbour.
    distances : ndarray (n_rows, k)
        Euclidean distances in the data's unit; inf where there is no legal neighbour. They are computed in ``dtype``
        and of that type, but of float64 where the range of the data is below 2**-100 or above 2**100.
    provenance : mapping
        Device, driver, kernel digest, parameters.
    """

    indices: NDArray[np.int32]
    distances: NDArray[np.floating]
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def plot(self, path: str | None = None) -> Any:
        """Distances of the nearest and the last neighbour over time; saved to ``path`` if given. Needs matplotlib."""
        from ..plot.states import neighbour_distances

        return neighbour_distances(self, path)
