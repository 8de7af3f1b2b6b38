"""Forecast skill against one parameter: the prediction interval, the exclusion radius, the localisation of S-map."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..device.select import DeviceNames
from ..errors import InputError, pandas_for
from ..jobs.runner import ListSink, public_function
from ..launch.progress import Progress
from ..results.result import Result
from ..search.choose import SearchRequest
from ..states import arguments
from ..states.arguments import PredictionOptions
from ..states.states import THETAS, check_thetas
from ..states.states import prepare as regression_prepare
from .simplex import SimplexProblem, prepare
from .smap import NonlinearResult, SmapProblem, skill, solver_of, warn_of_few

# Forecast skill against one parameter that was varied.


@dataclass(frozen=True, repr=False)
class SkillResult(Result):
    """Forecast skill against a parameter.

    Attributes
    ----------
    parameter : str
        "Tp" or "exclusion_radius".
    values : ndarray of int (n,)
        What it was set to.
    rho, mae, rmse : ndarray of float64 (n,)
    E : int

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> result = pyedmcl.predict_interval(network.values[:, 0], Tp=[1, 2, 4], E=3)
    >>> result.parameter, result.rho.round(2).tolist(), result.best
    ('Tp', [0.99, 0.96, 0.85], 1)
    >>> result.to_frame().columns.tolist()
    ['Tp', 'rho', 'mae', 'rmse']
    """

    answer_columns = ("Tp", "exclusion_radius", "theta", "-rho", "mae", "rmse")

    parameter: str
    values: NDArray[np.int_]
    rho: NDArray[np.float64]
    mae: NDArray[np.float64]
    rmse: NDArray[np.float64]
    E: int
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def best(self) -> int | None:
        """Value of the highest rho, the first of a tie; None where no rho is defined."""
        if np.isnan(self.rho).all():
            return None
        return int(self.values[np.where(np.isnan(self.rho), -np.inf, self.rho).argmax()])

    def to_frame(self) -> Any:
        """A pandas DataFrame with the parameter, rho, mae and rmse."""
        columns = {self.parameter: self.values, "rho": self.rho, "mae": self.mae, "rmse": self.rmse}
        return pandas_for("to_frame()").DataFrame(columns)

    def plot(self, path: str | None = None) -> Any:
        """rho against the parameter; saved to ``path`` if given. Needs matplotlib."""
        from ..plot.curves import skill_against_parameter

        return skill_against_parameter(self, path)


# Simplex projections that differ in one parameter.


def integers(name: str, given: Any, least: int | None = None) -> list[int]:
    """One integer or several different ones of at least ``least``."""
    values = [arguments.integer(name, value, least) for value in arguments.several(name, given)]
    if not values or len(set(values)) != len(values):
        raise InputError(f"{name}={arguments.shown(given)}: at least one integer is needed, and none twice")
    return values


def skill_over(
    parameter: str, values: Sequence[int], data: tuple[Any, Any, Any], options: PredictionOptions, dtype: str,
    device: DeviceNames,
) -> SkillResult:  # fmt: skip
    """Skill of simplex for each value of a parameter.

    Parameters
    ----------
    parameter : str
        Which of the options varies.
    data : tuple
        lib, pred and target of :func:`pyedmcl.simplex`.
    dtype, device
        As for :func:`pyedmcl.simplex`.
    """
    changes: list[dict[str, Any]] = [{parameter: value} for value in values]
    projections = tuple(
        prepare(*data, replace(options, **change), quiet=place > 0) for place, change in enumerate(changes)
    )
    problem = SimplexProblem(projections, dtype, SearchRequest())
    runner, sink = arguments.runner_on(device, dtype), ListSink(problem.blocks())
    record = runner.run(problem, sink)
    forecasts = [forecast for block in sink.results() for _, forecast in block]
    rho, mae, rmse = np.array([(forecast.rho, forecast.mae, forecast.rmse) for forecast in forecasts]).T
    used = runner.provenance(problem.kernels, record)
    return SkillResult(parameter, np.array(values), rho.copy(), mae.copy(), rmse.copy(), projections[0].E, used)


# Forecast skill against the prediction interval: how fast does a system forget?


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
    lib : array_like (n,) or (n, columns)
        The library series, time along the first axis, NaN for gaps. Of several columns each is embedded.
    pred : array_like (m,) or (m, columns), optional
        Another series to predict; by default ``lib`` itself, leaving each row out of its own neighbours.
    target : array_like (n,), optional
        Series of the library's length whose values are predicted; ``lib`` by default, needed where that has several
        columns.
    Tp : int or sequence of int
        Steps ahead; 0 or negative are allowed.
    E : int, optional
        Embedding dimension, at least 1; with ``embedded`` the number of columns.
    tau : int
        Lag between the coordinates of a state, in steps; at least 1.
    knn : int, optional
        Neighbours; the number of coordinates + 1 by default.
    exclusion_radius : int
        Rows with |t - j| up to this are no neighbours (0: the row itself). Without effect with ``pred``.
    state : sequence of str or int, optional
        Columns of ``lib`` that together are one state, by name or position; of ``pred`` too, where it is a table.
    embedded : bool
        The columns of ``lib`` are the coordinates themselves; E is then their number.
    lib_range : (int, int), sequence of (int, int), or mask of bool, optional
        Rows of the library: ranges begin <= t < end, 0-based, in which lags and targets of a row lie, too; or a mask,
        whose rows are taken as they are.
    pred_range : (int, int), sequence of (int, int), or mask of bool, optional
        Rows that are predicted, in the same form; their lags may lie before them.
    valid_lib : mask of bool (n_steps,), optional
        Rows that may be used, in addition to ``lib_range`` (conditional embedding).
    groups : str, sequence of str, or labels (n_steps,), optional
        Recordings (subjects, plots, replicates) that stand one below the other: columns of the data or levels of its
        index, or a label for each row. No state and no target crosses a border. Predictions are of each row with all
        its lags, group by group. With ``pred``, that is in groups where it has that column or level.
    regular : {"insert", "ignore"}, optional
        What is done where times of rows (an index of dates or numbers, a coordinate, a time column) are not regular,
        which is refused by default. "insert" puts rows of NaN where rows are missing: ranges and masks are moved along,
        and rows of the result are those of the longer table. "ignore" takes the rows as they come. Dates whose index
        has a frequency are regular.
    progress : callable or True, optional
        Called as ``progress(done, total, unit)``, where the unit says what is counted, such as "series"; True shows a
        bar.
    dtype : {"float32", "float64"}
        What the device computes in.
    device : str or sequence of str, optional
        Which device, or several that share the work; see ``pyedmcl devices``.
    tune : {"never", "cached", "auto", "force"}, optional
        Which tuned parameters kernels take, which changes speed and never the answer; ``PYEDMCL_TUNE`` or "cached" by
        default.

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
    options = PredictionOptions(
        E, tau, knn=knn, exclusion_radius=exclusion_radius, embedded=embedded, lib_range=lib_range,
        pred_range=pred_range, valid_lib=valid_lib, groups=groups, state=state,
    )  # fmt: skip
    return skill_over("Tp", integers("Tp", Tp), (lib, pred, target), options, dtype, device)


# Forecast skill against the exclusion radius: how much of it is only nearness in time?


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
    lib : array_like (n,) or (n, columns)
        The library series, time along the first axis, NaN for gaps. Of several columns each is embedded.
    target : array_like (n,), optional
        Series of the library's length whose values are predicted; ``lib`` by default, needed where that has several
        columns.
    exclusion_radius : int or sequence of int
        Rows with |t - j| up to this are no neighbours.
    E : int, optional
        Embedding dimension, at least 1; with ``embedded`` the number of columns.
    tau : int
        Lag between the coordinates of a state, in steps; at least 1.
    Tp : int
        Steps ahead; 0 or negative are allowed.
    knn : int, optional
        Neighbours; the number of coordinates + 1 by default.
    state : sequence of str or int, optional
        Columns of ``lib`` that together are one state, by name or position; of ``pred`` too, where it is a table.
    embedded : bool
        The columns of ``lib`` are the coordinates themselves; E is then their number.
    lib_range : (int, int), sequence of (int, int), or mask of bool, optional
        Rows of the library: ranges begin <= t < end, 0-based, in which lags and targets of a row lie, too; or a mask,
        whose rows are taken as they are.
    pred_range : (int, int), sequence of (int, int), or mask of bool, optional
        Rows that are predicted, in the same form; their lags may lie before them.
    valid_lib : mask of bool (n_steps,), optional
        Rows that may be used, in addition to ``lib_range`` (conditional embedding).
    groups : str, sequence of str, or labels (n_steps,), optional
        Recordings (subjects, plots, replicates) that stand one below the other: columns of the data or levels of its
        index, or a label for each row. No state and no target crosses a border.
    regular : {"insert", "ignore"}, optional
        What is done where times of rows (an index of dates or numbers, a coordinate, a time column) are not regular,
        which is refused by default. "insert" puts rows of NaN where rows are missing: ranges and masks are moved along,
        and rows of the result are those of the longer table. "ignore" takes the rows as they come. Dates whose index
        has a frequency are regular.
    progress : callable or True, optional
        Called as ``progress(done, total, unit)``, where the unit says what is counted, such as "series"; True shows a
        bar.
    dtype : {"float32", "float64"}
        What the device computes in.
    device : str or sequence of str, optional
        Which device, or several that share the work; see ``pyedmcl devices``.
    tune : {"never", "cached", "auto", "force"}, optional
        Which tuned parameters kernels take, which changes speed and never the answer; ``PYEDMCL_TUNE`` or "cached" by
        default.

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
    options = PredictionOptions(
        E, tau, Tp, knn, embedded=embedded, lib_range=lib_range, pred_range=pred_range, valid_lib=valid_lib,
        groups=groups, state=state,
    )  # fmt: skip
    radii = integers("exclusion_radius", exclusion_radius, 0)
    return skill_over("exclusion_radius", radii, (lib, None, target), options, dtype, device)


# Skill of S-map against its localisation: does a series depend on its state nonlinearly?


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
    lib : array_like (n,) or (n, columns)
        The library series, time along the first axis, NaN for gaps. Of several columns each is embedded.
    pred : array_like (m,) or (m, columns), optional
        Another series to predict; by default ``lib`` itself, leaving each row out of its own neighbours.
    target : array_like (n,), optional
        Series of the library's length whose values are predicted; ``lib`` by default, needed where that has several
        columns.
    E : int, optional
        Embedding dimension, at least 1; with ``embedded`` the number of columns.
    tau : int
        Lag between the coordinates of a state, in steps; at least 1.
    Tp : int
        Steps ahead; 0 or negative are allowed.
    theta : sequence of float
        Localisations, each at least 0.
    knn : int, optional
        Only the ``knn`` nearest library rows enter a fit; all by default.
    exclusion_radius : int
        Rows with |t - j| up to this are no neighbours (0: the row itself). Without effect with ``pred``.
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
    lib_range : (int, int), sequence of (int, int), or mask of bool, optional
        Rows of the library: ranges begin <= t < end, 0-based, in which lags and targets of a row lie, too; or a mask,
        whose rows are taken as they are.
    pred_range : (int, int), sequence of (int, int), or mask of bool, optional
        Rows that are predicted, in the same form; their lags may lie before them.
    valid_lib : mask of bool (n_steps,), optional
        Rows that may be used, in addition to ``lib_range`` (conditional embedding).
    groups : str, sequence of str, or labels (n_steps,), optional
        Recordings (subjects, plots, replicates) that stand one below the other: columns of the data or levels of its
        index, or a label for each row. No state and no target crosses a border. Predictions are of each row with all
        its lags, group by group. With ``pred``, that is in groups where it has that column or level.
    regular : {"insert", "ignore"}, optional
        What is done where times of rows (an index of dates or numbers, a coordinate, a time column) are not regular,
        which is refused by default. "insert" puts rows of NaN where rows are missing: ranges and masks are moved along,
        and rows of the result are those of the longer table. "ignore" takes the rows as they come. Dates whose index
        has a frequency are regular.
    progress : callable or True, optional
        Called as ``progress(done, total, unit)``, where the unit says what is counted, such as "series"; True shows a
        bar.
    dtype : {"float32", "float64"}
        What the device computes in. Normal equations are float64 in either case.
    device : str or sequence of str, optional
        Which device, or several that share the work; see ``pyedmcl devices``.
    tune : {"never", "cached", "auto", "force"}, optional
        Which tuned parameters kernels take, which changes speed and never the answer; ``PYEDMCL_TUNE`` or "cached" by
        default.

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
    thetas = check_thetas(theta)
    neighbours = knn
    chosen = solver_of(solver, alpha)
    options = PredictionOptions(
        E, tau, Tp, exclusion_radius=exclusion_radius, embedded=embedded, lib_range=lib_range, pred_range=pred_range,
        valid_lib=valid_lib, groups=groups, state=state,
    )  # fmt: skip
    regression = regression_prepare(lib, pred, target, options)
    if chosen.name == "svd":
        warn_of_few(regression, neighbours)
    problem = SmapProblem(regression, thetas, neighbours, chosen, dtype)
    runner, sink = arguments.runner_on(device, dtype), ListSink(problem.blocks())
    record = runner.run(problem, sink)
    ((regression, fits),) = sink.results()
    used = runner.provenance(problem.kernels, record, solver=chosen.described)
    return NonlinearResult(thetas, *skill(fits.predicted, regression.observed, regression.library), regression.E, used)
