"""Cross-map skill against that of surrogates as a job: the problem, and the engine that computes its directions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...engines.ccm import SampledSkill
from ...engines.sub_libraries import CcmPair
from ...jobs.blocks import Arrays, Block, BlockResult, Record, Report, cut
from ..ccm.ccm_problem import KERNELS
from ..shared.ccm_directions import Direction, states_of
from ..shared.convergence import means
from ..shared.effort import operations
from ..shared.states import future

if TYPE_CHECKING:
    from ...device.executor import Executor


@dataclass(frozen=True)
class CcmSignificanceProblem:
    """Mean skill of a target and of its surrogates for the same states and sub-libraries; rows are directions.

    Attributes
    ----------
    directions : tuple of Direction
    surrogates : tuple of ndarray (n, n_steps)
        Of the target of each direction.
    lib_sizes : tuple of int
        Rows of a sub-library, of each direction.
    sample : int
        Sub-libraries.
    seed, Tp, exclusion_radius : int
    dtype : str
        What kernels compute in.
    smallest : tuple of int
        Rows of the smallest sub-library, of each direction; empty where no gain is asked for.
    samples_of_smallest : int
    """

    directions: tuple[Direction, ...]
    surrogates: tuple[NDArray[np.float64], ...]
    lib_sizes: tuple[int, ...]
    sample: int
    seed: int
    Tp: int
    exclusion_radius: int
    dtype: str
    smallest: tuple[int, ...] = ()
    samples_of_smallest: int = 0

    kernels: ClassVar[tuple[str, ...]] = KERNELS
    unit: ClassVar[str] = ""  # the engine itself reports

    @property
    def total(self) -> int:
        """Directions."""
        return len(self.directions)

    def size(self, block: Block) -> int:
        return len(block)

    def blocks(self) -> list[Block]:
        """Direction by direction."""
        return cut(self.total, 1, 2)

    @property
    def operations(self) -> float:
        n = self.directions[0].library.series.n_steps
        dims = [direction.library.E for direction in self.directions]
        targets = self.sample * (len(self.surrogates[0]) + 1)
        return operations(dims, n_library=n, n_query=n, n_series=self.total, n_targets=targets)

    def open(self, executor: Executor) -> CcmSignificanceEngine:
        return CcmSignificanceEngine(self, executor)


class CcmSignificanceEngine:
    """The engine of :class:`CcmSignificanceProblem`; it holds nothing on the device between blocks."""

    def __init__(self, problem: CcmSignificanceProblem, executor: Executor) -> None:
        self._problem, self._executor = problem, executor

    def block(self, block: Block, into: Arrays | None, report: Report) -> BlockResult:
        """Mean skill, and what it gains from the smallest sub-library, each (directions of the block, 1 + n)."""
        p, record, rows, gains = self._problem, Record(), [], []
        for number in range(block.begin, block.end):
            direction = p.directions[number]
            series = direction.target.series.values[:, :1].T.astype(np.float64)
            targets = np.array([future(target, p.Tp) for target in np.concatenate([series, p.surrogates[number]])])
            states = states_of(direction, Tp=p.Tp, exclusion_radius=p.exclusion_radius, dtype=p.dtype)
            engine = SampledSkill(self._executor, states, targets, direction.range_mask)
            pairs = [CcmPair(0, place, direction.stream) for place in range(len(targets))]
            try:
                rows.append(means(engine.skill(pairs, [p.lib_sizes[number]], p.sample, p.seed)[:, 0]))
                gains.append(np.full(len(targets), np.nan))
                if p.smallest:
                    small = engine.skill(pairs, [p.smallest[number]], p.samples_of_smallest, p.seed)[:, 0]
                    gains[-1] = rows[-1] - means(small)
            finally:
                engine.release()
            record = record.joined(Record(engine.parameters, engine.grade))
        return BlockResult([np.array(rows), np.array(gains)], record)

    def release(self) -> None:
        """Nothing is held."""
