"""Cross mapping by locally weighted linear fits: one set of fits for each random sub-library."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..engines.ccm import SampledSkill
from ..engines.smap import LocalFits
from ..engines.sub_libraries import CcmPair
from .linear_fits import require_double
from .smap_fit import skill
from .states import embed, future

if TYPE_CHECKING:
    from .ccm_directions import Direction
    from .ccm_problem import CcmProblem


def smap_skill(
    engine: SampledSkill, pair: CcmPair, problem: CcmProblem, direction: Direction
) -> NDArray[np.float64]:
    """rho (n_sizes, samples) of a direction, for the same sub-libraries that the nearest neighbours would have."""
    target = future(direction.target.series.values[:, 0], problem.Tp)
    rho = np.full((len(problem.lib_sizes), problem.sample), np.nan)
    for place, number, predicted in fitted(engine, pair, problem, direction):
        rows = np.isfinite(predicted) & np.isfinite(target)
        rho[place, number] = skill(predicted[None, rows], target[rows])[0][0]
    return rho


def fitted(
    engine: SampledSkill, pair: CcmPair, problem: CcmProblem, direction: Direction
) -> Iterator[tuple[int, int, NDArray[np.float64]]]:
    """(number of the size, of the sample, predictions (n,) at the rows of states) of each sub-library.

    Raises
    ------
    InputError
        The device has no double precision, which sums of products need.
    """
    executor, p = engine.executor, problem
    require_double(executor)
    library = direction.library
    coordinates = embed(library.series.values, library.lags, direction.tau).astype(np.float64)
    target = future(direction.target.series.values[:, 0], p.Tp)
    queries = np.flatnonzero(np.isfinite(coordinates).all(axis=1) & np.isfinite(target))
    for place, members in enumerate(p.sub_libraries(engine, pair)):
        for number, drawn in enumerate(members):
            rows = np.flatnonzero(drawn)
            fits = LocalFits(
                executor, coordinates[rows], target[rows], rows, exclusion_radius=p.exclusion_radius, dtype=p.dtype
            )
            try:
                found = fits.fit(coordinates[queries], queries, np.array([p.theta])).predicted
            finally:
                fits.release()
            predicted = np.full(len(target), np.nan)
            predicted[queries] = found[0]
            yield place, number, predicted
