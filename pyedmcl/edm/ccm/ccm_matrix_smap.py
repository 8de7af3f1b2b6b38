"""Convergent cross mapping of all pairs by local linear fits, from the sub-libraries that neighbours would have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...data.condition import condition
from ...engines.ccm import SampledSkill
from ...engines.smap_map import SmapMap
from ...engines.smap_map_data import SmapMapData
from ...engines.sub_libraries import Of
from ...jobs.blocks import Record
from ...neighbors.records import without_search
from ..maps.linear_fits import require_double
from ..shared.convergence import means

if TYPE_CHECKING:
    from ...device.executor import Executor
    from ..shared.map_rows import MapRows
    from .ccm_matrix_problem import CcmMatrixProblem

KERNELS = ("stage", "ccm_draw", "smap_white", "smap_gram", "smap_map")
_MEMBER_BYTES = 1 << 28  # of sub-libraries that the host holds at a time


class SampledFits:
    """Mean skill of random sub-libraries by local linear fits; it holds nothing on the device between calls.

    Each pair, size and sample has rows of its own, so that no two predictions share a fit. What they share is the
    target: all sub-libraries that predict one series, of whatever library and size, are fitted together.
    """

    def __init__(self, problem: CcmMatrixProblem, executor: Executor) -> None:
        require_double(executor)
        series = problem.data.series
        self._problem, self._executor = problem, executor
        self._libraries = condition(series.values, "float64", series.extent, quiet=True)

    def skill(
        self, draws: SampledSkill, rows: MapRows | None, E: int, libraries: NDArray[np.int_], pairs: NDArray[np.int_],
        sizes: Sequence[int],
    ) -> tuple[NDArray[np.float64], Record]:  # fmt: skip
        """Mean skill (n_pairs, n_sizes) of pairs whose libraries have one dimension.

        Parameters
        ----------
        draws : SampledSkill
            Draws the sub-libraries.
        rows : MapRows or None
            Rows that are predicted.
        E : int
        libraries : ndarray of int (n,)
            Series that the numbers of libraries in ``pairs`` stand for.
        pairs : ndarray of int (n_pairs, 4)
            See :class:`pyedmcl.engines.sub_libraries.Of`.
        sizes : sequence of int
        """
        p = self._problem
        engine = SmapMap(self._executor, self._data(E, rows))
        out = np.empty((len(pairs), len(sizes)))
        try:
            for numbers in self._together(pairs, sizes):
                part = pairs[numbers]
                members = draws.drawn(part, sizes, p.sample, p.seed)
                of = np.repeat(libraries[part[:, Of.LIBRARY]], len(sizes) * p.sample)
                rho = engine.sampled(of, members.reshape(len(of), -1), int(part[0, Of.TARGET]))
                out[numbers] = means(rho.astype(np.float64).reshape(len(part), len(sizes), p.sample))
            searched = without_search(E, p.search, "local linear fits take all members")
            return out, Record(draws.parameters | engine.parameters, "", tuple(searched))
        finally:
            engine.release()

    def _together(self, pairs: NDArray[np.int_], sizes: Sequence[int]) -> Iterator[NDArray[np.int_]]:
        """Numbers of pairs of one target, as many at a time as the host's memory is meant to hold."""
        n_values = len(sizes) * self._problem.sample * self._problem.data.series.n_steps
        step = max(_MEMBER_BYTES // n_values, 1)
        for target in np.unique(pairs[:, Of.TARGET]):
            numbers = np.flatnonzero(pairs[:, Of.TARGET] == target)
            for first in range(0, len(numbers), step):
                yield numbers[first : first + step]

    def _data(self, E: int, rows: MapRows | None) -> SmapMapData:
        """All series as libraries and as targets, with one dimension."""
        p, n = self._problem, self._problem.total
        assert p.fits is not None
        none = np.zeros(n, int)
        return SmapMapData(
            p.data.conditioned.values, self._libraries.values, self._libraries.exponent, np.full(n, E), p.tau, p.Tp,
            p.exclusion_radius, none, {}, True, p.fits.thetas, p.fits.ridge,
            asked=None if rows is None else rows.predicted_mask(p.data.series.n_steps),
        )  # fmt: skip
