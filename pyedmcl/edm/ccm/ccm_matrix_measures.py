"""Convergent cross mapping of all pairs by another measure than Pearson's rho: a search for each sub-library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...engines.ccm import SampledSkill
from ...engines.future_targets import FutureTargets
from ...engines.projector import Projector
from ...engines.sub_libraries import Of
from ...jobs.blocks import Record
from ...neighbors.records import without_search
from ..shared.convergence import means
from ..shared.measures import measure

if TYPE_CHECKING:
    from ..shared.map_rows import MapRows
    from .ccm_matrix_problem import CcmMatrixProblem

KERNELS = ("knn", "ccm_draw", "predict")


def measured(
    problem: CcmMatrixProblem, draws: SampledSkill, targets: FutureTargets, rows: MapRows | None,
    pairs: NDArray[np.int_], sizes: Sequence[int],
) -> tuple[NDArray[np.float64], Record]:  # fmt: skip
    """Mean skill (n_pairs, n_sizes) of pairs whose libraries have one dimension.

    Parameters
    ----------
    problem : CcmMatrixProblem
    draws : SampledSkill
        Draws the sub-libraries.
    targets : FutureTargets
    rows : MapRows or None
        Rows that are predicted.
    pairs : ndarray of int (n_pairs, 4)
        See :class:`pyedmcl.engines.sub_libraries.Of`.
    sizes : sequence of int
    """
    p, states = problem, draws.states
    skill = np.empty((len(pairs), len(sizes), p.sample))
    parameters = {}
    for number, pair in enumerate(pairs):
        target_values = targets.values[pair[Of.TARGET]]
        observed = target_values
        if rows is not None:
            observed = np.where(rows.predicted_mask(len(observed)), observed, np.nan)
        library = states.library[pair[Of.LIBRARY]][None]
        query = library if states.query is states.library else states.query[pair[Of.LIBRARY]][None]
        members = draws.drawn(pair[None], sizes, p.sample, p.seed)[0]
        for place in np.ndindex(members.shape[:2]):
            projector = Projector(draws.executor, states.problem, target_values, members[place])
            try:
                predicted = projector.predict(library, query)[0][0]
                parameters = {"knn": projector.searcher.parameters}
            finally:
                projector.release()
            skill[(number, *place)] = measure(p.skill, predicted[None], observed)[0]
    searched = without_search(states.problem.dims[0], p.search, "each sub-library is searched by itself")
    return means(skill), Record(draws.parameters | parameters, "", tuple(searched))
