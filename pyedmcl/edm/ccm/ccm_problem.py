"""Convergent cross mapping of two variables as a job: the problem, and the engine that computes its directions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...engines.ccm import SampledSkill, States
from ...engines.sub_libraries import CcmPair
from ...jobs.blocks import Arrays, Block, BlockResult, Record, Report
from ...neighbors.choose import SearchRequest
from ...neighbors.records import without_search
from ..shared.ccm_directions import Direction, states_of
from ..shared.effort import operations
from ..shared.states import delay_states, future
from ..surrogates.group_draws import drawn_groups, skill_of_groups
from .ccm_predictions import measured
from .ccm_smap import smap_skill

if TYPE_CHECKING:
    from ...device.executor import Executor

KERNELS = ("knn", "ccm_draw", "ccm", "ccm_direct")
_TOGETHER = 64  # directions of a block
SMAP_KERNELS = (
    "ccm_draw", "stage", "smap_white", "smap_gram", "smap_map",  # where samples are fitted together
    "smap_scale", "smap", "smap_solve",  # and one by one
)


@dataclass(frozen=True)
class CcmProblem:
    """Skill of random sub-libraries; rows of the result are directions.

    Attributes
    ----------
    directions : tuple of Direction
    lib_sizes : tuple of int
        Rows of a sub-library.
    sample : int
        Sub-libraries of each size.
    seed, Tp, exclusion_radius : int
    search : SearchRequest
        How neighbours are searched.
    dtype : str
        What kernels compute in.
    theta : float or None
        Localisation of local linear fits; None where rows are predicted by their neighbours.
    group_of : ndarray of int (n,) or None
        Group of each row, where whole groups are drawn.
    measure : str
        How predictions are measured.
    predictions : bool
        They are a second layer of the result, (directions, sizes, samples, n).
    """

    directions: tuple[Direction, ...]
    lib_sizes: tuple[int, ...]
    sample: int
    seed: int
    Tp: int
    exclusion_radius: int
    search: SearchRequest
    dtype: str
    theta: float | None = None
    group_of: NDArray[np.int64] | None = None
    measure: str = "pearson"
    predictions: bool = False

    unit: ClassVar[str] = ""  # the engine itself reports

    @property
    def kernels(self) -> tuple[str, ...]:
        """Kernels that the answer depends on."""
        return KERNELS if self.theta is None else SMAP_KERNELS

    @property
    def total(self) -> int:
        """Directions."""
        return len(self.directions)

    def size(self, block: Block) -> int:
        return len(block)

    def blocks(self) -> list[Block]:
        """Directions whose states one search serves together, others one by one."""
        blocks: list[Block] = []
        layers, begin = tuple(range(1 + self.predictions)), 0
        for end in range(1, self.total + 1):
            first, left = self.directions[begin], self.directions[end:]
            alike = left and first.library.series.n_series == left[0].library.series.n_series == 1
            alike = alike and (first.library.E, first.k) == (left[0].library.E, left[0].k)
            if not alike or end - begin == _TOGETHER:
                blocks.append(Block(len(blocks), begin, end, layers))
                begin = end
        return blocks

    @property
    def operations(self) -> float:
        n = self.directions[0].library.series.n_steps
        dims = [direction.library.E for direction in self.directions]
        targets = len(self.lib_sizes) * self.sample
        return operations(dims, n_library=n, n_query=n, n_series=self.total, n_targets=targets)

    def result(self) -> NDArray[np.float64]:
        """Room for rho (directions, sizes, samples)."""
        return np.empty((self.total, len(self.lib_sizes), self.sample))

    def sub_libraries(self, engine: SampledSkill, pair: CcmPair) -> Iterable[NDArray[np.bool_]]:
        """Members (samples, n) of the sub-libraries of each size."""
        if self.group_of is None:
            return engine.members(pair, self.lib_sizes, self.sample, self.seed)
        return (self.members(engine.library_mask(pair), pair, size) for size in self.lib_sizes)

    def members(self, library_mask: NDArray[np.bool_], pair: CcmPair, size: int) -> NDArray[np.bool_]:
        """Sub-libraries (samples, n) of whole groups."""
        assert self.group_of is not None
        return drawn_groups(self.group_of, library_mask, pair, size, self.sample, self.seed)

    def open(self, executor: Executor) -> CcmEngine:
        return CcmEngine(self, executor)


class CcmEngine:
    """The engine of :class:`CcmProblem`; it holds nothing on the device between blocks."""

    def __init__(self, problem: CcmProblem, executor: Executor) -> None:
        self._problem, self._executor = problem, executor

    def block(self, block: Block, into: Arrays | None, report: Report) -> BlockResult:
        """rho (directions of the block, sizes, samples)."""
        p, directions = self._problem, self._problem.directions[block.begin : block.end]
        targets = np.array([future(direction.target.series.values[:, 0], p.Tp) for direction in directions])
        mask = directions[0].range_mask
        engine = SampledSkill(self._executor, _states(p, directions), targets, mask, request=p.search)
        pairs = [CcmPair(place, place, direction.stream) for place, direction in enumerate(directions)]
        try:
            if p.measure != "pearson":
                rho = np.empty((len(pairs), len(p.lib_sizes), p.sample))
                searched = without_search(directions[0].library.E, p.search, "each sub-library is searched by itself")
            elif p.theta is None:
                rho = _skill(engine, pairs, p)
                searched = engine.searched
            else:
                rho = np.array([smap_skill(engine, pair, p, d) for pair, d in zip(pairs, directions, strict=True)])
                searched = without_search(directions[0].library.E, p.search, "local linear fits take all members")
            made = None
            if p.predictions:
                n = len(targets[0])
                made = np.empty((*rho.shape, n)) if into is None else into[1]
            if p.measure != "pearson" or p.predictions:
                for place, (pair, direction) in enumerate(zip(pairs, directions, strict=True)):
                    measured(engine, pair, p, direction, rho[place], None if made is None else made[place])
        finally:
            engine.release()
        layers = [rho] if made is None else [rho, made]
        return BlockResult(layers, Record(engine.parameters, engine.grade, tuple(searched)))

    def release(self) -> None:
        """Nothing is held."""


def _skill(engine: SampledSkill, pairs: list[CcmPair], p: CcmProblem) -> NDArray[np.float64]:
    """rho (pairs, sizes, samples)."""
    if p.group_of is None:
        return engine.skill(pairs, p.lib_sizes, p.sample, p.seed)
    return skill_of_groups(engine, pairs, p.lib_sizes, p.sample, p.seed, p.group_of)


def _states(problem: CcmProblem, directions: tuple[Direction, ...]) -> States:
    """States of the libraries of directions that one search serves."""
    p, first = problem, directions[0]
    if len(directions) == 1:
        return states_of(first, Tp=p.Tp, exclusion_radius=p.exclusion_radius, dtype=p.dtype)
    columns = [direction.library.series.values for direction in directions]
    values = np.concatenate([column.astype(np.result_type(*columns)) for column in columns], axis=1)
    return delay_states(
        values, first.library.lags, first.tau, k=first.k, Tp=p.Tp, exclusion_radius=p.exclusion_radius, dtype=p.dtype
    )
