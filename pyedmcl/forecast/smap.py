"""S-map: prediction of a series by locally weighted linear regression."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..arguments import place_of
from ..device.select import DeviceNames
from ..engines.smap import Fits, LocalFits
from ..engines.smap_device import Library
from ..errors import InputError, missing_extra, need, pandas_for, warn
from ..jobs.blocks import Arrays, Block, BlockResult, Record, Report, cut
from ..jobs.runner import ListSink, public_function
from ..launch.progress import Progress
from ..results.result import ANSWER_ROWS, Answer, Label, Result, common, labelled
from ..series.calendar import times_at
from ..series.scaling import complete_rows, near_one, squares
from ..series.series import name_of, time_of
from ..states import arguments
from ..states.arguments import PredictionOptions
from ..states.rows import fewest
from ..states.states import Regression, check_thetas, prepare

if TYPE_CHECKING:
    from ..device.executor import Executor


# Other solvers of S-map's local fits: ridge on the device, scikit-learn's estimators row by row on the host.


_NAMES = ("svd", "ridge", "lasso", "elasticnet")
_KNOWN = f"one of {', '.join(map(repr, _NAMES))}, or a scikit-learn estimator"


@dataclass(frozen=True)
class Solver:
    """How local fits are solved: on the device with penalty ``alpha``, or by an estimator."""

    name: str
    alpha: float = 0.0
    estimator: Any = None

    @property
    def described(self) -> str:
        """For provenance: an estimator by its class."""
        return self.name if self.estimator is None else type(self.estimator).__name__


def solver_of(solver: Any, alpha: Any) -> Solver:
    """Check ``solver`` and ``alpha``."""
    if isinstance(solver, str):
        if solver not in _NAMES:
            raise InputError(f"solver={arguments.shown(solver)}: {_KNOWN}")
        if solver == "svd":
            return Solver("svd")
        alpha = arguments.real(
            "alpha", alpha, f"the penalty of solver={solver!r}, a finite number above 0,", lambda a: 0 < a < np.inf
        )
        if solver == "ridge":
            return Solver("ridge", float(alpha))
        try:
            from sklearn import linear_model
        except ImportError as error:
            raise missing_extra("scikit-learn", "solvers", f"solver={solver!r}") from error
        kind = linear_model.Lasso if solver == "lasso" else linear_model.ElasticNet
        return Solver(solver, estimator=kind(alpha=float(alpha)))
    if not (hasattr(solver, "fit") and hasattr(solver, "predict")):
        raise InputError(f"solver={arguments.shown(solver)}: {_KNOWN} (with fit and predict)")
    return Solver(type(solver).__name__, estimator=solver)


def fit_by_estimator(
    regression: Regression, thetas: Doubles, knn: int | None, estimator: Any, *, weighting: str = "samples"
) -> Fits:
    """Each row's fit by an estimator, on the host.

    Parameters
    ----------
    thetas : ndarray (n_thetas,)
    estimator : object
        With ``fit`` and ``coef_`` afterwards; ``intercept_`` where it has one.
    weighting : {"samples", "columns"}
        W^2 as sample weights where the estimator takes them (else as "columns"), or columns and target multiplied by W,
        with the estimator's own intercept left unweighted, as pyEDM does.
    """
    out = Fits.empty(len(thetas), len(regression.rows), regression.points.shape[1] + 1, False)
    library = Library(regression.library, regression.target, regression.library_rows, regression.exclusion_radius, knn)
    by_samples = weighting == "samples" and "sample_weight" in inspect.signature(estimator.fit).parameters
    for t in np.flatnonzero(np.isfinite(regression.points).all(axis=1)):
        point = regression.points[t]
        for s, theta in enumerate(thetas):
            near, w, top = library.weights(point, int(regression.rows[t]), float(theta))
            if not len(near):
                continue
            x, y = library.x[near], library.y[near]
            if by_samples:
                fitted = estimator.fit(x, y, sample_weight=(w * top) ** 2)
            else:
                fitted = estimator.fit(x * (w * top)[:, None], y * w * top)
            slopes = np.ravel(fitted.coef_)
            intercept = float(np.ravel(getattr(fitted, "intercept_", 0.0))[0])
            predicted = intercept + float(slopes @ point)
            out.coefficients[s, t] = [intercept, *slopes]
            out.predicted[s, t] = predicted
            apart, exponent = near_one(y - predicted)
            out.variance[s, t] = squares((w * apart**2).sum() / w.sum(), exponent)
    return out


# A regression's rows through the device: fits around all rows, skill over theta, forecasts that feed themselves.


Doubles = NDArray[np.float64]


def local_fits(
    executor: Executor, regression: Regression, knn: int | None, alpha: float, dtype: str, *, once: bool = False
) -> LocalFits:
    """The library of a regression on a device; ``once``: for one set of rows."""
    if not executor.info.fp64:
        raise InputError(
            f"device {executor.info.name}: S-map sums products in double precision, which this device lacks; choose "
            "another one, such as device='cpu'"
        )
    return LocalFits(
        executor, regression.library, regression.target, regression.library_rows,
        exclusion_radius=regression.exclusion_radius, knn=knn, alpha=alpha, dtype=dtype, once=once,
    )  # fmt: skip


def warn_of_few(regression: Regression, knn: int | None) -> None:
    """Say where fits without a penalty have fewer library rows than coefficients, and so are not unique."""
    least, coefficients = _fewest(regression), regression.points.shape[1] + 1
    if least is None or min(least, knn or least) >= coefficients:
        return
    slopes = f"{coefficients - 1} slopes (E={regression.E})"
    needs = f"a fit with an intercept and {slopes} needs {coefficients} library rows"
    if least < coefficients:
        radius = max(regression.exclusion_radius, 0)
        where = f"{needs}; some row has {least} (exclusion_radius={radius})"
        remedy = "Use a smaller E or exclusion_radius, or a longer library"
    else:
        where, remedy = f"{needs}, and knn={knn} leaves fewer", "Use a smaller E, or more neighbours"
    warn(f"{where}. Such fits pass through all of their rows, and say little about the system. {remedy}")


def _fewest(regression: Regression) -> int | None:
    """Library rows of the fit that has the fewest; None where no row is predicted."""
    rows = regression.rows[complete_rows(regression.points)]
    if not len(rows):
        return None
    if regression.exclusion_radius < 0:
        return len(regression.library_rows)
    n = 1 + int(max(regression.library_rows[-1], rows.max()))
    library_mask, predicted_rows = np.zeros(n, bool), np.zeros(n, bool)
    library_mask[regression.library_rows], predicted_rows[rows] = True, True
    return fewest(library_mask, predicted_rows, regression.exclusion_radius)


def fit_rows(engine: LocalFits, regression: Regression, thetas: Doubles, *, singular_values: bool = False) -> Fits:
    """Fits around all rows of a regression; NaN where a row touches a gap."""
    complete = complete_rows(regression.points)
    if complete.all():
        return engine.fit(regression.points, regression.rows, thetas, singular_values=singular_values)
    filled = Fits.empty(len(thetas), len(complete), regression.points.shape[1] + 1, singular_values)
    if not complete.any():
        return filled
    fits = engine.fit(regression.points[complete], regression.rows[complete], thetas, singular_values=singular_values)
    for into, values in zip(filled.arrays(), fits.arrays(), strict=True):
        into[:, complete] = values
    return replace(filled, redone=fits.redone)


def skill(predicted: Doubles, observed: Doubles, states: Doubles) -> tuple[Doubles, Doubles, Doubles]:
    """rho, mae and rmse (n_thetas,) of predictions (n_thetas, n); rho is NaN where ``states`` are all the same."""
    noise = 8 * float(np.finfo(np.float64).eps) * float(np.abs(predicted[np.isfinite(predicted)]).max(initial=0.0))
    if not np.ptp(states, axis=0).any():
        noise = math.inf
    rho = arguments.pearson(predicted, np.broadcast_to(observed, predicted.shape), noise)
    errors = np.array([arguments.errors(one, observed) for one in predicted])
    return rho, errors[:, 0], errors[:, 1]


def check_generation(
    regression: Regression, by_estimator: bool, embedded: bool, other_target: bool, steps: int
) -> None:
    """Refuse what cannot feed itself, naming why."""
    reasons = (
        (embedded, "embedded=True: coordinates cannot be continued by a prediction of one of them"),
        (other_target, "target=...: the predicted series must be the embedded one"),
        (len(regression.names) != regression.E, "lib has several columns; a single series is needed"),
        (regression.Tp != 1, f"Tp={regression.Tp}: each prediction must be the next value, Tp=1"),
        (regression.layout is not None, "groups=...: continue one group at a time"),
        (by_estimator, "solver: forecasts that feed themselves are made with 'svd' or 'ridge'"),
    )
    for applies, why in reasons:
        if applies:
            raise InputError(f"generate_steps={steps} cannot be used with {why}")


def generate(
    engine: LocalFits, regression: Regression, steps: int, thetas: Doubles, *, singular_values: bool = False
) -> tuple[Regression, Fits]:
    """Continue the predicted series after the regression's last row, each theta on a path of its own.

    Returns
    -------
    (Problem, Fits)
        The problem of the generated rows, and their fits.
    """
    E, tau, last = regression.E, regression.tau, int(regression.rows[-1])
    rows = np.arange(last, last + steps)
    # The last row's window of values, newest last: lags that are no multiple of tau are seen by earlier rows.
    window = np.full((E - 1) * tau + 1, np.nan)
    for point, row in zip(regression.points[-tau:][::-1], regression.rows[-tau:][::-1], strict=True):
        for e in range(E):
            at = len(window) - 1 - (last - int(row)) - e * tau
            if at >= 0:
                window[at] = point[e]
    parts: list[list[Fits]] = []
    for theta in thetas:
        values, path = window.copy(), []
        for row in rows:
            point = values[len(values) - 1 - tau * np.arange(E)][None]
            next_row = replace(regression, points=point, rows=np.array([row]), observed=np.array([np.nan]))
            path.append(fit_rows(engine, next_row, np.array([theta]), singular_values=singular_values))
            values = np.append(values[1:], path[-1].predicted[0])
        parts.append(path)

    def join(name: str) -> Any:
        return np.concatenate([np.concatenate([getattr(f, name) for f in path], axis=1) for path in parts])

    fits = Fits(
        join("predicted"), join("variance"), join("coefficients"), join("singular_values") if singular_values else None,
        sum(f.redone for path in parts for f in path),
    )  # fmt: skip
    return replace(regression, rows=rows, observed=np.full(steps, np.nan)), fits


# Local linear fits as a job of a single block: the problem, and its engine.


@dataclass(frozen=True)
class SmapProblem:
    """Fits around the rows of a regression, for some theta."""

    regression: Regression
    # ndarray (n_thetas,)
    thetas: Doubles
    # Neighbours of a fit; all if None.
    knn: int | None
    solver: Solver
    # What distances and weights are computed in.
    dtype: str
    # Whether they are wanted, too.
    singular_values: bool = False
    # How far to continue the predicted series instead; 0 to fit around the regression's rows.
    steps: int = 0

    unit: ClassVar[str] = ""  # nothing is reported
    total: ClassVar[int] = 1

    @property
    def kernels(self) -> tuple[str, ...]:
        """Kernels that the answer depends on."""
        return () if self.solver.estimator is not None else ("smap_scale", "smap", "smap_solve")

    def size(self, block: Block) -> int:
        return len(block)

    def blocks(self) -> list[Block]:
        """All fits."""
        return cut(1, 1)

    @property
    def operations(self) -> float:
        library, coordinates = self.regression.library.shape
        pairs = float(library) * max(self.steps, len(self.regression.rows))
        per_pair = 4 * coordinates + len(self.thetas) * (coordinates + 1) ** 2
        return pairs * float(per_pair)

    def open(self, executor: Executor) -> SmapEngine:
        return SmapEngine(self, executor)


class SmapEngine:
    """A library on a device, or on the host where an estimator fits."""

    def __init__(self, problem: SmapProblem, executor: Executor) -> None:
        p = self._problem = problem
        self._fits: LocalFits | None = None
        if p.solver.estimator is None:
            self._fits = local_fits(executor, p.regression, p.knn, p.solver.alpha, p.dtype, once=not p.steps)

    def block(self, block: Block, into: Arrays | None, report: Report) -> BlockResult:
        """The pair (Regression, Fits): what was fitted in the end, and how."""
        p, regression = self._problem, self._problem.regression
        if self._fits is None:
            return BlockResult((regression, fit_by_estimator(regression, p.thetas, p.knn, p.solver.estimator)))
        if p.steps:
            regression, fits = generate(self._fits, regression, p.steps, p.thetas, singular_values=p.singular_values)
        else:
            fits = fit_rows(self._fits, regression, p.thetas, singular_values=p.singular_values)
        return BlockResult((regression, fits), Record(self._fits.parameters, self._fits.grade))

    def release(self) -> None:
        """Give the device memory back."""
        if self._fits is not None:
            self._fits.release()


# What S-map returns.


@dataclass(frozen=True, repr=False)
class SmapResult(Result):
    """Locally weighted linear predictions, one entry per predicted row t; of several theta along a first axis.

    Attributes
    ----------
    time : ndarray of int (n,)
        Row number t + Tp that is predicted; of groups, counted within the group.
    observed : ndarray of float64 (n,)
        Value there, NaN where there is none.
    theta : float or ndarray (n_thetas,)
    predicted, variance : ndarray of float64 (n,) or (n_thetas, n)
        Value of the local fit at the row, and sum W (y - predicted)^2 / sum W; NaN where a row touches a gap or has no
        neighbour.
    coefficients : ndarray of float64 (n, D + 1) or (n_thetas, n, D + 1)
        Intercept, then a slope per coordinate: the row's Jacobian, in units of the target per unit of the coordinate.
    singular_values : ndarray of float64 like coefficients, or None
        Of the weighted regressors (ones, coordinates), descending; where they were asked for.
    rho, mae, rmse : float or ndarray (n_thetas,)
        Pearson correlation (NaN for fewer than 3 pairs or zero variance), mean absolute and root mean square error.
    names : tuple of str
        The D coordinates.
    E : int
    redone : int
        Local fits that were repeated by singular values in float64, since their normal equations were near singular.
    group : ndarray of numbers or text (n,), or None
        Label of each entry's group.
    dates : ndarray or None
        The times that the data have for these rows, continued beyond their ends; None where they have none.
    name : str
        What is predicted.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> result = pyedmcl.smap(network.values[:, 0], E=2, theta=[0.0, 2.0])
    >>> result.rho.round(2).tolist()  # for each theta
    [0.68, 0.98]
    >>> local = result.at(2.0)
    >>> local.names, local.coefficients.shape  # the intercept, and a slope along each of these, for each row
    (('x0(t-0)', 'x0(t-1)'), (399, 3))
    """

    series_label: ClassVar = Label("data / data", "slope of the local fit along this coordinate")
    column_labels: ClassVar = {
        **common("theta", "group", "time", "observed", "predicted", "variance", "C0", "rho", "mae", "rmse"),
        "coefficients": Label("data / data", "intercept (in the unit of the data) and slopes of the local fits"),
        "coefficient": Label("", "C0 for the intercept, else the coordinate of the slope"),
    }  # fmt: skip

    time: NDArray[np.int64]
    observed: NDArray[np.float64]
    theta: Any
    predicted: NDArray[np.float64]
    variance: NDArray[np.float64]
    coefficients: NDArray[np.float64]
    singular_values: NDArray[np.float64] | None
    rho: Any
    mae: Any
    rmse: Any
    names: tuple[str, ...]
    E: int
    redone: int = 0
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)
    group: NDArray[Any] | None = None
    dates: NDArray[Any] | None = field(default=None, repr=False)
    name: str = ""

    def answer(self) -> Answer:
        """Skill of all predictions, for each theta."""
        columns = (np.atleast_1d(one).tolist() for one in (self.theta, self.rho, self.mae, self.rmse))
        rows = list(zip(*columns, strict=True))
        return Answer(("theta", "rho", "mae", "rmse"), rows[:ANSWER_ROWS], len(rows))

    def at(self, theta: float) -> SmapResult:
        """The part of a sweep that belongs to one theta. Raises InputError for one that was not computed."""
        thetas = np.atleast_1d(self.theta)
        s = place_of("theta", theta, thetas.tolist())
        if np.ndim(self.theta) == 0:
            return self
        sizes = None if self.singular_values is None else self.singular_values[s]
        return replace(
            self, theta=float(thetas[s]), predicted=self.predicted[s], variance=self.variance[s],
            coefficients=self.coefficients[s], singular_values=sizes, rho=float(self.rho[s]), mae=float(self.mae[s]),
            rmse=float(self.rmse[s]),
        )  # fmt: skip

    def to_xarray(self) -> Any:
        """An xarray.Dataset over (theta,) time and coefficient: predictions, local fits and skill; over the number of
        the prediction ("row") instead of the time where groups have times of their own."""
        time = self.time if self.dates is None else self.dates
        rows = [("time", time)] if self.group is None else [("row", np.arange(len(time)))]
        several = [] if np.ndim(self.theta) == 0 else [("theta", self.theta)]
        slopes = [("coefficient", ["C0", *(f"d/d{name}" for name in self.names)])]
        parts = {name: labelled(getattr(self, name), [*several, *rows], name) for name in ("predicted", "variance")}
        parts |= {name: labelled(np.asarray(getattr(self, name)), several, name) for name in ("rho", "mae", "rmse")}
        parts["coefficients"] = labelled(self.coefficients, [*several, *rows, *slopes], "coefficients")
        parts["observed"] = labelled(self.observed, rows, "observed")
        if self.group is not None:
            parts |= {"time": labelled(time, rows, "time"), "group": labelled(self.group, rows, "group")}
        return need("xarray", "to_xarray()").Dataset(parts)

    def to_frame(self) -> Any:
        """A pandas DataFrame: (theta,) (group,) time, observed, predicted, variance, C0 and a column per slope."""
        pandas = pandas_for("to_frame()")
        frames = []
        for theta in np.atleast_1d(self.theta):
            fits = self.at(float(theta))
            columns: dict[str, Any] = {} if np.ndim(self.theta) == 0 else {"theta": np.full(len(self.time), theta)}
            columns |= {} if self.group is None else {"group": self.group}
            columns |= {name: getattr(fits, name) for name in ("time", "observed", "predicted", "variance")}
            columns["time"] = self.time if self.dates is None else self.dates
            columns["C0"] = fits.coefficients[:, 0]
            columns |= {f"d/d{name}": fits.coefficients[:, i + 1] for i, name in enumerate(self.names)}
            frames.append(pandas.DataFrame(columns))
        return frames[0] if np.ndim(self.theta) == 0 else pandas.concat(frames, ignore_index=True)

    def _best(self) -> SmapResult:
        """The part of the theta of the highest rho."""
        skill = np.atleast_1d(np.asarray(self.rho, np.float64))
        return self.at(float(np.atleast_1d(self.theta)[np.where(np.isnan(skill), -np.inf, skill).argmax()]))

    def plot(self, path: str | None = None) -> Any:
        """Observed against predicted over time, for the theta of the highest rho; saved to ``path`` if given.

        Needs matplotlib, as do the other pictures.
        """
        from ..plot import predictions

        return predictions(self._best(), path)

    def plot_coefficients(self, path: str | None = None) -> Any:
        """Intercept and slopes over time, for the theta of the highest rho; saved to ``path`` if given."""
        from ..plot.curves import coefficients

        return coefficients(self._best(), path)

    def plot_skill(self, path: str | None = None) -> Any:
        """rho against theta, of a sweep; saved to ``path`` if given."""
        from ..plot.curves import skill_against_parameter

        return skill_against_parameter(self, path)


@dataclass(frozen=True, repr=False)
class NonlinearResult(Result):
    """Forecast skill against theta: a rise from theta = 0 says that the dynamics depend on the state.

    Attributes
    ----------
    theta : ndarray of float64 (n_thetas,)
    rho, mae, rmse : ndarray of float64 (n_thetas,)
    E : int

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> result = pyedmcl.predict_nonlinear(network.values[:, 0], E=2, theta=[0.0, 1.0, 4.0])
    >>> result.rho.round(2).tolist(), result.best  # skill rises with theta: the dynamics are nonlinear
    ([0.68, 0.93, 0.99], 4.0)
    >>> result.to_frame().columns.tolist()
    ['theta', 'rho', 'mae', 'rmse']
    """

    answer_columns = ("theta", "-rho", "mae", "rmse")

    row_column: ClassVar = "theta"

    theta: NDArray[np.float64]
    rho: NDArray[np.float64]
    mae: NDArray[np.float64]
    rmse: NDArray[np.float64]
    E: int
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def best(self) -> float:
        """The theta of the highest rho, the first of a tie; NaN where no rho is defined."""
        if np.isnan(self.rho).all():
            return float("nan")
        return float(self.theta[np.where(np.isnan(self.rho), -np.inf, self.rho).argmax()])

    def to_frame(self) -> Any:
        """A pandas DataFrame with columns theta, rho, mae, rmse."""
        columns = ("theta", "rho", "mae", "rmse")
        return pandas_for("to_frame()").DataFrame({name: getattr(self, name) for name in columns})

    def plot(self, path: str | None = None) -> Any:
        """rho against theta; saved to ``path`` if given. Needs matplotlib."""
        from ..plot.curves import skill_against_parameter

        return skill_against_parameter(self, path)


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
    theta : float or sequence of float
        Localisation, at least 0; several are computed in one pass.
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
    generate_steps : int
        Continue the series instead: predict the step after its last one, append it, and so on, with an unchanging
        library. For a single series with Tp = 1.
    singular_values : bool
        Also return those of each weighted fit (costs more than the fits).
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
    thetas = check_thetas(theta)
    neighbours = knn
    chosen = solver_of(solver, alpha)
    options = PredictionOptions(
        E, tau, Tp, exclusion_radius=exclusion_radius, embedded=embedded, lib_range=lib_range, pred_range=pred_range,
        valid_lib=valid_lib, groups=groups, state=state,
    )  # fmt: skip
    regression = prepare(lib, pred, target, options)
    if generate_steps:
        check_generation(regression, chosen.estimator is not None, embedded, target is not None, generate_steps)
    if chosen.name == "svd":
        warn_of_few(regression, neighbours)
    problem = SmapProblem(regression, thetas, neighbours, chosen, dtype, singular_values, generate_steps)
    runner, sink = arguments.runner_on(device, dtype), ListSink(problem.blocks())
    record = runner.run(problem, sink)
    ((regression, fits),) = sink.results()
    rho, mae, rmse = skill(fits.predicted, regression.observed, regression.library)
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
