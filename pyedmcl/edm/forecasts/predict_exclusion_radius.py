"""Forecast skill against the exclusion radius: how much of it is only nearness in time?"""

from __future__ import annotations

from typing import Any

from ...device.select import DeviceNames
from ...jobs.function import public_function
from ...launch.progress import Progress
from ..shared import arguments
from ..shared.options import PredictionOptions
from .skill_result import SkillResult
from .vary import integers, skill_over

RADII = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 18, 20, 25, 30)


@public_function
def predict_exclusion_radius(
    lib: Any,
    *,
    target: Any = None,
    exclusion_radius: Any = RADII,
    E: int | None = None,
    tau: int = 1,
    Tp: int = 1,
    knn: int | None = None,
    state: Any = None,
    embedded: bool = False,
    lib_range: Any = None,
    pred_range: Any = None,
    valid_lib: Any = None,
    groups: Any = None,
    regular: str | None = None,
    progress: Progress | None = None,
    dtype: str = "float32",
    device: DeviceNames = None,
    tune: str | None = None,
) -> SkillResult:
    """Skill of simplex projection of a series by itself for several exclusion radii.

    Neighbours in time are neighbours in state space only because a system moves slowly; skill that they give is no
    evidence of recurring dynamics (Theiler, Phys. Rev. A 34, 2427, 1986). Choose a radius beyond which skill no longer
    falls.

    Parameters
    ----------
    exclusion_radius : int or sequence of int
        Rows with |t - j| up to this are no neighbours.
    regular : {"insert", "ignore"}, optional
        What is done where times of rows are not regular, as for :func:`pyedmcl.xmap`.
    progress : callable or True, optional
        Called as ``progress(done, total, "queries")``; True shows a bar.
    lib, target, E, tau, Tp, knn, state, embedded, lib_range, pred_range, valid_lib, groups, dtype,
    device, tune
        As for :func:`pyedmcl.simplex`.

    Returns
    -------
    SkillResult
        ``values`` are the radii.

    Raises
    ------
    InputError
        An argument cannot be used.
    DeviceNotFoundError
        No device matches.

    See Also
    --------
    predict_interval : skill against Tp.

    Notes
    -----
    Cost: that of :func:`simplex` for each radius.

    Examples
    --------
    >>> import numpy as np
    >>> import pyedmcl
    >>> x = np.sin(np.arange(500) * 0.2)
    >>> pyedmcl.predict_exclusion_radius(x, exclusion_radius=[0, 5], E=2).rho.shape
    (2,)
    """
    arguments.reporter(progress)
    options = PredictionOptions(
        E, tau, Tp, knn, embedded=embedded, lib_range=lib_range, pred_range=pred_range, valid_lib=valid_lib,
        groups=groups, state=state,
    )  # fmt: skip
    radii = integers("exclusion_radius", exclusion_radius, 0)
    return skill_over("exclusion_radius", radii, (lib, None, target), options, dtype, device)
