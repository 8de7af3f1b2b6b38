"""Cross-map skill of blocks of libraries against all targets, on the device."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.build import build
from ..device.memory import budget
from ..device.quirks import quirks_for
from ..errors import DeviceMemoryError
from ..kernels import spec
from ..plan import Search, round_up
from ..tuning.policy import parameters
from .exact import ExactSearch, Tables
from .pacing import Pacer
from .pool import Pool

if TYPE_CHECKING:
    from ..device.executor import Buffer, Executor
    from .staging import Staging

# Columns that the last group of a launch may read behind the last target.
_OVERHANG = 128


@dataclass(frozen=True)
class TargetClass:
    """Targets that share an embedding dimension and a pattern of gaps: adjacent columns ``begin`` to ``end``."""

    E: int
    begin: int
    end: int


@dataclass
class _Group:
    """Targets of one gap pattern: their search and their classes by dimension."""

    search: ExactSearch
    classes: dict[int, TargetClass]
    penalty: Buffer | None


class CrossMap:
    """All-pairs skill: neighbour tables per library and dimension, looked up by all targets of that dimension.

    Parameters
    ----------
    executor : Executor
    data : Staging
        All series: libraries and targets.
    E : ndarray of int (n_series,)
        Embedding dimension of each target.
    pattern : ndarray of int (n_series,)
        0 for targets without gaps, else the number of the target's gap pattern.
    penalties : dict
        Pattern number -> penalty per library row; see :mod:`pyedmcl.edm.masks`.
    k : int or None
        Neighbours; E + 1 if None.
    gaps : bool
        Whether any prediction or observation may be missing.
    """

    def __init__(
        self, executor: Executor, data: Staging, E: NDArray[np.int_], pattern: NDArray[np.int_],
        penalties: dict[int, NDArray[Any]], *, k: int | None, tau: int, Tp: int, exclusion_radius: int, gaps: bool,
    ) -> None:  # fmt: skip
        self.executor = executor
        self.data = data
        self.n_steps, self.n = data.n_steps, data.n_series
        self.tau, self.Tp, self.gaps = tau, Tp, gaps
        self.dtype = data.dtype
        self._pool = Pool(executor)
        order = np.lexsort((np.arange(self.n), E, pattern))
        self._groups: list[_Group] = []
        self._stage_targets(order)
        for number in np.unique(pattern):
            classes = {}
            for dim in np.unique(E[pattern == number]):
                columns = np.flatnonzero((E[order] == dim) & (pattern[order] == number))
                classes[int(dim)] = TargetClass(int(dim), int(columns[0]), int(columns[-1]) + 1)
            dims = tuple(sorted(classes))
            counts = tuple(k or dim + 1 for dim in dims)
            search = Search(dims, counts, tau, Tp, exclusion_radius, self.n_steps, self.n_steps, self.dtype)
            barred = penalties.get(int(number))
            engine = ExactSearch(
                executor, search, "weights", masked=barred is not None,
                data_bytes=data.values.nbytes, pool=self._pool,
            )  # fmt: skip
            self._groups.append(_Group(engine, classes, None if barred is None else executor.upload(barred)))
        self._pacers: dict[int, Pacer] = defaultdict(lambda: Pacer(quirks_for(executor.info).device_class))

    def _stage_targets(self, order: NDArray[np.int_]) -> None:
        """Targets time-major: a neighbour is then one contiguous load for a whole vector of targets."""
        limit = budget(self.executor.info)
        self.stride = round_up(self.n, 64)
        nbytes = (self.n_steps * self.stride + _OVERHANG) * np.dtype(self.dtype).itemsize
        if nbytes > limit.largest:
            raise DeviceMemoryError(
                f"{self.n:,} targets of {self.n_steps:,} steps need {nbytes:,} bytes on the device; {limit.largest:,} "
                f"may be used on {self.executor.info.name} (raise PYEDMCL_MEMORY_FRACTION or PYEDMCL_MEMORY_LIMIT)"
            )
        self.targets = self.executor.allocate(nbytes)
        column_of = np.empty(self.n, np.int32)
        column_of[order] = np.arange(self.n)
        self.data.targets(column_of, self.stride, self.targets)
        self.target_of = self.executor.upload(np.concatenate([order, np.zeros(_OVERHANG, int)]).astype(np.int32))

    @property
    def parameters(self) -> dict[str, Any]:
        """Tuned parameters of the search and of the lookup."""
        lookup = parameters(spec("lookup"), {"dtype": self.dtype}, self.executor.info).parameters
        return {"knn": self._groups[0].search.parameters, "lookup": dict(lookup)}

    def skill(self, a: int, b: int) -> NDArray[Any]:
        """rho (b - a, n_series) of libraries a to b against all targets."""
        n = b - a
        nbytes = n * self.n * np.dtype(self.dtype).itemsize
        rho = self._pool.get("rho", nbytes)
        for group in self._groups:
            for tables in group.search.tables(*group.search.load(self.data, a, b), group.penalty):
                for dim in tables.sweep.search.dims:
                    self._lookup(tables, group.classes[dim], rho)
        out = np.empty((n, self.n), np.dtype(self.dtype))
        return self.executor.download(rho, out)

    def _lookup(self, tables: Tables, targets: TargetClass, rho: Buffer) -> None:
        s = tables.sweep.search
        k = s.counts[s.dims.index(targets.E)]
        width = targets.end - targets.begin
        chosen = parameters(spec("lookup"), {"dtype": self.dtype, "columns": width}, self.executor.info).parameters
        kernel = build(self.executor, spec("lookup"), {**chosen, "k": k, "dtype": self.dtype, "gaps": self.gaps})
        columns = chosen["target_lanes"] * chosen["lanes"] * chosen["vectors"]
        wg = chosen["target_lanes"] * chosen["row_lanes"]
        t_begin, t_end = max((targets.E - 1) * self.tau, -self.Tp), min(self.n_steps, self.n_steps - self.Tp)
        i = np.int32
        cost = 2.0 * columns * (k + 5) * max(t_end - t_begin, 1)
        pacer = self._pacers[targets.E]
        blocks = -(-width // columns)
        # A launch takes whole blocks of columns: the groups of one share it, so it stays in cache.
        share = max(pacer.units(cost * tables.n_libraries), 1)
        for block in range(0, blocks, share):
            some = min(share, blocks - block)
            event = self.executor.launch(
                kernel, (some * tables.n_libraries * wg,), (wg,),
                (self.targets, tables.rows, tables.values, self.target_of, rho, i(self.stride),
                 i(targets.begin + block * columns), i(targets.end), i(self.n_steps), i(t_begin), i(t_end), i(self.Tp),
                 i(tables.n_libraries), i(tables.first), i(self.n), np.uint64(tables.begin(targets.E))),
            )  # fmt: skip
            pacer.launched(event, cost * some * tables.n_libraries)

    def release(self) -> None:
        """Give the device memory back."""
        for group in self._groups:
            group.search.release()
            if group.penalty is not None:
                group.penalty.release()
        self.targets.release()
        self.target_of.release()
        self.data.release()
