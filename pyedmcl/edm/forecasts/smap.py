"""S-map: prediction by locally weighted linear regression."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...data.dates import times_at
from ...data.series import name_of, time_of
from ...device.select import DeviceNames
from ...jobs.function import public_function
from ...jobs.sinks import ListSink
from ...launch.progress import Progress
from ..shared import arguments
from ..shared.options import PredictionOptions
from ..shared.regression import check_knn, check_thetas, prepare
from .smap_fit import check_generation, skill, warn_of_few
from .smap_problem import SmapProblem
from .smap_result import SmapResult
from .smap_solvers import solver_of


@public_function
def smap(
    lib: Any,
    pred: Any = None,
    *,
    target: Any = None,
    E: int | None = None,
    tau: int = 1,
    Tp: int = 1,
    theta: Any = 0.0,
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
    generate_steps: int = 0,
    singular_values: bool = False,
    progress: Progress | None = None,
    dtype: str = "float32",
    device: DeviceNames = None,
    tune: str | None = None,
) -> SmapResult:
    """Predict each row by a linear fit to the whole library, weighted by nearness to the row.

    With d the distance of a library row and d_mean its mean over the query's neighbours, W = exp(-theta d / d_mean);
    the fit minimises sum W^2 (y - c0 - c.x)^2 (Sugihara, Phil. Trans. R. Soc. A 348, 477, 1994). theta = 0 is the
    linear autoregressive model; the slopes c are the row's Jacobian (Deyle et al., Proc. R. Soc. B 283, 20152258,
    2016).

    Parameters
    ----------
    lib : array_like (n,) or (n, columns)
        The library series, time along the first axis, NaN for gaps. Of several columns each is embedded.
    pred : array_like (m,) or (m, columns), optional
        Other series to predict; by default ``lib`` itself, leaving each row out of its own fit.
    target : array_like (n,), optional
        The series whose values are predicted; ``lib`` by default, needed where that has several columns.
    E, tau : int
        Embedding dimension and lag, at least 1.
    Tp : int
        Steps ahead; 0 or negative are allowed.
    theta : float or sequence of float
        Localisation, at least 0; several are computed in one pass.
    knn : int, optional
        Only the ``knn`` nearest library rows enter a fit; all by default.
    exclusion_radius : int
        Library rows with |t - j| up to this are left out (0: the row itself). Without effect with ``pred``.
    solver : "svd", "ridge", "lasso", "elasticnet" or a scikit-learn estimator
        "svd" is least squares, of least norm where the fit is not unique. "ridge" adds alpha |c|^2. Both are computed
        on the device. The others are fitted row by row on the host, with W^2 as sample weights where the estimator
        takes them, else on columns and target multiplied by W.
    alpha : float
        Penalty of "ridge", and ``alpha`` of scikit-learn's Lasso and ElasticNet; above 0.
    state : sequence of str or int, optional
        Columns of ``lib`` that together are one state, by name or position; of ``pred`` too, where it is a table.
    embedded : bool
        The columns of ``lib`` are the coordinates themselves; E is then their number.
    lib_range, pred_range : (int, int), sequence of (int, int), or mask of bool, optional
        Rows of the library and rows that are predicted: ranges begin <= t < end, 0-based. Lags and targets of a library
        row lie inside its own range. A mask's rows are taken as they are.
    valid_lib : mask of bool (n,), optional
        Library rows that may be used, in addition to ``lib_range``.
    groups : str, sequence of str, or labels (n,), optional
        Recordings (subjects, plots, replicates) that stand one below the other: a column of ``lib`` or a level of its
        index, or a label for each row. No state and no target crosses a border between groups. Predictions
        are of each row with all its lags, group by group. With ``pred``, that is in groups where it has that column
        or level.
    regular : {"insert", "ignore"}, optional
        What is done where times of rows are not regular, as for :func:`pyedmcl.xmap`.
    generate_steps : int
        Continue the series instead: predict the step after its last one, append it, and so on, with an unchanging
        library. For a single series with Tp = 1.
    singular_values : bool
        Also return those of each weighted fit (costs more than the fits).
    dtype : {"float32", "float64"}
        What distances and weights are computed in. Normal equations are float64 in either case.
    progress : callable or True, optional
        Called as ``progress(done, total, "predictions")``; True shows a bar.
    device, tune
        As for :func:`pyedmcl.knn`.

    Returns
    -------
    SmapResult
        One entry per predicted row; with a sequence of theta a first axis over it.

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
    predict_nonlinear : skill against theta.
    simplex : means of neighbours instead of fits.

    Notes
    -----
    Cost: about n^2 * ((E + 1)^2 / 2 + E) multiply-adds for each theta: every library row enters every fit.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> result = pyedmcl.smap(network.values[:, 0], E=2, theta=2.0)
    >>> result.coefficients.shape  # the intercept, and a slope for each lag
    (399, 3)
    >>> float(result.rho) > 0.8
    True
    """
    arguments.reporter(progress)
    thetas = check_thetas(theta)
    neighbours = check_knn(knn)
    steps = arguments.integer("generate_steps", generate_steps, 0, most=arguments.MOST_GENERATED)
    dtype = arguments.precision(dtype)
    chosen = solver_of(solver, alpha)
    options = PredictionOptions(
        E, tau, Tp, exclusion_radius=exclusion_radius, embedded=embedded, lib_range=lib_range, pred_range=pred_range,
        valid_lib=valid_lib, groups=groups, state=state,
    )  # fmt: skip
    regression = prepare(lib, pred, target, options)
    if steps:
        check_generation(regression, chosen.estimator is not None, embedded, target is not None, steps)
    if chosen.name == "svd":
        warn_of_few(regression, neighbours)
    problem = SmapProblem(regression, thetas, neighbours, chosen, dtype, singular_values, steps)
    runner, sink = arguments.runner_on(device, dtype), ListSink(problem.blocks())
    record = runner.run(problem, sink)
    ((regression, fits),) = sink.results()
    rho, mae, rmse = skill(fits.predicted, regression.observed)
    several = np.ndim(theta) > 0

    def one(values: Any) -> Any:
        return values if several else values[0]

    sizes = fits.singular_values
    shown = regression.entries()
    alone = None if shown.group is not None else lib if pred is None else pred  # of groups rows are counted
    return SmapResult(
        time=shown.time,
        observed=regression.observed[shown.kept],
        theta=thetas if several else float(thetas[0]),
        predicted=one(fits.predicted[:, shown.kept]),
        variance=one(fits.variance[:, shown.kept]),
        coefficients=one(fits.coefficients[:, shown.kept]),
        singular_values=None if sizes is None else one(sizes[:, shown.kept]),
        rho=rho if several else float(rho[0]),
        mae=mae if several else float(mae[0]),
        rmse=rmse if several else float(rmse[0]),
        names=regression.names,
        E=regression.E,
        redone=fits.redone,
        group=shown.group,
        provenance=runner.provenance(problem.kernels, record, solver=chosen.described),
        dates=None if alone is None else times_at(time_of(alone), shown.time),
        name="" if alone is None else name_of(lib if target is None else target),
    )
