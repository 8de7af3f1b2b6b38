"""Rows of tables from rows that an index proposes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..codegen.build import build
from ..codegen.sentinels import NOWHERE
from ..kernels import spec
from ..launch.pool import Pool
from ..launch.sizes import open_size
from .series import LibraryStates
from .tables import Tables

if TYPE_CHECKING:
    from ..device.executor import Executor


class CandidateKernel:
    """The kernel that writes the nearest of candidates into the table of one library and dimension.

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
        specialisation = {"dtype": problem.dtype, "emit": tables.knn_pass.emit}
        rows, queries = np.ascontiguousarray(rows, np.int32), np.ascontiguousarray(queries)
        bounds = np.minimum(limit, NOWHERE).astype(problem.dtype)
        is_open = get("open", n)
        library, query = states.library_on_device, states.query_on_device
        executor.launch(
            build(executor, spec("candidates"), specialisation), open_size(n), None, library=library.buffer,
            library_first=library.first, query=query.buffer, query_first=query.first, tau=problem.tau, E=states.E,
            begin=0, n=n, m=m, exclusion_radius=min(problem.exclusion_radius, problem.n_library),
            rows=executor.upload(rows, get("candidates", rows.nbytes)),
            squared=get("squared", n * m * problem.itemsize),
            limit=executor.upload(bounds, get("limit", bounds.nbytes)), open=is_open,
            query_rows=executor.upload(queries, get("queries", queries.nbytes)), k=states.k,
            **tables.arguments_of(place, states.E),
        )  # fmt: skip
        return executor.download(is_open, np.empty(n, np.uint8)).astype(bool)
