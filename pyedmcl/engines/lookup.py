"""The lookup: tables of a search against columns of targets, both on the device."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import isqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..device.info import DeviceInfo
from ..device.quirks import quirks_for
from ..kernels import spec
from ..kernels.build import build, build_ahead, build_meanwhile
from ..kernels.kernel_spec import KernelSpec
from ..kernels.specs.maps import STRANDS, TOP_BYTE
from ..launch.staging import Pacer, Pool, open_size, round_up
from ..search.plan import KnnPass, SearchProblem
from ..search.tables import Tables
from ..tuning.parameters import ParameterChoice, adjusted, parameters
from .targets import Codes

if TYPE_CHECKING:
    from ..device.executor import Buffer, Executor, Kernel


# What a lookup is asked for: targets as they lie on the device, the rows that are predicted, and where rho goes.


#: A lookup to come: E, the number of targets, the rows that are predicted, whether there are gaps, and whether targets
#: have 16 bits.
PlannedLookup = tuple[int, int, tuple[int, int], bool, bool]
#: Targets that some libraries are to predict: the first column and one past the last, and the same of libraries.
Piece = tuple[tuple[int, int], tuple[int, int]]


@dataclass(frozen=True)
class TargetColumns:
    """Targets on the device, time-major, in the layout of the kernel."""

    # [step][stride], around 0 and of magnitudes near 1, GAP where there is no value.
    values: Buffer
    # Column of rho of each column.
    target_of: Buffer
    stride: int
    # The same targets in 16 bits.
    codes: Codes | None = None


@dataclass(frozen=True)
class LookupRequest:
    """What tables are looked up for."""

    E: int
    targets: TargetColumns
    # (int, int). The first row that is predicted, and one past the last.
    predicted: tuple[int, int]
    # Whether any prediction or observation may be missing.
    gaps: bool = False
    # Whether targets of 16 bits are looked up, where these are enough.
    compact: bool = False


@dataclass(frozen=True)
class RhoRows:
    """Where rho of some tables is written."""

    buffer: Buffer
    # row, stride: Row of the tables' first library; columns of rho.
    row: int
    stride: int


# Lookups of a staged value that repay its staging.
_REPAID = 16
_ROW_LANES_MOST = 128
# Bytes of a step's targets that fill all banks of local memory: reads of wider steps meet as often.
_BANKS_BYTES = 128
# Libraries of a map that keep groups busy that are as wide as local memory allows.
_MANY_LIBRARIES = 512
# Targets of 16 bits: their bytes, how many are 16 bytes, work-items of a group, and the most neighbours of which
# several rows are looked up at once.
_CODE_BYTES, _CODES_MOST, _CODES_GROUP, _UNROLLED_MOST = 2, 8, 512, 6
# Sums over the rows of a library that lie in local memory: of p, p p and p o.
_SUMS = 3
# Bytes of an entry of a narrow table.
_ENTRY_BYTES = 6
# Libraries that a group looks through for marked pairs, at least.
_LIBRARIES_AGAIN = 8
# Multiply-adds of a class of targets, at most, that the kernel for any number of neighbours looks up. On processors it
# takes up to 1.4 times as long, 0.1 ms here, where compiling one more kernel takes 100 ms. On an H200 it takes 1.05 to
# 1.3 times as long, 0.01 ms here, where one more kernel takes 200 to 300 ms once.
_FEW_OPERATIONS, _FEW_ON_GPUS = 1e7, 1e8
# What it costs to begin a group, in reads of a target for each row (a library takes k + 1 of them): to sum
# observations, and to fetch targets for local memory.
_OBSERVING, _STAGING = 1.0, 40.0


@dataclass(frozen=True)
class LookupShape:
    """The launch of one class of targets."""

    # Tuned parameters, with fewer libraries at once where there are few.
    parameters: Mapping[str, Any]
    # columns, group: Targets and work-items of a group.
    columns: int
    group: int
    # Blocks of columns of a launch.
    blocks: int
    # Operations of a block for each library and query row.
    cost: float
    # Groups that share a column tile: of n, group i has the libraries i, i + n, i + 2 n, ..
    slices: int
    # Steps that a group's local array has room for; 0: targets are read from the caches.
    stage_rows: int
    # What of the sums over rows waits in local memory between chunks: 0 nothing, 1 what rounding left over, 2 the sums
    # as well.
    local_sums: int = 0


class LookupShapes:
    """Shapes of the lookups of one job.

    Parameters
    ----------
    n_libraries : int
        Of the whole map.
    """

    def __init__(self, info: DeviceInfo, n_steps: int, dtype: str, n_libraries: int) -> None:
        self._info, self._n_steps, self._dtype, self._n_libraries = info, n_steps, dtype, n_libraries
        self._itemsize = np.dtype(dtype).itemsize
        quirks = quirks_for(info)
        self._local, self._groups = quirks.local_bytes, quirks.groups_at_once
        # One compiled kernel serves lengths that differ little.
        self._padded = round_up(n_steps, 256)
        # A job asks for few shapes, again and again.
        self._choices: dict[tuple[int, int], ParameterChoice] = {}
        self._narrowed: dict[tuple[int, int, bool], dict[str, Any]] = {}

    def chosen(self, k: int, width: int) -> ParameterChoice:
        """Tuned parameters for ``width`` targets with ``k`` neighbours."""
        if (k, width) not in self._choices:
            specialisation = {"dtype": self._dtype, "k": k, "columns": width}
            sizes = {"rows": self._n_steps, "targets": width}
            self._choices[k, width] = parameters(spec("lookup"), specialisation, self._info, sizes)
        return self._choices[k, width]

    def _fitted(self, k: int, width: int, *, compact: bool) -> dict[str, Any]:
        """The chosen parameters, with groups that are no wider than the targets and that use the whole device."""
        if (k, width, compact) in self._narrowed:
            return self._narrowed[k, width, compact]
        choice = self.chosen(k, width)
        chosen = self._narrowed[k, width, compact] = dict(choice.parameters)
        if compact:
            self._halved(chosen, k, width)
        else:
            self._widen(chosen, width)
        # What suits similar numbers of targets may be more than twice as wide as these are.
        for name in ("target_lanes", "vectors"):
            while chosen[name] > 1 and chosen["target_lanes"] * chosen["lanes"] * chosen["vectors"] // 2 >= width:
                chosen[name] //= 2
        every = -(-width // (chosen["target_lanes"] * chosen["lanes"] * chosen["vectors"]))
        # Few libraries are spread over all units: a group takes fewer at once, with more work-items for each. By the
        # number of the whole map, so that all of its blocks share one compiled kernel.
        n_units, n_all = self._info.compute_units, self._n_libraries
        while chosen["library_lanes"] > 1 and every * -(-n_all // chosen["library_lanes"]) < 3 * n_units // 4:
            chosen["library_lanes"] //= 2
            chosen["row_lanes"] = min(2 * chosen["row_lanes"], _ROW_LANES_MOST)
        why = "groups are as wide as local memory and the targets allow, and few libraries are spread over all units"
        adjusted(choice, chosen, why + ("; targets of 16 bits lie in wider vectors" if compact else ""))
        return chosen

    def _widen(self, chosen: dict[str, Any], width: int) -> None:
        """Let a staged group own as many targets as local memory has room for, with fewer libraries at once.

        Tuned parameters serve lengths of which the longest is four times the shortest. They may own as few targets as
        the longest leaves room for. Groups of twice the targets read tables half as often. Only targets of 32 bits were
        measured (docs/design/lookup.md).
        """
        if not chosen["stage"] or chosen["row_lanes"] != STRANDS or self._dtype != "float32":
            return
        if self._n_libraries < _MANY_LIBRARIES:
            return
        lanes = chosen["lanes"] * chosen["vectors"]
        legal = next(each.values for each in spec("lookup").tunables if each.name == "target_lanes")
        while chosen["library_lanes"] > 1 and lanes * chosen["target_lanes"] < width:
            wider = {"target_lanes": 2 * chosen["target_lanes"], "library_lanes": chosen["library_lanes"] // 2}
            twice, illegal = {**chosen, **wider}, wider["target_lanes"] not in legal
            too_wide = lanes * twice["target_lanes"] * self._itemsize > _BANKS_BYTES
            if illegal or too_wide or self._staged_bytes(twice, compact=False) > self._local:
                return
            chosen.update(twice)

    def _halved(self, chosen: dict[str, Any], k: int, width: int) -> None:
        """Change parameters for targets of 32 bits into some for half the bytes.

        In local memory vectors of the same bytes hold twice the targets, and a group owns twice as many of them: tables
        are then read half as often. Where these do not fit, a group owns as many as before.
        """
        if not quirks_for(self._info).scalar_work_items or chosen["lanes"] > _CODES_MOST // 2:
            return
        wide = dict(chosen)
        wide["stage"] = True
        while wide["lanes"] < _CODES_MOST and wide["lanes"] * wide["target_lanes"] < width:
            wide["lanes"] *= 2
        while wide["target_lanes"] > 1 and self._staged_bytes(wide, compact=True) > self._local:
            wide["target_lanes"] //= 2
            wide["row_lanes"] = min(2 * wide["row_lanes"], _ROW_LANES_MOST)
        if wide["lanes"] == _CODES_MOST and wide["row_lanes"] >= STRANDS and self._n_libraries >= _MANY_LIBRARIES:
            # Many libraries at once instead of work-items that share a strand of rows, and groups that registers allow.
            wide["row_lanes"] = STRANDS
            wide["library_lanes"] = max(_CODES_GROUP // (STRANDS * wide["target_lanes"]), 1)
            most = 4 if self._local_sums(wide, k, compact=True) else 2 * wide["target_lanes"]
            wide["unroll"] = min(wide["unroll"], most) if k <= _UNROLLED_MOST else 1
        if self._staged_bytes(wide, compact=True) <= self._local:
            chosen.update(wide)

    def _local_sums(self, chosen: Mapping[str, Any], k: int, *, compact: bool) -> int:
        """What of its sums a staged group keeps in local memory: as much as leaves its tables room in the cache.

        Targets of 32 bits need fewer registers for their sums. They were faster so only where local memory has room for
        several groups (docs/design/lookup.md).
        """
        if chosen["row_lanes"] != STRANDS or self._dtype != "float32":
            return 0
        if not compact and 2 * self._staged_bytes(chosen, compact=False) > self._local:
            return 0
        # What all work-items read of tables for one row each.
        row = STRANDS * chosen["library_lanes"] * round_up(k, 4) * _ENTRY_BYTES
        for some in (2, 1):
            nbytes = self._staged_bytes(chosen, compact=compact, local_sums=some)
            if nbytes <= self._local and nbytes + row <= self._local + quirks_for(self._info).cache_beside:
                return some
        return 0

    def takes_any_k(self, k: int, width: int) -> bool:
        """Whether ``width`` targets with ``k`` neighbours are too little work to repay a kernel of their own."""
        per_target = float(self._n_libraries) * self._n_steps * k
        if quirks_for(self._info).scalar_work_items:
            few = per_target * width <= _FEW_ON_GPUS
        else:
            lanes = spec("lookup").defaults("cpu")["lanes"]
            few = width <= lanes and per_target * lanes <= _FEW_OPERATIONS
        return few and self.chosen(k, width).grade != "forced"

    def _for_any_k(self, k: int, width: int) -> Mapping[str, Any]:
        """The parameters of a kernel that serves any number of neighbours: one for all classes on processors.

        On GPUs, whose classes have any number of targets, it is one for those that share tuned parameters.
        """
        if quirks_for(self._info).scalar_work_items:
            return self._fitted(k, width, compact=False)
        chosen = {**spec("lookup").defaults("cpu"), "vectors": 1}
        return adjusted(self.chosen(k, width), chosen, "one kernel serves all dimensions that have few targets")

    def _staged_bytes(self, chosen: Mapping[str, Any], *, compact: bool, local_sums: int = 0) -> int:
        """Local memory of a group whose targets are staged; its sums wait there or are only put together."""
        columns = chosen["target_lanes"] * chosen["lanes"] * chosen["vectors"]
        places = max(_SUMS * local_sums, 2) * chosen["row_lanes"] * chosen["library_lanes"]
        sums = (places + (3 if compact else 2)) * self._itemsize
        return int((self._padded * (_CODE_BYTES if compact else self._itemsize) + sums) * columns)

    def again(self, width: int, n_libraries: int) -> LookupShape:
        """The launch that looks for marked pairs of ``width`` targets, and computes them."""
        chosen = spec("lookup").defaults(quirks_for(self._info).defaults_for)
        columns = chosen["target_lanes"] * chosen["lanes"] * chosen["vectors"]
        blocks, group = -(-width // columns), chosen["target_lanes"] * chosen["row_lanes"] * chosen["library_lanes"]
        slices = min(max(n_libraries // _LIBRARIES_AGAIN, 1), max(self._info.compute_units * self._groups // blocks, 1))
        return LookupShape(chosen, columns, group, blocks, 0.0, slices, 0)

    def shape(
        self, k: int, width: int, n_libraries: int, units: Callable[[float], int], *, compact: bool = False,
        any_k: bool = False, like: int | None = None,
    ) -> LookupShape:  # fmt: skip
        """The launch for ``width`` targets of ``n_libraries`` tables with ``k`` neighbours.

        ``units`` says how many units of work a launch may have, from the operations that a unit takes for each library
        and query row.
        A kernel for any number of neighbours takes the parameters of ``like`` neighbours, where that is given.
        """
        chosen = self._for_any_k(like or k, width) if any_k else self._fitted(k, width, compact=compact)
        columns = chosen["target_lanes"] * chosen["lanes"] * chosen["vectors"]
        every, n_units = -(-width // columns), self._info.compute_units
        cost = 2.0 * columns * (k + 5)
        blocks = -(-every // -(-every // max(units(cost), 1)))  # even shares of the launches
        tasks, reads = -(-n_libraries // chosen["library_lanes"]), chosen["library_lanes"] * (k + 1)
        slices, stage_rows = even_shares(blocks, tasks, n_units * self._groups, _OBSERVING / reads), 0
        nbytes = self._staged_bytes(chosen, compact=compact)
        if chosen["stage"] and nbytes <= self._local:
            # Few groups, each with many libraries, repay the staging.
            shared = even_shares(blocks, tasks, n_units * (self._local // nbytes), (_OBSERVING + _STAGING) / reads)
            if n_libraries * k >= _REPAID * shared:
                slices, stage_rows = shared, self._padded
        local_sums = self._local_sums(chosen, k, compact=compact) if stage_rows and not any_k else 0
        group = chosen["target_lanes"] * chosen["row_lanes"] * chosen["library_lanes"]
        return LookupShape(chosen, columns, group, blocks, cost, slices, stage_rows, local_sums)


@lru_cache(maxsize=1024)
def even_shares(blocks: int, tasks: int, resident: int, begun: float) -> int:
    """Into how many slices to cut each block's tasks so that a device is busy evenly until the end.

    Parameters
    ----------
    blocks, tasks : int
        A group does one slice of the tasks of one block.
    resident : int
        Groups that run at once.
    begun : float
        What it costs to begin a group, in tasks.
    """

    def cost(slices: int) -> tuple[float, int]:
        return -(-blocks * slices // resident) * (-(-tasks // slices) + begun), slices

    several = range(1, isqrt(tasks) + 2)
    return min({min(n, tasks) for n in several} | {-(-tasks // n) for n in several}, key=cost)


# Launches of the lookup: tables of a search against columns of targets, both on the device.


_NARROW_MOST = 1 << 16  # steps whose numbers have 16 bits
_NARROW_LEAST = 4, 32  # neighbours, and targets of a class, that repay it
_GROUPS_MOST = 1 << 20  # of a launch over marked pairs


class Lookups:
    """Launches the lookups of one job.

    Parameters
    ----------
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
        columns : (int, int)
            The first of the targets, and one past the last.
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
                column_end=width, n_slices=slices, any_k=k,
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
            **{**fixed, "column_begin": begin, "column_end": end, "n_slices": shape.slices, "any_k": values["k"]},
        )  # fmt: skip

    def _planned_again(
        self, values: Mapping[str, Any], width: int, n_libraries: int
    ) -> tuple[LookupShape, dict[str, Any]]:
        """The launch that follows one of these values, for ``width`` targets, and the values of its kernel.

        It has little to compute, so that one text serves all numbers of neighbours.
        """
        shape = self._shapes.again(width, n_libraries)
        any_k = {"k": 0, "unroll": 1, "stage_rows": 0, "local_sums": 0, "precision": "again"}
        return shape, {**values, **shape.parameters, **any_k}

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
