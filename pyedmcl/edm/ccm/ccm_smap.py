"""Cross mapping by locally weighted linear fits: one set of fits for each random sub-library, many sets at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...data.condition import condition
from ...engines.ccm import SampledSkill
from ...engines.smap import LocalFits
from ...engines.smap_map import SmapMap
from ...engines.smap_map_data import SmapMapData, left_around
from ...engines.sub_libraries import CcmPair
from ..forecasts.smap_fit import skill
from ..maps.linear_fits import require_double
from ..shared.regression import MOST_COORDINATES
from ..shared.states import embed, future

if TYPE_CHECKING:
    from ..shared.ccm_directions import Direction
    from .ccm_problem import CcmProblem


def smap_skill(
    engine: SampledSkill, pair: CcmPair, problem: CcmProblem, direction: Direction
) -> NDArray[np.float64]:
    """rho (n_sizes, samples) of a direction, for the same sub-libraries that the nearest neighbours would have.

    Raises
    ------
    InputError
        The device has no double precision, which sums of products need.
    """
    require_double(engine.executor)
    if direction.library.series.n_series == 1 and direction.library.E <= MOST_COORDINATES:  # what maps take
        return _mapped(engine, pair, problem, direction)
    target = future(direction.target.series.values[:, 0], problem.Tp)
    rho = np.full((len(problem.lib_sizes), problem.sample), np.nan)
    for place, number, predicted in fitted(engine, pair, problem, direction):
        rows = np.isfinite(predicted) & np.isfinite(target)
        rho[place, number] = skill(predicted[None, rows], target[rows])[0][0]
    return rho


def _mapped(
    engine: SampledSkill, pair: CcmPair, problem: CcmProblem, direction: Direction
) -> NDArray[np.float64]:
    """The same where all samples of a size can be fitted together."""
    p, E = problem, direction.library.E
    assert p.theta is not None
    library = condition(direction.library.series.values, "float64", quiet=True)
    observed = direction.target.series.values[:, :1]
    fits = SmapMap(engine.executor, SmapMapData(
        condition(observed, p.dtype, quiet=True).values, library.values, library.exponent, np.array([E]),
        direction.tau, p.Tp, p.exclusion_radius, np.zeros(1, int), {}, True, (p.theta,),
        in_double=condition(observed, "float64", quiet=True).values,
    ))  # fmt: skip
    try:
        every = np.zeros(p.sample, int)
        return np.array([fits.sampled(every, members, 0) for members in p.sub_libraries(engine, pair)], np.float64)
    finally:
        fits.release()


def fitted(
    engine: SampledSkill, pair: CcmPair, problem: CcmProblem, direction: Direction
) -> Iterator[tuple[int, int, NDArray[np.float64]]]:
    """(number of the size, of the sample, predictions (n,) at the rows of states) of each sub-library, one by one.

    NaN where a sub-library leaves fewer rows than a fit has coefficients.

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
                of_queries = fits.fit(coordinates[queries], queries, np.array([p.theta])).predicted
            finally:
                fits.release()
            predicted = np.full(len(target), np.nan)
            enough = left_around(drawn[None], p.exclusion_radius)[0, queries] > library.E
            predicted[queries[enough]] = of_queries[0][enough]
            yield place, number, predicted
