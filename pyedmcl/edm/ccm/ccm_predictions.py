"""Predictions of each random sub-library by its own search, where their values are wanted and not only their rho."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...engines.ccm import SampledSkill
from ...engines.projector import Projector
from ...engines.sub_libraries import CcmPair
from ..shared.measures import measure
from ..shared.states import future
from .ccm_smap import fitted

if TYPE_CHECKING:
    from ..shared.ccm_directions import Direction
    from .ccm_problem import CcmProblem

Doubles = NDArray[np.float64]


def measured(
    engine: SampledSkill, pair: CcmPair, problem: CcmProblem, direction: Direction, rho: Doubles, made: Doubles | None
) -> None:
    """Write skill (n_sizes, samples), unless it is Pearson's rho, and predictions (n_sizes, samples, n) of a direction.

    Predictions stand at the rows that are predicted.
    """
    p = problem
    target = future(direction.target.series.values[:, 0], p.Tp)
    n, predict = len(target), fitted if p.theta is not None else _projected
    begin, end = max(p.Tp, 0), max(min(n, n + p.Tp), 0)
    for place, number, predicted in predict(engine, pair, p, direction):
        if p.measure != "pearson":
            rho[place, number] = measure(p.measure, predicted[None], target)[0]
        if made is not None:
            made[place, number] = np.nan
            made[place, number, begin:end] = predicted[begin - p.Tp : end - p.Tp]


def _projected(
    engine: SampledSkill, pair: CcmPair, problem: CcmProblem, direction: Direction
) -> Iterator[tuple[int, int, Doubles]]:
    """As :func:`~pyedmcl.edm.ccm.ccm_smap.fitted`, by nearest neighbours."""
    states, p = engine.states, problem
    target = future(direction.target.series.values[:, 0], p.Tp)
    library = states.library[pair.library][None]
    query = library if states.query is states.library else states.query[pair.library][None]
    for place, members in enumerate(p.sub_libraries(engine, pair)):
        for number, drawn in enumerate(members):
            projector = Projector(engine.executor, states.problem, target, drawn)
            try:
                yield place, number, projector.predict(library, query)[0][0]
            finally:
                projector.release()
