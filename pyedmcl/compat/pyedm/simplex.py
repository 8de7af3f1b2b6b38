"""Simplex projection with pyEDM's arguments and returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...data.arguments import integer
from ...edm.shared.arguments import MOST_GENERATED
from ...errors import InputError
from ..checked import checked
from . import frames
from .layout import numeric_time, put_frames
from .nearest import nearest, warn_of_few
from .plots import PlotObsPred
from .task import Task, make_task

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
