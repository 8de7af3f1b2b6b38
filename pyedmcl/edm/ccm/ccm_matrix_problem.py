"""Convergent cross mapping of all pairs as a job: the problem, and the engine that computes blocks of libraries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...engines.ccm import SampledSkill
from ...engines.future_targets import FutureTargets
from ...engines.sub_libraries import CcmPair
from ...jobs.blocks import Arrays, Block, BlockResult, Record, Report, cut
from ..maps.linear_fits import LinearFits
from ..maps.pairs import PairsProblem
from ..shared.convergence import means
from ..shared.effort import operations
from ..shared.map_rows import MapRows, arguments_of_folds
from ..shared.states import delay_states, future
from ..surrogates.group_draws import skill_of_groups
from . import ccm_matrix_measures, ccm_matrix_smap
from .ccm_problem import KERNELS

if TYPE_CHECKING:
    from ...device.executor import Executor

_BLOCK_PAIRS = 2048  # pairs of a block: some seconds to minutes of work
_PAIRS = 2048  # pairs that are computed together, so that what each call costs is shared


@dataclass(frozen=True)
class CcmMatrixProblem(PairsProblem):
    """Mean skill of random parts of each series as library against each as target; a layer for each library size.

    Attributes
    ----------
    lib_sizes : tuple of int
    sample : int
        Sub-libraries of each pair and size.
    seed : int
    pairs : ndarray of bool (n_series, n_series), optional
        Row = library, column = target: which pairs are computed; the others get NaN. All by default.
    fits : LinearFits or None
        How rows are predicted by local linear fits, of one theta; None where they are predicted by their neighbours.
    folds : tuple of MapRows
        Each is predicted from the others, and skill is the mean of theirs.
    streams : int or None
        Series number i has the random numbers of number i % streams, where series are those of several windows.
    skill : str
        How predictions are measured.
    group_of : ndarray of int (n_steps,) or None
        Group of each row, where sub-libraries are drawn from whole groups.
    """

    lib_sizes: tuple[int, ...]
    sample: int
    seed: int
    pairs: NDArray[np.bool_] | None = None
    fits: LinearFits | None = None
    folds: tuple[MapRows, ...] = ()
    streams: int | None = None
    skill: str = "pearson"
    group_of: NDArray[np.int64] | None = None

    @property
    def kernels(self) -> tuple[str, ...]:
        if self.skill != "pearson":
            return ccm_matrix_measures.KERNELS
        return KERNELS if self.fits is None else ccm_matrix_smap.KERNELS

    def blocks(self) -> list[Block]:
        return cut(self.total, max(min(_BLOCK_PAIRS // self.total, 8), 1), len(self.lib_sizes))

    @property
    def operations(self) -> float:
        n, N = self.data.series.n_steps, self.total
        targets = N * len(self.lib_sizes) * self.sample * max(len(self.folds), 1)
        if self.fits is not None:  # each sub-library has fits of its own
            return self.fits.operations(n, N * targets, 1, self.highest)
        return operations([self.highest], n_library=n, n_query=n, n_series=N, n_targets=targets)

    def own_arguments(self) -> dict[str, Any]:
        drawn = {"sample": self.sample, "seed": self.seed, **arguments_of_folds(self.folds)}
        if self.skill != "pearson":
            drawn["skill"] = self.skill
        if self.group_of is not None:
            drawn["draw"] = "groups"
        return drawn if self.fits is None else drawn | self.fits.arguments()

    def open(self, executor: Executor) -> CcmMatrixEngine:
        return CcmMatrixEngine(self, executor)


class CcmMatrixEngine:
    """The engine of :class:`CcmMatrixProblem`; it holds nothing on the device between blocks."""

    def __init__(self, problem: CcmMatrixProblem, executor: Executor) -> None:
        self._problem, self._executor = problem, executor
        values = problem.data.series.values
        self._targets = FutureTargets(future(values.T, problem.Tp))
        self._E = np.array(problem.E, int)
        self._fits = None if problem.fits is None else ccm_matrix_smap.SampledFits(problem, executor)

    def block(self, block: Block, into: Arrays | None, report: Report) -> BlockResult:
        """Mean skill (libraries of the block, n_series) for each of the block's library sizes."""
        n, record, done = self._problem.total, Record(), 0
        shape = len(block.layers), len(block), n
        rho = list(np.empty(shape, np.dtype(self._problem.data.dtype))) if into is None else into
        for layer in rho:
            layer[...] = np.nan
        E = self._E[block.begin : block.end]
        own_streams = self._problem.streams or n
        step = max(_PAIRS // own_streams, 1)
        for dim in np.unique(E):
            alike = block.begin + np.flatnonzero(dim == E)
            for first in range(0, len(alike), step):
                libraries = alike[first : first + step]
                computed = libraries[:, None] != np.arange(n)
                if self._problem.pairs is not None:
                    computed &= self._problem.pairs[libraries]
                places, targets = np.nonzero(computed)
                streams = libraries[places] % own_streams, targets % own_streams
                pairs = np.stack([places, targets, *streams], axis=1)
                skill, new = self._skill(libraries, int(dim), pairs, [self._problem.lib_sizes[i] for i in block.layers])
                for layer, values in zip(rho, skill.T, strict=True):
                    layer[libraries[places] - block.begin, targets] = values
                record, done = record.joined(new), done + len(libraries)
                report(done)
        return BlockResult(rho, record)

    def _skill(
        self, libraries: NDArray[np.int_], E: int, pairs: NDArray[np.int_], sizes: Sequence[int]
    ) -> tuple[NDArray[np.float64], Record]:
        """Mean skill (n_links, n_sizes) of libraries of one dimension."""
        record, skills = Record(), []
        for rows in self._problem.folds or (self._problem.rows,):
            skill, new_record = self._skill_of(rows, libraries, E, pairs, sizes)
            skills.append(skill)
            record = record.joined(new_record)
        return np.mean(skills, axis=0), record

    def _skill_of(
        self, rows: MapRows | None, libraries: NDArray[np.int_], E: int, pairs: NDArray[np.int_], sizes: Sequence[int]
    ) -> tuple[NDArray[np.float64], Record]:
        """The same of one choice of rows."""
        p, n = self._problem, self._problem.data.series.n_steps
        mask = None if rows is None else rows.library_mask(n, E, p.tau, p.Tp)
        states = delay_states(
            p.data.series.values[:, libraries], E, p.tau, k=p.knn or E + 1, Tp=p.Tp,
            exclusion_radius=p.exclusion_radius, dtype=p.data.dtype,
        )  # fmt: skip
        engine = SampledSkill(
            self._executor, states, self._targets, mask, request=p.search,
            predicted=None if rows is None else rows.predicted(n),
        )  # fmt: skip
        try:
            if self._fits is not None:
                return self._fits.skill(engine, rows, E, libraries, pairs, sizes)
            if p.skill != "pearson":
                return ccm_matrix_measures.measured(p, engine, self._targets, rows, pairs, sizes)
            if p.group_of is None:
                rho = engine.skill(pairs, sizes, p.sample, p.seed)
            else:
                named = [CcmPair(library, target, (a, b)) for library, target, a, b in pairs.tolist()]
                rho = skill_of_groups(engine, named, sizes, p.sample, p.seed, p.group_of)
            return means(rho), Record(dict(engine.parameters), engine.grade, tuple(engine.searched))
        finally:
            engine.release()

    def release(self) -> None:
        """Nothing is held."""
