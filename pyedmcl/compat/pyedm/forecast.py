"""pyEDM's forecasts: simplex projection, S-map, multiview embedding, and skill against one parameter."""

from __future__ import annotations

import itertools
import math
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arguments import integer
from ...device.select import open_device
from ...engines.smap import LocalFits
from ...errors import InputError, missing_extra, warn
from ...functions import MOST_GENERATED
from ...states.arguments import theta_of_fit
from ..checked import checked
from . import frames
from .frames import ComputeError, Embed, Task, make_task, nearest, numeric_time, pandas, put_frames, warn_of_few

# pyEDM's example data, where pyEDM is installed: they are not ours to ship.


_FILES = {
    "TentMap": "TentMap.csv",
    "TentMapNoise": "TentMapNoise.csv",
    "circle": "circle.csv",
    "circleNoise": "circle_noise.csv",
    "circle_noTime": "circle_noTime.csv",
    "columnNameSpace": "columnNameSpace.csv",
    "block_3sp": "block_3sp.csv",
    "sardine_anchovy_sst": "sardine_anchovy_sst.csv",
    "Lorenz5D": "LorenzData1000.csv",
    "SumFlow_1980-2005": "S12CD-S333-SumFlow_1980-2005.csv",
}


class _SampleData(Mapping[str, Any]):
    """Name to DataFrame, each read when it is first looked at."""

    def __init__(self) -> None:
        self._read: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._read:
            file = _FILES[name]
            try:
                path = metadata.distribution("pyEDM").locate_file(os.path.join("pyEDM", "data", file))
            except metadata.PackageNotFoundError as error:
                raise missing_extra("pyEDM", "peers", f"sampleData[{name!r}]") from error
            self._read[name] = pandas().read_csv(str(path))
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_FILES)

    def __len__(self) -> int:
        return len(_FILES)


sampleData: Mapping[str, Any] = _SampleData()


# pyEDM's pictures.


def pyplot() -> Any:
    """matplotlib's pyplot. Raises MissingExtraError where it is not installed."""
    try:
        from matplotlib import pyplot as found
    except ImportError as error:
        raise missing_extra("matplotlib", "plot", "showPlot=True") from error
    return found


@checked
def PlotObsPred(df: Any, dataName: str = "", E: int = 0, Tp: int = 0, block: bool = True) -> None:
    """Show observations and predictions over time."""
    plt = pyplot()
    skill = ComputeError(df["Observations"], df["Predictions"])
    title = f"{dataName}\nE={E} Tp={Tp}  ρ={skill['rho']:.3g} RMSE={skill['RMSE']:.3g}"  # noqa: RUF001
    df.plot(df.columns[0], ["Observations", "Predictions"], title=title, linewidth=3)
    plt.show(block=block)


@checked
def PlotCoeff(df: Any, dataName: str = "", E: int = 0, Tp: int = 0, block: bool = True) -> None:
    """Show S-map coefficients over time."""
    plt = pyplot()
    when = df.columns[0]
    title = f"{dataName}\nE={E} Tp={Tp}  S-Map Coefficients"
    df.plot(when, [name for name in df.columns if name != when], title=title, linewidth=3, subplots=True)
    plt.show(block=block)


def show_curve(df: Any, x: str, y: str, title: str, xlabel: str, label: str) -> None:
    """Show skill against a parameter."""
    plt = pyplot()
    ax = df.plot(x, y, title=title, label=label, linewidth=3)
    ax.set(xlabel=xlabel, ylabel="Prediction Skill ρ")  # noqa: RUF001
    plt.show()


# Simplex projection with pyEDM's arguments and returns.


_FLOOR = 1e-6  # of the nearest distance


@dataclass
class SimplexTask(Task):
    """What ``Simplex(..., returnObject=True)`` returns.

    Attributes
    ----------
    knn_neighbors, knn_distances : ndarray (n_predictions, knn)
        Infinite distances where there are fewer neighbours.
    """

    knn_neighbors: Any = field(repr=False, default=None)
    knn_distances: Any = field(repr=False, default=None)

    def Run(self) -> None:
        """Find neighbours, predict, and set the frames."""
        if not len(self.pred_i):
            put_frames(self)
            return
        self.knn_neighbors, self.knn_distances = nearest(
            self.states, self.lib_i, self.pred_i, self.knn, self.exclusionRadius
        )
        warn_of_few(self, self.knn_distances)
        present = np.isfinite(self.knn_distances)
        shortest = np.where(present[:, 0], self.knn_distances[:, 0], 1.0)
        weights = np.where(present, np.exp(-self.knn_distances / np.maximum(shortest, _FLOOR)[:, None]), 0.0)
        targets = np.where(present, self.targetVec[self.knn_neighbors + self.Tp], 0.0)
        total = weights.sum(axis=1)
        safe = np.where(total > 0, total, 1.0)
        mean = (weights * targets).sum(axis=1) / safe
        spread = (weights * (targets - mean[:, None]) ** 2).sum(axis=1) / safe
        self.projection = np.where(total > 0, mean, np.nan)
        self.variance = np.where(total > 0, spread, np.nan)
        put_frames(self)


@checked
def Simplex(
    dataFrame: Any = None, columns: Any = "", target: Any = "", lib: Any = "", pred: Any = "", E: int = 0, Tp: int = 1,
    knn: int = 0, tau: int = -1, exclusionRadius: int = 0, embedded: bool = False, validLib: Any = (),
    noTime: bool = False, kdWorkers: int = -1, generateSteps: int = 0, generateConcat: bool = False,
    verbose: bool = False, showPlot: bool = False, ignoreNan: bool = True, returnObject: bool = False,
) -> Any:  # fmt: skip
    """Predict ``target`` by the nearest neighbours of its rows' states.

    Parameters
    ----------
    dataFrame : DataFrame
        First column the time, unless ``noTime``.
    columns, target : str or list of str
    lib, pred : str or list of int
        1-based inclusive row ranges: "1 100", [1, 100], or several pairs.
    E, tau : int
        Lags of each column, and their step: negative into the past.
    Tp, knn, exclusionRadius, embedded, validLib, noTime
        As in pyEDM.
    generateSteps, generateConcat
        Continue the series after the library's end, each prediction being the next value.
    showPlot, returnObject : bool
    kdWorkers, verbose, ignoreNan
        Without effect.

    Returns
    -------
    DataFrame or SimplexTask
        Columns Time, Observations, Predictions, Pred_Variance.

    Raises
    ------
    InputError
        An argument cannot be used.
    """
    options = {"E": E, "Tp": Tp, "knn": knn, "tau": tau, "exclusionRadius": exclusionRadius, "embedded": embedded,
               "validLib": validLib, "noTime": noTime}  # fmt: skip
    task: SimplexTask = make_task(SimplexTask, "Simplex", dataFrame, columns, target, lib, pred, **options)
    if generateSteps:
        check_generation(task, generateSteps)
        task.Projection = _generate(task, lib, options, generateSteps, generateConcat)
    else:
        task.Run()
    if showPlot:
        PlotObsPred(task.Projection, "", task.E, task.Tp)
    return task if returnObject else task.Projection


def check_generation(task: Task, steps: int) -> None:
    """Refuse what cannot feed itself, or would run for days."""
    integer(f"{task.name}: generateSteps", steps, 0, most=MOST_GENERATED)
    if task.embedded:
        raise InputError(f"{task.name}: generateSteps={steps} cannot be used with embedded=True")
    if task.target[0] != task.columns[0]:
        raise InputError(
            f"{task.name}: generateSteps={steps} needs target {task.target[0]!r} to be the embedded column "
            f"{task.columns[0]!r}"
        )
    if not task.noTime and not isinstance(numeric_time(task.time)[0], (int, float, np.integer, np.floating)):
        raise InputError(f"{task.name}: generateSteps={steps} with dates needs noTime=True")


def growing(task: Task, lib: Any, options: dict[str, Any], steps: int) -> Any:
    """Tasks that predict the row after the last one, each of a frame that is one row longer.

    Yields (task that was not run, what to call with its newest prediction).
    """
    pandas = frames.pandas()
    column, n = task.columns[0], len(task.Data)
    end = frames.numbers(lib, "lib", task.name)[-1]
    values = frames.doubles(task.Data[column], task.name)
    when = np.arange(1, n + 1, dtype=np.float64) if task.noTime else numeric_time(task.time).astype(np.float64)
    valid = options["validLib"]
    for step in range(steps):
        data = pandas.DataFrame({"Time": when, column: values})
        if np.size(valid):  # what was generated is no library
            options = {**options, "validLib": np.append(np.asarray(valid), np.zeros(len(data) - n, bool))}
        step_task = make_task(type(task), task.name, data, [column], [column], lib, [end - 1 + step, end + step],
                        **{**options, "noTime": False})  # fmt: skip
        yield step_task
        newest = step_task.Projection.iloc[-1]
        values, when = np.append(values, newest["Predictions"]), np.append(when, newest["Time"])


def _generate(task: SimplexTask, lib: Any, options: dict[str, Any], steps: int, concat: bool) -> Any:
    pandas = frames.pandas()
    made = []
    for one in growing(task, lib, options, steps):
        one.Run()
        made.append(one.Projection.iloc[[-1]])
    return generated_frame(task, pandas.concat(made, ignore_index=True), concat)


def generated_frame(task: Task, generated: Any, concat: bool) -> Any:
    """Generated rows, after the observed ones if wanted."""
    if not concat:
        return generated
    pandas = frames.pandas()
    when = np.arange(1, len(task.Data) + 1, dtype=np.float64) if task.noTime else task.Data.iloc[:, 0].to_numpy()
    seen = pandas.DataFrame({"Time": when, "Observations": task.Data[task.columns[0]].to_numpy()})
    return pandas.concat([seen, generated], axis=0)


# S-map with pyEDM's arguments and returns.


@dataclass
class SMapTask(Task):
    """What ``SMap(..., returnObject=True)`` returns.

    Attributes
    ----------
    Coefficients, SingularValues : DataFrame
    knn_neighbors, knn_distances : ndarray (n_predictions, knn)
        Found when they are first looked at: the fits need no sorted neighbours.
    """

    theta: float = 0.0
    solver: Any = None
    Coefficients: Any = field(repr=False, default=None)
    SingularValues: Any = field(repr=False, default=None)
    _neighbours: Any = field(repr=False, default=None)

    @property
    def knn_neighbors(self) -> Any:
        return self._nearest()[0]

    @property
    def knn_distances(self) -> Any:
        return self._nearest()[1]

    def _nearest(self) -> Any:
        if self._neighbours is None:
            self._neighbours = nearest(self.states, self.lib_i, self.pred_i, self.knn, self.exclusionRadius)
        return self._neighbours

    def Run(self) -> None:
        """Fit around each row, and set the frames."""
        width = self.E + 1
        coefficients, sizes = np.full((2, len(self.pred_i), width), np.nan)
        if len(self.pred_i):
            if self._short():
                warn_of_few(self, self.knn_distances)
            fit = self._by_estimator() if self.solver is not None else next(self.fits([self.theta]))
            self.projection, self.variance, coefficients, sizes = fit
        when, at = put_frames(self)
        DataFrame = frames.pandas().DataFrame
        table, singular = np.full((2, len(self.Projection), width), np.nan)
        if when is not None:
            table[at], singular[at] = coefficients, sizes
        slopes = [f"∂{self.target[0]}/∂{name}" for name in self.Embedding.columns]
        time = DataFrame({"Time": self.Projection["Time"]})
        self.Coefficients = time.join(DataFrame(table, columns=["C0", *slopes]))
        self.SingularValues = time.join(DataFrame(singular, columns=[f"C{i}" for i in range(width)]))

    def _short(self) -> bool:
        """Whether any row may have fewer neighbours than asked for."""
        near = 2 * self.exclusionRadius + 1 if self.exclusionRadius or self.libOverlap else 0
        return len(self.lib_i) - near < self.knn

    def fits(self, thetas: Sequence[float]) -> Iterator[tuple[Any, Any, Any, Any]]:
        """Predictions, variances, coefficients and singular values of all rows for each theta, from one pass."""
        executor = open_device(None)
        if not executor.info.fp64:
            raise InputError(f"SMap: {executor.info.name} lacks double precision, which sums of products need")
        target = self.targetVec[self.lib_i + self.Tp]
        if not np.isfinite(target).any():
            raise InputError("SMap: the target is a gap wherever the library leads to")
        engine = LocalFits(
            executor, self.states[self.lib_i], target, self.lib_i, exclusion_radius=self.exclusionRadius,
            knn=self.knn, dtype="float64",
        )  # fmt: skip
        try:
            fits = engine.fit(self.states[self.pred_i], self.pred_i, np.array(thetas), singular_values=True)
        finally:
            engine.release()
        assert fits.singular_values is not None
        yield from zip(fits.predicted, fits.variance, fits.coefficients, fits.singular_values, strict=True)

    def sweep(self, thetas: Sequence[float]) -> Iterator[tuple[Any, Any]]:
        """Predictions and variances of all rows for each theta."""
        for theta in thetas:
            theta_of_fit("SMap: theta", theta)
        if not len(self.pred_i):
            yield from ((np.empty(0), np.empty(0)) for _ in thetas)
        elif self.solver is None:
            yield from (fit[:2] for fit in self.fits(thetas))
        else:
            for theta in thetas:
                self.theta = theta
                yield self._by_estimator()[:2]

    def _by_estimator(self) -> tuple[Any, Any, Any, Any]:
        """A fit of a scikit-learn estimator per row, to columns and target multiplied by the weights, as in pyEDM."""
        n = len(self.pred_i)
        predicted, variance = np.full((2, n), np.nan)
        coefficients, sizes = np.full((2, n, self.E + 1), np.nan)
        for row, t in enumerate(self.pred_i):
            present = np.isfinite(self.knn_distances[row])
            if not present.any():
                continue
            distance, near = self.knn_distances[row, present], self.knn_neighbors[row, present]
            mean = distance.mean()
            weight = np.ones(len(distance)) if self.theta == 0 else np.exp(-self.theta * distance / mean)
            target = self.targetVec[near + self.Tp]
            finite = np.isfinite(target)
            if not finite.any():
                continue
            weight, target, x = weight[finite], target[finite], self.states[near[finite]]
            model = self.solver.fit(weight[:, None] * x, weight * target)
            intercept = float(getattr(model, "intercept_", np.nan))
            coefficients[row] = [intercept, *model.coef_]
            if hasattr(model, "singular_"):
                of_fit: NDArray[Any] = np.asarray(model.singular_)
                sizes[row, 1 : 1 + len(of_fit)] = of_fit
            predicted[row] = np.nan_to_num(intercept) + self.states[t] @ model.coef_
            variance[row] = (weight * (target - predicted[row]) ** 2).sum() / weight.sum()
        return predicted, variance, coefficients, sizes


@checked
def SMap(
    dataFrame: Any = None, columns: Any = "", target: Any = "", lib: Any = "", pred: Any = "", E: int = 0, Tp: int = 1,
    knn: int = 0, tau: int = -1, theta: float | None = None, exclusionRadius: int = 0, solver: Any = None,
    embedded: bool = False, validLib: Any = (), noTime: bool = False, kdWorkers: int = -1, generateSteps: int = 0,
    generateConcat: bool = False, ignoreNan: bool = True, showPlot: bool = False, verbose: bool = False,
    returnObject: bool = False,
) -> Any:  # fmt: skip
    """Predict ``target`` by linear fits weighted by nearness.

    Parameters
    ----------
    theta : float
        Localisation, at least 0.
    solver : scikit-learn estimator, optional
        Instead of least squares; fitted row by row on the host.
    dataFrame, columns, target, lib, pred, E, Tp, knn, tau, exclusionRadius, embedded, validLib, noTime, generateSteps,
    generateConcat, showPlot, returnObject
        As for :func:`Simplex`; knn is all library rows but one by default.
    kdWorkers, ignoreNan, verbose
        Without effect.

    Returns
    -------
    dict or SMapTask
        DataFrames "predictions", "coefficients" and "singularValues".

    Raises
    ------
    InputError
        An argument cannot be used.
    """
    theta = theta_of_fit("SMap: theta", theta)
    if not embedded and len(frames.names(columns, "columns", "SMap", frames.frame(dataFrame, "SMap"))) > 1:
        raise InputError(f"SMap: columns={columns!r}; several columns need embedded=True")
    if solver is not None and not hasattr(solver, "fit"):
        solver = None  # NumPy's least squares, which is what the device solves
    options = {"E": E, "Tp": Tp, "knn": knn, "tau": tau, "exclusionRadius": exclusionRadius, "embedded": embedded,
               "validLib": validLib, "noTime": noTime}  # fmt: skip
    task: SMapTask = make_task(SMapTask, "SMap", dataFrame, columns, target, lib, pred, **options)
    task.theta, task.solver = theta, solver
    if generateSteps:
        check_generation(task, generateSteps)
        _smap_generate(task, lib, options, generateSteps, generateConcat)
    else:
        task.Run()
    if showPlot:
        PlotObsPred(task.Projection, "", task.E, task.Tp)
        PlotCoeff(task.Coefficients, "", task.E, task.Tp)
    if returnObject:
        return task
    return {"predictions": task.Projection, "coefficients": task.Coefficients, "singularValues": task.SingularValues}


def _smap_generate(task: SMapTask, lib: Any, options: dict[str, Any], steps: int, concat: bool) -> None:
    concatenate = frames.pandas().concat
    made: list[tuple[Any, Any, Any]] = []
    for one in growing(task, lib, options, steps):
        one.theta, one.solver = task.theta, task.solver
        one.Run()
        made.append((one.Projection.iloc[[-1]], one.Coefficients.iloc[[-1]], one.SingularValues.iloc[[-1]]))
    predicted, coefficients, sizes = (concatenate(parts, ignore_index=True) for parts in zip(*made, strict=True))
    task.Projection = generated_frame(task, predicted, concat)
    task.Coefficients, task.SingularValues = coefficients, sizes


# Skill against one parameter, with pyEDM's arguments and returns.


_RADII = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 18, 20, 25, 30)
_THETAS = (0.01, 0.1, 0.3, 0.5, 0.75, 1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9)


def skill(predictions: Any) -> float:
    """rho of a frame of predictions."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "ComputeError")  # NaN says it
        return float(ComputeError(predictions["Observations"], predictions["Predictions"])["rho"])


def _sweep(name: str, values: Sequence[Any], one: Callable[[Any], Any]) -> Any:
    return frames.pandas().DataFrame({name: list(values), "rho": [skill(one(value)) for value in values]})


@checked
def EmbedDimension(
    dataFrame: Any = None, columns: Any = "", target: Any = "", maxE: int = 10, lib: Any = "", pred: Any = "",
    Tp: int = 1, tau: int = -1, exclusionRadius: int = 0, embedded: bool = False, validLib: Any = (),
    noTime: bool = False, ignoreNan: bool = True, verbose: bool = False, numProcess: int = 4, mpMethod: Any = None,
    chunksize: int = 1, kdWorkers: int = -1, showPlot: bool = True,
) -> Any:  # fmt: skip
    """Skill of :func:`Simplex` for E = 1, ..., maxE: a frame with columns E and rho."""
    frames.checked_range(maxE, "maxE", "EmbedDimension", dataFrame)
    curve = _sweep("E", range(1, maxE + 1), lambda E: Simplex(
        dataFrame, columns, target, lib, pred, E=E, Tp=Tp, tau=tau, exclusionRadius=exclusionRadius, embedded=embedded,
        validLib=validLib, noTime=noTime))  # fmt: skip
    if showPlot:
        show_curve(curve, "E", "rho", f"Tp={Tp}", "Embedding Dimension", f"{columns} : {target}")
    return curve


@checked
def PredictInterval(
    dataFrame: Any = None, columns: Any = "", target: Any = "", lib: Any = "", pred: Any = "", maxTp: int = 10,
    E: int = 1, tau: int = -1, exclusionRadius: int = 0, embedded: bool = False, validLib: Any = (),
    noTime: bool = False, ignoreNan: bool = True, verbose: bool = False, numProcess: int = 4, mpMethod: Any = None,
    chunksize: int = 1, kdWorkers: int = -1, showPlot: bool = True,
) -> Any:  # fmt: skip
    """Skill of :func:`Simplex` for Tp = 1, ..., maxTp: a frame with columns Tp and rho."""
    frames.checked_range(maxTp, "maxTp", "PredictInterval", dataFrame)
    curve = _sweep("Tp", range(1, maxTp + 1), lambda Tp: Simplex(
        dataFrame, columns, target, lib, pred, E=E, Tp=Tp, tau=tau, exclusionRadius=exclusionRadius, embedded=embedded,
        validLib=validLib, noTime=noTime))  # fmt: skip
    if showPlot:
        show_curve(curve, "Tp", "rho", f"E={E}", "Forecast Interval", f"{columns} : {target}")
    return curve


@checked
def PredictExclusionRadius(
    dataFrame: Any = None, columns: Any = "", target: Any = "", lib: Any = "", pred: Any = "", Tp: int = 1, E: int = 1,
    tau: int = -1, exclusionRadius: Any = None, embedded: bool = False, validLib: Any = (), noTime: bool = False,
    ignoreNan: bool = True, verbose: bool = False, numProcess: int = 4, mpMethod: Any = None, chunksize: int = 1,
    kdWorkers: int = -1, showPlot: bool = True,
) -> Any:  # fmt: skip
    """Skill of :func:`Simplex` for several exclusion radii: a frame with columns Exclusion radius and rho."""
    radii = list(_RADII) if exclusionRadius is None else frames.numbers(
        exclusionRadius, "exclusionRadius", "PredictExclusionRadius")  # fmt: skip
    curve = _sweep("Exclusion radius", radii, lambda radius: Simplex(
        dataFrame, columns, target, lib, pred, E=E, Tp=Tp, tau=tau, exclusionRadius=radius, embedded=embedded,
        validLib=validLib, noTime=noTime))  # fmt: skip
    if showPlot:
        show_curve(curve, "Exclusion radius", "rho", f"E={E}  Tp={Tp}", "Exclusion radius", f"{columns} : {target}")
    return curve


@checked
def PredictNonlinear(
    dataFrame: Any = None, columns: Any = "", target: Any = "", theta: Any = None, lib: Any = "", pred: Any = "",
    E: int = 1, Tp: int = 1, knn: int = 0, tau: int = -1, exclusionRadius: int = 0, solver: Any = None,
    embedded: bool = False, validLib: Any = (), noTime: bool = False, ignoreNan: bool = True, verbose: bool = False,
    numProcess: int = 4, mpMethod: Any = None, chunksize: int = 1, kdWorkers: int = -1, showPlot: bool = True,
) -> Any:  # fmt: skip
    """Skill of :func:`SMap` for several theta: a frame with columns theta and rho."""
    thetas = list(_THETAS) if theta is None else frames.numbers(theta, "theta", "PredictNonlinear", float)
    if not thetas:
        raise InputError("PredictNonlinear: theta is empty; at least one number is needed")
    task = SMap(
        dataFrame, columns, target, lib, pred, E=E, Tp=Tp, knn=knn, tau=tau, theta=thetas[0],
        exclusionRadius=exclusionRadius, solver=solver, embedded=embedded, validLib=validLib, noTime=noTime,
        returnObject=True,
    )  # fmt: skip
    rho = []
    for value, fit in zip(thetas, task.sweep(thetas), strict=True):
        task.theta, (task.projection, task.variance) = value, fit
        put_frames(task)
        rho.append(skill(task.Projection))
    curve = frames.pandas().DataFrame({"theta": thetas, "rho": rho})
    if isinstance(theta, Sequence) and not isinstance(theta, str):
        curve["theta"] = list(theta)  # whole numbers stay whole
    if showPlot:
        show_curve(curve, "theta", "rho", f"E={E}", "S-map Localisation (θ)", f"{columns} : {target}")
    return curve


# Multiview embedding with pyEDM's arguments and returns.


@dataclass
class MultiviewTask:
    """What ``Multiview(..., returnObject=True)`` returns.

    Attributes
    ----------
    D : int
        Coordinates of a view.
    multiview : int
        Views that are averaged.
    combos, topRankCombos : list of tuple of str
        All views, and those that are averaged.
    topRankProjections, topRankStats : dict
        Predictions and skill of these.
    Projection, View : DataFrame
    """

    D: int
    Tp: int
    multiview: int
    combos: list[tuple[str, ...]]
    topRankCombos: list[tuple[str, ...]] = field(default_factory=list)
    topRankProjections: dict[tuple[str, ...], Any] = field(default_factory=dict, repr=False)
    topRankStats: dict[tuple[str, ...], Any] = field(default_factory=dict, repr=False)
    Projection: Any = field(default=None, repr=False)
    View: Any = field(default=None, repr=False)


@checked
def Multiview(
    dataFrame: Any = None, columns: Any = "", target: Any = "", lib: Any = "", pred: Any = "", D: int = 0, E: int = 1,
    Tp: int = 1, knn: int = 0, tau: int = -1, multiview: int = 0, exclusionRadius: int = 0, trainLib: bool = True,
    excludeTarget: bool = False, ignoreNan: bool = True, verbose: bool = False, numProcess: int = 4,
    mpMethod: Any = None, chunksize: int = 1, kdWorkers: int = -1, showPlot: bool = False, returnObject: bool = False,
) -> Any:  # fmt: skip
    """Average the predictions of the views (choices of D among the lagged columns) that predict best.

    Parameters
    ----------
    D : int
        Coordinates of a view; the number of columns by default.
    multiview : int
        Views that are averaged; by default the root of their number.
    trainLib : bool
        Rank views by predictions of the library's own rows; else by those of ``pred``.
    excludeTarget : bool
        No view holds a lag of the target.
    dataFrame, columns, target, lib, pred, E, Tp, tau, exclusionRadius
        As for :func:`Simplex`. pyEDM's knn has no effect, there or here: it is D + 1.

    Returns
    -------
    dict or MultiviewTask
        DataFrames "Predictions" (Time, Observations, Predictions) and "View" (Columns, rho, MAE, CAE, RMSE).

    Raises
    ------
    InputError
        An argument cannot be used.
    """
    data = frames.frame(dataFrame, "Multiview")
    chosen = frames.names(columns, "columns", "Multiview", data)
    targets = frames.names(target, "target", "Multiview", data)
    n = len(data)
    flags = [bool(frames.numbers(rows, name, "Multiview")) for rows, name in ((lib, "lib"), (pred, "pred"))]
    if not any(flags) and trainLib:
        lib, pred = [1, n // 2], [n // 2 + 1, n]
    elif not all(flags):
        raise InputError("Multiview: lib and pred are needed (with trainLib=True both may be left out)")
    if D < 0 or multiview < 0:
        raise InputError(f"Multiview: D={D}, multiview={multiview}; 0 or more is needed")
    dims = D or len(chosen)
    if dims > len(chosen) * E:
        warn(f"Multiview: D={dims} is more than the {len(chosen) * E} coordinates there are, which are taken",
             UserWarning)  # fmt: skip
        dims = len(chosen) * E
    used = [name for name in chosen if not (excludeTarget and name in targets)]
    if not used:
        raise InputError("Multiview: excludeTarget=True leaves no column")
    table = Embed(data, E=E, tau=tau, columns=used)
    if dims > table.shape[1]:
        left = table.shape[1]
        raise InputError(f"Multiview: D={dims} is more than the {left} coordinates that excludeTarget=True leaves")
    now = f"{targets[0]}(t-0)"
    whole = table if now in table else table.assign(**{now: data[targets[0]].to_numpy()})
    task = MultiviewTask(dims, Tp, multiview, list(itertools.combinations(table.columns, dims)))
    if task.multiview < 1:
        task.multiview = math.isqrt(len(task.combos))
    if task.multiview > len(task.combos):
        warn(f"Multiview: there are {len(task.combos)} views, fewer than multiview={multiview}", UserWarning)
        task.multiview = len(task.combos)

    def project(view: tuple[str, ...], rows: Any) -> Any:
        return Simplex(whole, list(view), [now], lib, rows, E=dims, Tp=Tp, tau=tau, exclusionRadius=exclusionRadius,
                       embedded=True, noTime=True)  # fmt: skip

    ranked = np.array([skill(project(view, lib if trainLib else pred)) for view in task.combos])
    task.topRankCombos = [task.combos[i] for i in np.argsort(ranked)[::-1][: task.multiview]]
    task.topRankProjections = {view: project(view, pred) for view in task.topRankCombos}
    _average(task)
    if showPlot:
        PlotObsPred(task.Projection, "", dims, Tp)
    return task if returnObject else {"Predictions": task.Projection, "View": task.View}


def _average(task: MultiviewTask) -> None:
    pandas = frames.pandas()
    tables = list(task.topRankProjections.values())
    mean = pandas.concat([table["Predictions"] for table in tables], axis=1).mean(axis=1)
    first = tables[0]
    task.Projection = pandas.DataFrame({"Time": first["Time"], "Observations": first["Observations"],
                                        "Predictions": mean})  # fmt: skip
    for view, table in task.topRankProjections.items():
        task.topRankStats[view] = ComputeError(table["Observations"], table["Predictions"])
    stats = pandas.DataFrame(list(task.topRankStats.values()))
    task.View = pandas.concat([pandas.DataFrame({"Columns": list(task.topRankCombos)}), stats], axis=1)
