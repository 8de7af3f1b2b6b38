"""What a neighbour search returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...io.fields import labelled
from ...io.labels import Label
from ...io.on_device import OnDevice
from ...io.optional import need
from ...io.result import Result


@dataclass(frozen=True, repr=False)
class KnnResult(Result):
    """Nearest neighbours of every row.

    Attributes
    ----------
    indices : ndarray of int32 (n_rows, k)
        Rows of the library, nearest first, ties by row; -1 where there is no neighbour.
    distances : ndarray (n_rows, k)
        Euclidean distances in the data's unit; inf where there is no neighbour. They are computed in ``dtype``
        and of that type, but of float64 where the range of the data is below 2**-100 or above 2**100.
        With ``out=`` both stand for the caller's arrays on the device (``indices.array``), which any use of them as
        NumPy's copies to the host.
    provenance : mapping
        Device, driver, kernel digest, parameters.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> result = pyedmcl.knn(network.values[:, 0], E=3)
    >>> result.indices[2].tolist()  # rows of the states nearest to that of row 2
    [315, 100, 56, 371]
    >>> result.distances[0].tolist()  # row 0 has no lags, hence no neighbours
    [inf, inf, inf, inf]
    """

    column_labels: ClassVar = {
        "indices": Label("1", "row of the library, -1 where there is none"),
        "distances": Label("data", "Euclidean distance, inf where there is no neighbour"),
        "neighbor": Label("1", "rank of the neighbour, the nearest first"),
    }  # fmt: skip

    indices: NDArray[np.int32] | OnDevice
    distances: NDArray[np.floating] | OnDevice
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def to_xarray(self) -> Any:
        """An xarray.Dataset of indices and distances (row, neighbor)."""
        rows, k = self.indices.shape
        axes = [("row", np.arange(rows)), ("neighbor", np.arange(k))]
        parts = {name: labelled(getattr(self, name), axes, name) for name in ("indices", "distances")}
        return need("xarray", "to_xarray()").Dataset(parts)

    def plot(self, path: str | None = None) -> Any:
        """Distances of the nearest and the last neighbour over time; saved to ``path`` if given. Needs matplotlib."""
        from ...plot.states import neighbour_distances

        return neighbour_distances(self, path)
