"""The search that compares all pairs of states, for many libraries and several dimensions at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.build import build
from ..errors import DeviceMemoryError
from ..kernels import spec
from ..launch.pacing import Pacer
from ..launch.progress import report_part
from .plan import KnnPass, SearchProblem
from .series import SearchSeries, load_layouts, load_staged
from .tables import Tables, TableSpace

if TYPE_CHECKING:
    from ..device.executor import Executor
    from ..launch.staging import Staging


class ExhaustiveSearcher:
    """All nearest neighbours by the kernel ``knn``; buffers and kernels are used again from call to call.

    Parameters
    ----------
    executor : Executor
    problem : SearchProblem
    emit : str
        "neighbours" or "weights".
    **options
        Of :class:`~pyedmcl.neighbors.tables.TableSpace`.

    Attributes
    ----------
    space : TableSpace
    decisions : list of dict
        Records of searches, where another one than this was considered.
    """

    def __init__(self, executor: Executor, problem: SearchProblem, emit: str, **options: Any) -> None:
        self.executor, self.problem = executor, problem
        self.space = TableSpace(executor, problem, emit, **options)
        self.decisions: list[dict[str, Any]] = []
        self._pacers = {
            dims: Pacer(executor.info, "knn", dims, problem.dtype)
            for dims in (knn_pass.problem.dims for knn_pass in self.space.passes)
        }

    @property
    def parameters(self) -> dict[str, Any]:
        """Tuned parameters of the last pass."""
        return self.space.parameters

    @property
    def grade(self) -> str:
        return self.space.grade

    def sure_passes(self, n_libraries: int) -> list[tuple[KnnPass, int]]:
        """All passes."""
        at_once = [self.space.at_once(knn_pass, n_libraries) for knn_pass in self.space.passes]
        return [(self._shared(knn_pass, n), n) for knn_pass, n in zip(self.space.passes, at_once, strict=True)]

    def load(self, data: Staging, a: int, b: int, query: Staging | None = None) -> SearchSeries:
        """Put series a to b of ``data`` on the device, with their queries where these are other series."""
        return load_staged(self.problem, self.space.pool, data, a, b, query)

    def load_layouts(self, library: NDArray[Any], query: NDArray[Any]) -> SearchSeries:
        """Upload series that are in the layout of the search already; the same object where both are alike."""
        return load_layouts(self.executor, self.problem, self.space.pool, library, query)

    def tables(self, series: SearchSeries, library_mask: NDArray[np.bool_] | None = None) -> Iterator[Tables]:
        """Tables of each pass in turn.

        Parameters
        ----------
        series : SearchSeries
            From :meth:`load` or :meth:`load_layouts`.
        library_mask : ndarray of bool (n_library,), optional
            Rows of every library that may be neighbours; not to be written to afterwards.

        Raises
        ------
        DeviceMemoryError
            A table or the scratch memory does not fit; the message holds the numbers.
        """
        return self.space.tables(series.n, lambda tables: self.fill(tables, series, library_mask))

    def fill(
        self, tables: Tables, series: SearchSeries, library_mask: NDArray[np.bool_] | None, part: range | None = None
    ) -> None:
        """Write the neighbours in all dimensions of some tables, of all their libraries or those of a ``part``."""
        executor, problem = self.executor, tables.problem
        part = range(tables.n_libraries) if part is None else part
        knn_pass = self._shared(tables.knn_pass, len(part))
        kernel = build(executor, spec("knn"), knn_pass.values(library_mask is not None))
        penalty = series.library if library_mask is None else self.space.penalty(library_mask)
        tiles, cost = knn_pass.tiles * len(part), knn_pass.tile_cost()
        wg, pacer = int(knn_pass.parameters["wg"]), self._pacers[problem.dims]
        # Never fewer groups than the device takes at once: side by side they take no longer than one.
        groups = self._groups(knn_pass, tiles)
        scratch = self.space.pool.get("scratch", groups * knn_pass.scratch_bytes)
        # The padding in front is that of the whole search, so that one upload serves every pass.
        fixed: dict[str, Any] = {
            "library": series.library, "query": series.query, "penalty_of": penalty,
            "library_stride": series.strides[0], "query_stride": series.strides[1], "front": series.problem.front,
            "n_rows": problem.n_query, "j_begin": problem.library_begin, "j_end": problem.library_end,
            "groups_per_tile": knn_pass.groups_per_tile, "groups_per_round": knn_pass.groups_per_round,
            "exclusion_radius": min(problem.exclusion_radius, problem.n_library), "n_tiles": knn_pass.tiles,
            "first_library": tables.first, "out_row": tables.rows, "out_value": tables.values,
            "table_rows": knn_pass.table_rows, "rows_per_slot": knn_pass.table_rows * tables.n_libraries,
            "scratch": scratch,
        }  # fmt: skip
        first, begin = knn_pass.tiles * part.start, 0
        while begin < tiles:
            end = min(begin + max(pacer.units(cost), groups), tiles)
            event = executor.launch(
                kernel, (groups * wg,), (wg,), task_begin=first + begin, task_end=first + end, **fixed
            )  # fmt: skip
            pacer.launched(event, cost * (end - begin))
            report_part(end, tiles, problem.n_query * len(part), begin)
            begin = end

    def _shared(self, knn_pass: KnnPass, n_libraries: int) -> KnnPass:
        """The pass as a launch for ``n_libraries`` libraries has it: work-items share rows where these are few."""
        return knn_pass.shared(n_libraries, self.executor.info.compute_units)

    def _groups(self, knn_pass: KnnPass, tiles: int) -> int:
        """Work-groups of a launch, each with scratch memory of its own."""
        enough = self.executor.info.compute_units * int(knn_pass.parameters["groups_per_unit"])
        fit = self.space.scratch_limit // knn_pass.scratch_bytes
        if fit < 1:
            problem = knn_pass.problem
            raise DeviceMemoryError(
                f"a work-group of the neighbour search needs {knn_pass.scratch_bytes:,} bytes of scratch memory for "
                f"E = {problem.dims} and k = {problem.ks}; {self.space.scratch_limit:,} may be used on "
                f"{self.executor.info.name}. Ask for fewer neighbours or raise PYEDMCL_MEMORY_LIMIT."
            )
        most = max(min(enough, fit, tiles), 1)
        return -(-tiles // -(-tiles // most))  # even shares

    def spare(self) -> None:
        """Give back what tables do not need; here nothing."""

    def release(self) -> None:
        """Give all device memory of this search back."""
        self.space.release()
