"""All-pairs cross mapping as a job: the problem, and the engine that computes blocks of libraries."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...engines.crossmap import CrossMap
from ...engines.whole_map import whole_map
from ...jobs.blocks import Arrays, Block, BlockResult, Record, Report, cut
from ..shared.effort import operations
from ..shared.map_rows import MapRows, arguments_of_folds
from . import xmap_measures
from .linear_fits import LinearFits
from .map_cells import MapCells
from .pairs import PairsProblem
from .xmap_data import map_data
from .xmap_smap import SmapXmapEngine

if TYPE_CHECKING:
    from ...device.executor import Executor


@dataclass(frozen=True)
class XmapProblem(PairsProblem):
    """Cross-map skill of each series as library against each target.

    Attributes
    ----------
    block_rows : int
        Libraries of a block.
    fits : LinearFits or None
        How rows are predicted by local linear fits; None where they are predicted by their neighbours.
    folds : tuple of MapRows
        Each is predicted from the others, and the map is the mean of theirs.
    each_fold : bool
        Whether the maps of all folds are part of the result, after their mean.
    skill : str
        How predictions are measured.
    predictions : bool
        They are a second layer of the result, (n_libraries, n_targets, n_steps).
    precision : str
        "full", or "compact": lookups may take targets of 16 bits, and fits be multiplied on matrix units.
    """

    block_rows: int
    fits: LinearFits | None = None
    folds: tuple[MapRows, ...] = ()
    each_fold: bool = False
    skill: str = "pearson"
    predictions: bool = False
    precision: str = "full"

    @property
    def compact(self) -> bool:
        return self.precision == "compact"

    @property
    def measured(self) -> bool:
        """Whether predictions are looked at one by one."""
        return self.skill != "pearson" or self.predictions

    @property
    def kernels(self) -> tuple[str, ...]:
        mapping: tuple[str, ...] = ("stage", "knn", "lookup") if self.fits is None else self.fits.kernels
        mapping += ("compact",) if self.compact and self.fits is None else ()
        mapping = xmap_measures.KERNELS if self.measured else mapping
        first_stage = () if self.E_max is None else ("knn", "predict", "skill")
        return mapping + tuple(name for name in first_stage if name not in mapping)

    @property
    def layers(self) -> int:
        """Matrices of the result: several where there are several theta."""
        maps = 1 if self.fits is None else self.fits.layers
        return maps + self.predictions + (len(self.folds) if self.each_fold else 0)

    def own_arguments(self) -> dict[str, Any]:
        named = arguments_of_folds(self.folds) | ({} if self.fits is None else self.fits.arguments())
        named |= {} if self.skill == "pearson" else {"skill": self.skill}
        return named if self.precision == "full" else named | {"precision": self.precision}

    def blocks(self) -> list[Block]:
        rows = min(self.block_rows, xmap_measures.BLOCK_LIBRARIES) if self.measured else self.block_rows
        return cut(self.total, rows, self.layers)

    @property
    def operations(self) -> float:
        n, n_targets = self.data.series.n_steps, self.target_data.series.n_series
        once = operations(self.dims, n_library=n, n_query=n, n_series=self.total, n_targets=n_targets)
        if self.fits is not None:
            once = self.fits.operations(n, self.total, n_targets, self.highest)
        return once * max(len(self.folds), 1)

    def open(
        self, executor: Executor
    ) -> XmapEngine | FoldedEngine | SmapXmapEngine | xmap_measures.MeasuredXmapEngine:
        if self.measured:
            return xmap_measures.MeasuredXmapEngine(self, executor)
        if self.folds:
            return FoldedEngine(self, executor)
        if self.fits is not None:
            return SmapXmapEngine(self, self.fits, executor, self.compact)
        return XmapEngine(self, executor)


class XmapEngine:
    """All libraries and targets on a device."""

    def __init__(self, problem: XmapProblem, executor: Executor) -> None:
        self._executor, self._data, self._total = executor, map_data(problem), problem.total
        # What is a block of its own is opened within it.
        self._map = None if len(problem.blocks()) == 1 else CrossMap(executor, self._data)

    def block(self, block: Block, into: Arrays | None, report: Report) -> BlockResult:
        """rho (libraries of the block, n_targets)."""
        rho: Any = None if into is None else into[0]
        if len(block) == self._total and (rho is None or isinstance(rho, np.ndarray)):
            if rho is None:
                n_targets = (self._data.values if self._data.targets is None else self._data.targets).shape[1]
                rho = np.empty((len(block), n_targets), self._data.values.dtype)
            return BlockResult([rho], whole_map(self._executor, self._data, rho, report))
        if self._map is None:
            self._map = CrossMap(self._executor, self._data)
        rho = self._map.skill(block.begin, block.end, rho, report)
        return BlockResult([rho], Record(self._map.parameters, "", tuple(self._map.searched)))

    def release(self) -> None:
        """Give the device memory back."""
        if self._map is not None:
            self._map.release()


class FoldedEngine:
    """The mean of the maps of all folds, and these maps where they are asked for."""

    def __init__(self, problem: XmapProblem, executor: Executor) -> None:
        self._n = problem.target_data.series.n_series
        self._dtype = np.dtype(problem.data.dtype)
        self._folds = range(len(problem.folds))
        self._cells = MapCells(executor, [replace(problem, rows=fold, folds=()) for fold in problem.folds])

    def block(self, block: Block, into: Arrays | None, report: Report) -> BlockResult:
        """Mean rho (libraries of the block, n_targets), then rho of each fold."""
        shape = len(block), self._n
        if into is None:
            into = [np.empty(shape, self._dtype) for _ in block.layers]
        of_folds = into[1:] if len(into) > 1 else [np.empty(shape, self._dtype) for _ in self._folds]
        n = len(self._folds)
        record = self._cells.maps(block.begin, block.end, self._folds, of_folds, lambda done: report(done // n))
        into[0][...] = np.mean(of_folds, axis=0, dtype=np.float64)
        return BlockResult(into, record)

    def release(self) -> None:
        """Give the device memory back."""
        self._cells.release()
