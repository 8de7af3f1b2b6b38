"""All-pairs cross mapping as a job: the problem, and the engine that computes blocks of libraries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..engines.crossmap import CrossMap, MapData
from ..jobs.blocks import Arrays, Block, BlockResult, Record, Report, cut
from .effort import operations
from .pairs import PairsProblem, gap_patterns
from .xmap_smap import KERNELS, LinearFits, SmapXmapEngine

if TYPE_CHECKING:
    from ..device.executor import Executor


@dataclass(frozen=True)
class XmapProblem(PairsProblem):
    """Cross-map skill of each series as library against each target.

    Attributes
    ----------
    block_rows : int
        Libraries of a block.
    fits : LinearFits or None
        How rows are predicted by local linear fits; None where they are predicted by their neighbours.
    """

    block_rows: int
    fits: LinearFits | None = None

    @property
    def kernels(self) -> tuple[str, ...]:
        mapping = ("stage", "knn", "lookup") if self.fits is None else KERNELS
        first_stage = () if self.E_max is None else ("knn", "predict", "skill")
        return mapping + tuple(name for name in first_stage if name not in mapping)

    @property
    def layers(self) -> int:
        """Matrices of the result: several where there are several theta."""
        return 1 if self.fits is None else self.fits.layers

    def own_arguments(self) -> dict[str, Any]:
        return {} if self.fits is None else self.fits.arguments()

    def blocks(self) -> list[Block]:
        return cut(self.total, self.block_rows, self.layers)

    @property
    def operations(self) -> float:
        n, n_targets = self.data.series.n_steps, self.aimed.series.n_series
        if self.fits is not None:
            return self.fits.operations(n, self.total, n_targets, self.highest)
        return operations(self.dims, n_library=n, n_query=n, n_series=self.total, n_targets=n_targets)

    def open(self, executor: Executor) -> XmapEngine | SmapXmapEngine:
        return XmapEngine(self, executor) if self.fits is None else SmapXmapEngine(self, self.fits, executor)


class XmapEngine:
    """All libraries and targets on a device."""

    def __init__(self, problem: XmapProblem, executor: Executor) -> None:
        self._map = CrossMap(executor, map_data(problem))

    def block(self, block: Block, into: Arrays | None, report: Report) -> BlockResult:
        """rho (libraries of the block, n_targets)."""
        rho = self._map.skill(block.begin, block.end, None if into is None else into[0], report)
        return BlockResult([rho], Record(self._map.parameters, "", tuple(self._map.searched)))

    def release(self) -> None:
        """Give the device memory back."""
        self._map.release()


def map_data(problem: PairsProblem) -> MapData:
    """What the device gets of a problem whose E is known: targets grouped by dimension and pattern of gaps."""
    series, conditioned, E = problem.data.series, problem.data.conditioned, np.array(problem.E, int)
    gap_pattern, library_masks = gap_patterns(problem)
    rows = series.n_steps - (int(E.max()) - 1) * problem.tau - abs(problem.Tp) - 2 * problem.exclusion_radius - 1
    gaps = conditioned.gaps.any() or problem.aimed.conditioned.gaps.any()
    return MapData(
        conditioned.values, E, problem.tau, problem.Tp, problem.exclusion_radius, problem.knn, gap_pattern,
        library_masks, gaps=bool(gaps) or rows < 1, search=problem.search,
        targets=None if problem.targets is None else problem.targets.conditioned.values,
    )  # fmt: skip
