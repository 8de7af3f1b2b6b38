"""Rows of tables from what a search of one library proposes or has found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.build import build
from ..codegen.sentinels import NOWHERE
from ..kernels import spec
from ..launch.pool import Pool
from ..launch.sizes import round_up
from .lists import NeighborLists
from .series import LibraryStates
from .tables import Tables

if TYPE_CHECKING:
    from ..device.executor import Executor


class CandidateKernels:
    """The kernels that write the table of one library and dimension.

    Parameters
    ----------
    executor : Executor
    pool : Pool
    """

    def __init__(self, executor: Executor, pool: Pool) -> None:
        self.executor, self._pool = executor, pool

    def keep_nearest(
        self, tables: Tables, place: int, states: LibraryStates, queries: NDArray[np.int32], rows: NDArray[np.int32],
        limit: NDArray[np.float64],
    ) -> NDArray[np.bool_]:  # fmt: skip
        """Compute the distances of candidates, as the exhaustive search does, and write the k nearest.

        Parameters
        ----------
        tables : Tables
        place : int
            Which of their libraries.
        states : LibraryStates
        queries : ndarray (n,)
            Query rows.
        rows : ndarray (n, m)
            Candidates of each, -1 for none, in any order.
        limit : ndarray (n,)
            The squared distance that rows which are no candidates have at least; inf where all rows are candidates.

        Returns
        -------
        ndarray of bool (n,)
            Which queries are open: a row that is no candidate could be nearer than the last neighbour.
        """
        executor, get, problem = self.executor, self._pool.get, states.problem
        n, m = rows.shape
        rows, queries = np.ascontiguousarray(rows, np.int32), np.ascontiguousarray(queries)
        bounds = np.minimum(limit, NOWHERE).astype(problem.dtype)
        is_open = get("open", n)
        library, query = states.library_on_device, states.query_on_device
        executor.launch(
            self._kernel("candidates", tables), (round_up(n, 64),), None, library=library.buffer,
            library_first=library.first, query=query.buffer, query_first=query.first, tau=problem.tau, E=states.E,
            begin=0, n=n, m=m, exclusion_radius=min(problem.exclusion_radius, problem.n_library),
            rows=executor.upload(rows, get("candidates", rows.nbytes)),
            squared=get("squared", n * m * problem.itemsize),
            limit=executor.upload(bounds, get("limit", bounds.nbytes)), open=is_open,
            which=executor.upload(queries, get("queries", queries.nbytes)), k=states.k,
            **self._place(tables, place, states.E),
        )  # fmt: skip
        return executor.download(is_open, np.empty(n, np.uint8)).astype(bool)

    def tabulate(self, tables: Tables, place: int, E: int, lists: NeighborLists) -> None:
        """Write lists of neighbours, whose distances have the bits of the exhaustive search already; they are used up.

        Only the layout differs, and tables of weights hold an exponential of the distances.
        """
        self.executor.launch(
            self._kernel("tabulate", tables), (round_up(lists.n_query, 64),), None, rows=lists.rows,
            squared=lists.values, n=lists.n_query, k=lists.k, **self._place(tables, place, E),
        )  # fmt: skip

    def _kernel(self, entry: str, tables: Tables) -> Any:
        specialisation = {"dtype": tables.problem.dtype, "emit": tables.knn_pass.emit}
        return build(self.executor, spec("candidates"), specialisation, entry)

    def _place(self, tables: Tables, place: int, E: int) -> dict[str, Any]:
        """Where the table is, and in which layout."""
        knn_pass = tables.knn_pass
        return {
            "stride": knn_pass.stride(E), "tile": knn_pass.table_tile, "spare": tables.problem.library_begin,
            "table": tables.begin_of(place, E), "out_row": tables.rows, "out_value": tables.values,
        }  # fmt: skip
