"""Skill against one parameter, with pyEDM's arguments and returns."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from ...errors import InputError
from ..checked import checked
from . import frames
from .layout import put_frames
from .plots import show_curve
from .simplex import Simplex
from .skill import ComputeError
from .smap import SMap

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
