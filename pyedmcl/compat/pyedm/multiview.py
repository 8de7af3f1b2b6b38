"""Multiview embedding with pyEDM's arguments and returns."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...errors import InputError, warn
from ..checked import checked
from . import frames
from .embed import Embed
from .plots import PlotObsPred
from .simplex import Simplex
from .skill import ComputeError
from .sweeps import skill


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
