"""Cross mapping by locally weighted linear fits: one set of fits for each random sub-library."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..engines.ccm import SampledSkill
from ..engines.smap import LocalFits
from ..engines.sub_libraries import CcmPair
from ..errors import InputError
from .smap_fit import skill
from .states import embed, future

if TYPE_CHECKING:
    from .ccm_directions import Direction
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
    executor, p = engine.executor, problem
    if not executor.info.fp64:
        raise InputError(
            f"method='smap': {executor.info.name} lacks double precision, which sums of products need; choose another "
            "device, such as device='cpu'"
        )
    library = direction.library
    coordinates = embed(library.series.values, library.lags, direction.tau).astype(np.float64)
    target = future(direction.target.series.values[:, 0], p.Tp)
    queries = np.flatnonzero(np.isfinite(coordinates).all(axis=1) & np.isfinite(target))
    rho = np.full((len(p.lib_sizes), p.sample), np.nan)
    if p.group_of is None:
        sampled = engine.members(pair, p.lib_sizes, p.sample, p.seed)
    else:
        sampled = (p.members(engine.library_mask(pair), pair, size) for size in p.lib_sizes)
    for place, members in enumerate(sampled):
        for number, drawn in enumerate(members):
            rows = np.flatnonzero(drawn)
            fits = LocalFits(
                executor, coordinates[rows], target[rows], rows, exclusion_radius=p.exclusion_radius, dtype=p.dtype
            )
            try:
                predicted = fits.fit(coordinates[queries], queries, np.array([p.theta])).predicted
            finally:
                fits.release()
            rho[place, number] = skill(predicted, target[queries])[0][0]
    return rho
