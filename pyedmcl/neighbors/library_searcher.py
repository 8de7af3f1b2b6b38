"""What searches of one library in one dimension have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..codegen.build import build
from ..kernels import spec
from ..launch.sizes import open_size
from .recall import Measured

if TYPE_CHECKING:
    from ..device.executor import Buffer, Executor
    from .series import LibraryStates
    from .tables import Tables


class LibrarySearcher(Protocol):
    """Finds the neighbours of the queries of one library, in one dimension.

    Attributes
    ----------
    states : LibraryStates
    """

    states: LibraryStates

    def fill(self, tables: Tables, place: int) -> SearchOutcome:
        """Write the table of the library; ``place`` counts those of ``tables``.

        Raises
        ------
        NotSearchedError
            The table has to be filled by another search.
        DeviceMemoryError
            The search does not fit on the device.
        """

    def release(self) -> None:
        """Give the device memory back."""


@dataclass(frozen=True)
class SearchOutcome:
    """How a search went.

    Attributes
    ----------
    remark : str
        What to add to the reason why it was taken.
    measured : Measured or None
        Recall of an approximate search.
    """

    remark: str = ""
    measured: Measured | None = None


class NotSearchedError(Exception):
    """A search cannot serve after all: the message says why, if there is something to say."""

    def __init__(self, why: str = "", measured: Measured | None = None) -> None:
        super().__init__(why)
        self.measured = measured


@dataclass(frozen=True)
class NeighborLists:
    """Neighbours of all query rows among one library on the device, valid until the next search.

    Attributes
    ----------
    rows, values : Buffer
        int32 rows and squared distances, (n_query, k), the nearest first; -1 and NOWHERE where there is none.
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

    def tabulate(self, executor: Executor, tables: Tables, place: int, E: int) -> None:
        """Write the lists into the table of a library; they are used up.

        Their distances have the bits of the exhaustive search already. Only the layout of a table is another, and
        tables of weights hold exponentials of the distances.
        """
        specialisation = {"dtype": self.dtype, "emit": tables.knn_pass.emit}
        executor.launch(
            build(executor, spec("candidates"), specialisation, "tabulate"), open_size(self.n_query), None,
            rows=self.rows, squared=self.values, n=self.n_query, k=self.k, **tables.arguments_of(place, E),
        )  # fmt: skip
