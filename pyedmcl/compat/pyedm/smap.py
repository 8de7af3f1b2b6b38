"""S-map with pyEDM's arguments and returns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...device.session import open_device
from ...edm.shared.arguments import theta_of_fit
from ...engines.smap import LocalFits
from ...errors import InputError
from ..checked import checked
from . import frames
from .layout import put_frames
from .nearest import nearest, warn_of_few
from .plots import PlotCoeff, PlotObsPred
from .simplex import check_generation, generated_frame, growing
from .task import Task, make_task


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
        _generate(task, lib, options, generateSteps, generateConcat)
    else:
        task.Run()
    if showPlot:
        PlotObsPred(task.Projection, "", task.E, task.Tp)
        PlotCoeff(task.Coefficients, "", task.E, task.Tp)
    if returnObject:
        return task
    return {"predictions": task.Projection, "coefficients": task.Coefficients, "singularValues": task.SingularValues}


def _generate(task: SMapTask, lib: Any, options: dict[str, Any], steps: int, concat: bool) -> None:
    concatenate = frames.pandas().concat
    made: list[tuple[Any, Any, Any]] = []
    for one in growing(task, lib, options, steps):
        one.theta, one.solver = task.theta, task.solver
        one.Run()
        made.append((one.Projection.iloc[[-1]], one.Coefficients.iloc[[-1]], one.SingularValues.iloc[[-1]]))
    predicted, coefficients, sizes = (concatenate(parts, ignore_index=True) for parts in zip(*made, strict=True))
    task.Projection = generated_frame(task, predicted, concat)
    task.Coefficients, task.SingularValues = coefficients, sizes
