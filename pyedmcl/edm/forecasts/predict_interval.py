"""Forecast skill against the prediction interval: how fast does a system forget?"""

from __future__ import annotations

from typing import Any

from ...device.select import DeviceNames
from ...jobs.function import public_function
from ...launch.progress import Progress
from ..shared import arguments
from ..shared.options import PredictionOptions
from .skill_result import SkillResult
from .vary import integers, skill_over


@public_function
def predict_interval(
    lib: Any,
    pred: Any = None,
    *,
    target: Any = None,
    Tp: Any = tuple(range(1, 11)),
    E: int | None = None,
    tau: int = 1,
    knn: int | None = None,
    exclusion_radius: int = 0,
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
    """Skill of simplex projection for several prediction intervals Tp.

    Skill that falls with Tp tells deterministic chaos from noise that is correlated in time (Sugihara and May, Nature
    344, 734, 1990).

    Parameters
    ----------
    Tp : int or sequence of int
        Steps ahead; 0 or negative are allowed.
    regular : {"insert", "ignore"}, optional
        What is done where times of rows are not regular, as for :func:`pyedmcl.xmap`.
    progress : callable or True, optional
        Called as ``progress(done, total, "queries")``; True shows a bar.
    lib, pred, target, E, tau, knn, exclusion_radius, state, embedded, lib_range, pred_range, valid_lib, groups, dtype,
    device, tune
        As for :func:`pyedmcl.simplex`.

    Returns
    -------
    SkillResult
        ``values`` are those of Tp.

    Raises
    ------
    InputError
        An argument cannot be used.
    DeviceNotFoundError
        No device matches.

    See Also
    --------
    predict_nonlinear : skill against theta.
    predict_exclusion_radius : skill against the exclusion radius.

    Notes
    -----
    Cost: that of :func:`simplex` for each Tp.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> result = pyedmcl.predict_interval(network.values[:, 0], Tp=[1, 2, 4], E=3)
    >>> bool(result.rho[0] > result.rho[2])  # chaos: skill falls with Tp
    True
    """
    arguments.reporter(progress)
    options = PredictionOptions(
        E, tau, knn=knn, exclusion_radius=exclusion_radius, embedded=embedded, lib_range=lib_range,
        pred_range=pred_range, valid_lib=valid_lib, groups=groups, state=state,
    )  # fmt: skip
    return skill_over("Tp", integers("Tp", Tp), (lib, pred, target), options, dtype, device)
