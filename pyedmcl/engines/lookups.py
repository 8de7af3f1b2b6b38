"""Launches of the lookup: tables of a search against columns of targets, both on the device."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.build import build, build_ahead, build_meanwhile
from ..codegen.spec import KernelSpec
from ..device.quirks import quirks_for
from ..kernels import spec
from ..kernels.lookup import TOP_BYTE
from ..launch.pacing import Pacer
from ..launch.pool import Pool
from ..launch.sizes import open_size
from ..neighbors.plan import KnnPass, SearchProblem
from ..neighbors.tables import Tables
from ..tuning.parameters import ParameterChoice
from .lookup import LookupShape, LookupShapes
from .lookup_request import LookupRequest, Piece, PlannedLookup, RhoRows

if TYPE_CHECKING:
    from ..device.executor import Buffer, Executor, Kernel

_NARROW_MOST = 1 << 16  # steps whose numbers have 16 bits
_NARROW_LEAST = 4, 32  # neighbours, and targets of a class, that repay it
_GROUPS_MOST = 1 << 20  # of a launch over marked pairs


class Lookups:
    """Launches the lookups of one job.

    Parameters
    ----------
    executor : Executor
    n_steps : int
    dtype : str
    n_libraries : int
        Of the whole job.
    pool : Pool, optional
        Device memory for tables that are made narrower where that pays; tables are then looked up one after the other.
    """

    def __init__(
        self, executor: Executor, n_steps: int, dtype: str, n_libraries: int, pool: Pool | None = None
    ) -> None:
        self._executor, self._n_steps, self._dtype = executor, n_steps, dtype
        narrow = quirks_for(executor.info).narrow_tables and n_steps <= _NARROW_MOST
        self._pool = pool if narrow else None
        self._narrowed: Tables | None = None  # whose rows are in the pool
        self._hidden: tuple[NDArray[np.int32], Buffer] | None = None
        self._shapes = LookupShapes(executor.info, n_steps, dtype, n_libraries)
        self._pacers: dict[tuple[str, int], Pacer] = {}  # by work and neighbours
        self._kernels: dict[tuple[Any, ...], Kernel] = {}  # by all their values
        self._compiled: set[tuple[int, ...]] = set()  # dimensions of tables whose kernels were compiled ahead

    def _pacer(self, k: int, work: str = "lookup") -> Pacer:
        if (work, k) not in self._pacers:
            self._pacers[work, k] = Pacer(self._executor.info, work, k, self._dtype)
        return self._pacers[work, k]

    def chosen(self, k: int, width: int) -> ParameterChoice:
        """Tuned parameters for ``width`` targets with ``k`` neighbours."""
        return self._shapes.chosen(k, width)

    def run(self, tables: Tables, request: LookupRequest, columns: tuple[int, int], into: RhoRows) -> None:
        """Write rho of all libraries of some tables against some targets.

        Parameters
        ----------
        tables : Tables
        request : LookupRequest
        columns : (int, int)
            The first of the targets, and one past the last.
        into : RhoRows
        """
        self.run_each(tables, request, [(columns, (0, tables.n_libraries))], into)

    def run_each(self, tables: Tables, request: LookupRequest, pieces: Sequence[Piece], into: RhoRows) -> None:
        """Write rho of several pieces, each of some of the tables' libraries against some targets.

        Those of targets in 16 bits are to be of all libraries of the tables, for which repeats are counted. What
        follows from the size of a piece is found once for all that are alike: of many small pieces the host's part
        would else take longer than the device's.
        """
        E, targets, (t_begin, t_end), k = request.E, request.targets, request.predicted, tables.problem.k(request.E)
        pacer = self._pacer(k)
        table_begin, table_step = tables.begin(E), tables.begin(E, 1) - tables.begin(E)
        plans: dict[tuple[int, int], tuple[LookupShape, dict[str, Any], Kernel, dict[str, Any]]] = {}
        for (begin, end), (first, last) in pieces:
            n, width = last - first, end - begin
            predictions = float(max(t_end - t_begin, 1) * n)
            if (width, n) not in plans:
                shape, values = self._planned(
                    tables.knn_pass, E, width, n, predictions, gaps=request.gaps, compact=request.compact
                )
                fixed = self._fixed(tables, request, into, values) | {"n_libraries": n}
                if values["k"] == 0:
                    fixed["any_k"] = k
                plans[width, n] = shape, values, self._kernel("lookup", values), fixed
            shape, values, kernel, fixed = plans[width, n]
            table = table_begin + first * table_step
            of_piece = {**fixed, "column_end": end, "first_library": into.row + first, "table_begin": table}
            special: dict[str, Any] = {}
            if request.compact:
                assert targets.codes is not None
                assert n == tables.n_libraries, "repeats are counted for all libraries of the tables"
                repeats = targets.codes.made_by.repeats(tables, E, request.predicted)
                special = {"targets": targets.codes.values, "centres": targets.codes.centres, "top_byte": TOP_BYTE}
            blocks = -(-width // shape.columns)
            if blocks > shape.blocks:  # the next one alike may be launched in fewer parts, once the rate is known
                del plans[width, n]
            # A launch takes whole column tiles: the groups of one share it, so it stays in cache.
            for block in range(0, blocks, shape.blocks):
                n_blocks = min(shape.blocks, blocks - block)
                event = self._executor.launch(
                    kernel, (n_blocks * shape.slices * shape.group,), (shape.group,), n_slices=shape.slices,
                    column_begin=begin + block * shape.columns, **{**of_piece, **special},
                )  # fmt: skip
                pacer.launched(event, shape.cost * predictions * n_blocks)
                if targets.codes is not None and request.compact:
                    first_column = begin + block * shape.columns
                    of_launch = first_column, min(first_column + n_blocks * shape.columns, end)
                    targets.codes.made_by.mark(
                        repeats, of_launch, targets.target_of, (into.row + first, n), into.stride, into.buffer
                    )
                    self._again(values, of_piece, *of_launch)

    def _fixed(
        self, tables: Tables, request: LookupRequest, into: RhoRows, values: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Arguments that all pieces of some tables share."""
        targets, (t_begin, t_end) = request.targets, request.predicted
        return {
            "targets": targets.values, "weights": tables.values, "target_of": targets.target_of, "rho": into.buffer,
            "rows": self._narrow_rows(tables, values) if values["narrow_rows"] else tables.rows,
            "target_stride": targets.stride, "n_rows": self._n_steps, "t_begin": t_begin, "t_end": t_end,
            "Tp": tables.problem.Tp, "rho_stride": into.stride, "table_rows": tables.knn_pass.table_rows,
        }  # fmt: skip

    def run_marked(self, tables: Tables, request: LookupRequest, width: int, into: RhoRows, *, marked: int) -> None:
        """Write rho of all libraries of some tables against the first targets, where it is MARKED, and nowhere else.

        Many small pieces leave most of a device idle, each for a launch; one launch over all of them does not. There
        must be no gaps.

        Parameters
        ----------
        tables, request, into
            As for :meth:`run`.
        width : int
            How many targets.
        marked : int
            How many pairs are marked, roughly.
        """
        k, n, (t_begin, t_end) = tables.problem.k(request.E), tables.n_libraries, request.predicted
        full = {
            "k": k, "dtype": self._dtype, "gaps": False, "table_tile": tables.knn_pass.table_tile, "narrow_rows": False,
        }  # fmt: skip
        shape, values = self._planned_again(full, width, n)
        kernel, pacer = self._kernel("lookup", values), self._pacer(k, "lookup of marked pairs")
        fixed = self._fixed(tables, request, into, values)
        cost = 2.0 * (k + 5) * max(t_end - t_begin, 1) * max(marked, 1) / shape.blocks
        # Few pairs are marked: a group has one library, or nothing to do.
        slices = min(n, _GROUPS_MOST // shape.blocks + 1)
        block = 0
        while block < shape.blocks:
            n_blocks = min(pacer.units(cost), shape.blocks - block)
            event = self._executor.launch(
                kernel, (n_blocks * slices * shape.group,), (shape.group,), **fixed, n_libraries=n,
                first_library=into.row, table_begin=tables.begin(request.E), column_begin=block * shape.columns,
                column_end=width, n_slices=slices,
            )  # fmt: skip
            pacer.launched(event, cost * n_blocks)
            block += n_blocks

    def _planned(
        self, knn_pass: KnnPass, E: int, width: int, n_libraries: int, predictions: float, *, gaps: bool, compact: bool
    ) -> tuple[LookupShape, dict[str, Any]]:
        """The launch of ``width`` targets, and the values of its kernel.

        Until a kernel for this number of neighbours is compiled, the one for any number gives the same bits.
        """
        problem = knn_pass.problem
        any_k = len(problem.dims) > 1 and not compact and self._shapes.takes_any_k(problem.k(E), width)
        plan = functools.partial(self._planned_as, knn_pass, E, width, n_libraries, predictions, gaps=gaps)
        shape, values = plan(any_k=any_k, compact=compact)
        if not any_k and self._compiled_meanwhile(problem, width, values):
            # Parameters are tuned by the number of neighbours: with those of one number, one text serves all until
            # theirs are compiled.
            shape, values = plan(any_k=True, compact=False, like=max(problem.ks))
            values["unroll"] = 1
        return shape, values

    def _planned_as(
        self, knn_pass: KnnPass, E: int, width: int, n_libraries: int, predictions: float, *, gaps: bool, any_k: bool,
        compact: bool, like: int | None = None,
    ) -> tuple[LookupShape, dict[str, Any]]:  # fmt: skip
        """The launch of ``width`` targets with a kernel for any number of neighbours or for theirs.

        It takes the parameters of ``like`` neighbours, where that is given.
        """
        k = knn_pass.problem.k(E)
        pacer = self._pacer(k)
        units = lambda cost: pacer.units(cost * predictions)  # noqa: E731
        shape = self._shapes.shape(k, width, n_libraries, units, compact=compact, any_k=any_k, like=like)
        # All dimensions that share a kernel read the same rows.
        most = max(knn_pass.problem.ks) if any_k else k
        narrow = self._pool is not None and most >= _NARROW_LEAST[0] and width >= _NARROW_LEAST[1]
        return shape, {
            **shape.parameters, "k": 0 if any_k else k, "dtype": self._dtype, "gaps": gaps,
            "stage_rows": shape.stage_rows, "table_tile": knn_pass.table_tile, "narrow_rows": narrow,
            "precision": "compact" if compact else "full", "local_sums": 0 if gaps else shape.local_sums,
        }  # fmt: skip

    def _compiled_meanwhile(self, problem: SearchProblem, width: int, values: dict[str, Any]) -> bool:
        """Whether a kernel for this number of neighbours is left to the background, and one for any does its work."""
        alike = len(set(problem.ks)) == 1
        if alike or values["precision"] != "full" or self._shapes.chosen(values["k"], width).grade == "forced":
            return False
        return not build_meanwhile(self._executor, spec("lookup"), values)

    def compile_ahead(self, tables: Tables, lookups: Iterable[PlannedLookup]) -> None:
        """Compile what lookups of these tables will ask for, several kernels at once where that saves time.

        Parameters
        ----------
        tables : Tables
        lookups : iterable of (E, targets, (begin, end), gaps, compact)
            The dimension, how many targets, and the rest as in :meth:`run`.
        """
        if tables.problem.dims not in self._compiled:
            build_ahead(self._executor, self.kernels_for(tables.knn_pass, tables.n_libraries, lookups))

    def kernels_for(
        self, knn_pass: KnnPass, n_libraries: int, lookups: Iterable[PlannedLookup]
    ) -> Iterator[tuple[KernelSpec, dict[str, Any]]]:
        """The kernels, with their values, that lookups of tables of a pass will ask for; see :meth:`compile_ahead`."""
        self._compiled.add(knn_pass.problem.dims)
        for E, width, (begin, end), gaps, compact in lookups:
            predictions = float(max(end - begin, 1) * n_libraries)
            values = self._planned(knn_pass, E, width, n_libraries, predictions, gaps=gaps, compact=compact)[1]
            yield spec("lookup"), values
            if compact:
                yield spec("lookup"), self._planned_again(values, width, n_libraries)[1]

    def _again(self, values: Mapping[str, Any], fixed: Mapping[str, Any], begin: int, end: int) -> None:
        """Compute the pairs that a launch with targets of 16 bits has marked, mostly none, from those of 32."""
        shape, values_again = self._planned_again(values, end - begin, fixed["n_libraries"])
        kernel = self._kernel("lookup", values_again)
        self._executor.launch(
            kernel, (shape.blocks * shape.slices * shape.group,), (shape.group,),
            **{**fixed, "column_begin": begin, "column_end": end, "n_slices": shape.slices},
        )  # fmt: skip

    def _planned_again(
        self, values: Mapping[str, Any], width: int, n_libraries: int
    ) -> tuple[LookupShape, dict[str, Any]]:
        """The launch that follows one of these values, for ``width`` targets, and the values of its kernel."""
        shape = self._shapes.again(width, n_libraries)
        return shape, {**values, **shape.parameters, "stage_rows": 0, "local_sums": 0, "precision": "again"}

    def hide(self, tables: Tables, rows: NDArray[np.int32]) -> None:
        """Have some query rows of tables of weights predict nothing, in all dimensions and libraries."""
        kernel = build(self._executor, spec("stage"), {"dtype": self._dtype}, "hide_rows")
        if self._hidden is None or self._hidden[0] is not rows:
            self._release_hidden()
            self._hidden = rows, self._executor.upload(rows)
        for E in tables.problem.dims:
            self._executor.launch(
                kernel, open_size(len(rows), tables.n_libraries), None, rows=self._hidden[1], n_rows=len(rows),
                table_begin=tables.begin(E), table_rows=tables.knn_pass.table_rows, stride=tables.knn_pass.stride(E),
                tile=tables.knn_pass.table_tile, weights=tables.values,
            )  # fmt: skip

    def _release_hidden(self) -> None:
        if self._hidden is not None:
            self._hidden[1].release()
            self._hidden = None

    def release(self) -> None:
        """Give the device memory of hidden rows back."""
        self._release_hidden()

    def _kernel(self, entry: str, values: Mapping[str, Any]) -> Kernel:
        name = entry, *values.values()
        if name not in self._kernels:
            self._kernels[name] = build(self._executor, spec("lookup"), values, entry)
        return self._kernels[name]

    def _narrow_rows(self, tables: Tables, values: Mapping[str, Any]) -> Buffer:
        """The rows of all dimensions of the tables in 16 bits."""
        assert self._pool is not None
        n = tables.rows.nbytes // 4
        narrow = self._pool.get("narrow rows", 2 * n)
        if self._narrowed is not tables:
            kernel = self._kernel("lookup_narrow", values)
            self._executor.launch(kernel, open_size(n), None, rows=tables.rows, narrow=narrow, n=n)
            self._narrowed = tables
        return narrow
