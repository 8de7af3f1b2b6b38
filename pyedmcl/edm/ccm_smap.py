"""Cross mapping by locally weighted linear fits: one set of fits for each random sub-library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..engines.ccm import SampledSkill
from ..engines.smap import LocalFits
from ..engines.subsets import Link
from ..errors import InputError
from .ccm_problem import Direction
from .smap_fit import skill
from .states import embed, future

if TYPE_CHECKING:
    from ..device.executor import Executor


def smap_skill(
    executor: Executor, engine: SampledSkill, link: Link, way: Direction, sizes: Sequence[int], samples: int, seed: int,
    *, tau: int, Tp: int, exclusion_radius: int, theta: float, dtype: str,
) -> NDArray[np.float64]:  # fmt: skip
    """rho (n_sizes, samples) of a direction, for the same sub-libraries that the nearest neighbours would have.

    Raises
    ------
    InputError
        The device has no double precision, which sums of products need.
    """
    if not executor.info.fp64:
        raise InputError(
            f"method='smap': {executor.info.name} lacks double precision, which sums of products need; choose another "
            "device, such as device='cpu'"
        )
    coordinates = embed(way.library.series.values, way.library.lags, tau).astype(np.float64)
    aim = future(way.target.series.values[:, 0], Tp)
    asked = np.flatnonzero(np.isfinite(coordinates).all(axis=1) & np.isfinite(aim))
    rho = np.full((len(sizes), samples), np.nan)
    for place, members in enumerate(engine.members(link, sizes, samples, seed)):
        for number, drawn in enumerate(members):
            rows = np.flatnonzero(drawn)
            library = executor, coordinates[rows], aim[rows], rows
            fits = LocalFits(*library, exclusion_radius=exclusion_radius, dtype=dtype)
            try:
                predicted = fits.fit(coordinates[asked], asked, np.array([theta])).predicted
            finally:
                fits.release()
            rho[place, number] = skill(predicted, aim[asked])[0][0]
    return rho
