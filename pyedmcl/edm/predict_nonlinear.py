"""Skill of S-map against its localisation: does a series depend on its state nonlinearly?"""

from __future__ import annotations

from typing import Any

from ..device.session import open_device
from ..tuning.retry import tunable
from . import arguments
from .provenance import provenance
from .smap import KERNELS
from .smap_fit import fit_rows, local_fits, skill
from .smap_problem import check_knn, check_thetas, prepare
from .smap_result import NonlinearResult
from .smap_solvers import fit_by_estimator, solver_of

THETAS = (0.01, 0.1, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0)


@tunable
def predict_nonlinear(
    lib: Any,
    pred: Any = None,
    *,
    target: Any = None,
    E: int | None = None,
    tau: int = 1,
    Tp: int = 1,
    theta: Any = THETAS,
    knn: int | None = None,
    exclusion_radius: int = 0,
    solver: Any = "svd",
    alpha: float = 1.0,
    embedded: bool = False,
    lib_range: Any = None,
    pred_range: Any = None,
    valid_lib: Any = None,
    dtype: str = "float32",
    device: str | None = None,
    tune: str | None = None,
) -> NonlinearResult:
    """Find out whether predictions improve when linear fits are local: skill of S-map over a range of theta, in one
    pass.

    A skill that rises from theta = 0 to a maximum says that the dynamics depend on the state (Sugihara, Phil. Trans. R.
    Soc. A 348, 477, 1994).

    Parameters
    ----------
    theta : sequence of float
        Localisations, each at least 0.
    lib, pred, target, E, tau, Tp, knn, exclusion_radius, solver, alpha, embedded, lib_range, pred_range, valid_lib,
    dtype, device, tune
        As for :func:`pyedmcl.smap`.

    Returns
    -------
    NonlinearResult

    Raises
    ------
    InputError
        An argument cannot be used.
    MissingExtraError
        The solver needs scikit-learn, which is not installed.
    DeviceNotFoundError, DeviceMemoryError
        No device matches; the sums of a few rows do not fit on it.

    See Also
    --------
    smap : the fits behind each value.

    Notes
    -----
    Cost: that of :func:`smap` for each theta; distances are shared.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> result = pyedmcl.predict_nonlinear(network.values[:, 0], E=2, theta=[0.0, 1.0, 4.0])
    >>> bool(result.rho[2] > result.rho[0])  # local fits are better: the map is nonlinear
    True
    """
    thetas = check_thetas(theta)
    neighbours = check_knn(knn)
    arguments.precision(dtype)
    chosen = solver_of(solver, alpha)
    problem = prepare(
        lib, pred, target, E=E, tau=tau, Tp=Tp, exclusion_radius=exclusion_radius, embedded=embedded,
        lib_range=lib_range, pred_range=pred_range, valid_lib=valid_lib,
    )  # fmt: skip
    executor = open_device(device)
    dtype = arguments.precision(dtype, executor.info.fp64, executor.info.name)
    if chosen.estimator is not None:
        fits = fit_by_estimator(problem, thetas, neighbours, chosen.estimator)
        record = provenance(executor, (), {}, solver=type(chosen.estimator).__name__)
        return NonlinearResult(thetas, *skill(fits.predicted, problem.observed), problem.E, record)
    engine = local_fits(executor, problem, neighbours, chosen.alpha, dtype)
    try:
        fits = fit_rows(engine, problem, thetas)
        record = provenance(executor, KERNELS, engine.parameters, grade=engine.grade, solver=chosen.name)
    finally:
        engine.release()
    return NonlinearResult(thetas, *skill(fits.predicted, problem.observed), problem.E, record)
