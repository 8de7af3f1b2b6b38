"""Skill of S-map against its localisation: does a series depend on its state nonlinearly?"""

from __future__ import annotations

from typing import Any

from ...device.select import DeviceNames
from ...jobs.function import public_function
from ...jobs.sinks import ListSink
from ...launch.progress import Progress
from ..shared import arguments
from ..shared.options import PredictionOptions
from ..shared.regression import check_knn, check_thetas, prepare
from .smap_fit import skill, warn_of_few
from .smap_problem import SmapProblem
from .smap_result import NonlinearResult
from .smap_solvers import solver_of

THETAS = (0.01, 0.1, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0)


@public_function
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
) -> NonlinearResult:
    """Find out whether predictions improve when linear fits are local: skill of S-map over a range of theta, in one
    pass.

    A skill that rises from theta = 0 to a maximum says that the dynamics depend on the state (Sugihara, Phil. Trans. R.
    Soc. A 348, 477, 1994).

    Parameters
    ----------
    theta : sequence of float
        Localisations, each at least 0.
    regular : {"insert", "ignore"}, optional
        What is done where times of rows are not regular, as for :func:`pyedmcl.xmap`.
    progress : callable or True, optional
        Called as ``progress(done, total, "predictions")``; True shows a bar.
    lib, pred, target, E, tau, Tp, knn, exclusion_radius, solver, alpha, state, embedded, lib_range, pred_range,
    valid_lib, groups, dtype, device, tune
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

    Warns
    -----
    PyedmclWarning
        Some fit of solver "svd" has fewer library rows than coefficients.

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
    arguments.reporter(progress)
    thetas = check_thetas(theta)
    neighbours = check_knn(knn)
    dtype = arguments.precision(dtype)
    chosen = solver_of(solver, alpha)
    options = PredictionOptions(
        E, tau, Tp, exclusion_radius=exclusion_radius, embedded=embedded, lib_range=lib_range, pred_range=pred_range,
        valid_lib=valid_lib, groups=groups, state=state,
    )  # fmt: skip
    regression = prepare(lib, pred, target, options)
    if chosen.name == "svd":
        warn_of_few(regression, neighbours)
    problem = SmapProblem(regression, thetas, neighbours, chosen, dtype)
    runner, sink = arguments.runner_on(device, dtype), ListSink(problem.blocks())
    record = runner.run(problem, sink)
    ((regression, fits),) = sink.results()
    used = runner.provenance(problem.kernels, record, solver=chosen.described)
    return NonlinearResult(thetas, *skill(fits.predicted, regression.observed), regression.E, used)
