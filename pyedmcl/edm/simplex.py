"""Simplex projection of one series."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..condition import condition
from ..device.session import open_device
from ..errors import InputError
from ..neighbors.exact import ExactSearch
from ..neighbors.project import Projection
from ..neighbors.staging import Staging
from ..plan import Search
from ..results import SimplexResult
from ..series import check_embedding, require_rows
from ..tuning.retry import tunable
from . import arguments, scores
from .effort import announce
from .masks import penalty_of
from .provenance import provenance


def _observed(values: NDArray[Any], Tp: int, first: int) -> NDArray[np.float64]:
    """Value at t + Tp for t = first, ..., n-1; NaN outside."""
    at = np.arange(first, len(values)) + Tp
    inside = (at >= 0) & (at < len(values))
    return np.where(inside, values[np.where(inside, at, 0)], np.nan).astype(np.float64)


@tunable
def simplex(
    lib: Any,
    pred: Any = None,
    *,
    target: Any = None,
    E: int,
    tau: int = 1,
    Tp: int = 1,
    knn: int | None = None,
    exclusion_radius: int = 0,
    dtype: str = "float32",
    device: str | None = None,
    tune: str | None = None,
) -> SimplexResult:
    """Predict a series by its nearest neighbours in a delay embedding.

    The prediction for row t is the mean of the targets of its k nearest library rows, Tp steps on, with weights
    exp(-d / d_min) (Sugihara and May, Nature 344, 734, 1990).

    Parameters
    ----------
    lib : array_like (n,)
        The library series, time along the first axis, NaN for gaps.
    pred : array_like (m,), optional
        Another series to predict; by default ``lib`` itself, leaving each row out of its own neighbours.
    target : array_like (n,), optional
        Series of the library's length whose values are predicted; ``lib`` by default.
    E, tau : int
        Embedding dimension and lag, at least 1.
    Tp : int
        Steps ahead; 0 or negative are allowed.
    knn : int, optional
        Neighbours; E + 1 by default.
    exclusion_radius : int
        Rows with |t - j| up to this are no neighbours (0: the row itself). Without effect with ``pred``.
    dtype : {"float32", "float64"}
        What the device computes in.
    device : str, optional
        Which device; see ``pyedmcl devices``.
    tune : {"never", "cached", "auto", "force"}, optional
        Which tuned parameters kernels take, which changes speed and never the answer; ``PYEDMCL_TUNE`` or "cached" by
        default.

    Returns
    -------
    SimplexResult
        One entry per embedded row of the predicted series.

    Raises
    ------
    InputError
        An argument cannot be used.
    DeviceNotFoundError
        No device matches.
    """
    E, tau = check_embedding(E, tau)
    k = arguments.count("knn", knn) or E + 1
    Tp = arguments.integer("Tp", Tp)
    radius = arguments.integer("exclusion_radius", exclusion_radius, 0)
    arguments.precision(dtype)
    library = arguments.one_series(lib, "lib")
    require_rows(library, E=E, tau=tau, Tp=Tp, k=1, what="lib")
    goal = library if target is None else arguments.one_series(target, "target")
    if goal.n_steps != library.n_steps:
        raise InputError(f"target has {goal.n_steps} steps and lib {library.n_steps}: they must be equally long")
    values, first = library.values, (E - 1) * tau
    asked = None if pred is None else arguments.one_series(pred, "pred")
    if asked is not None:
        if asked.n_steps <= first:
            raise InputError(f"pred: E={E}, tau={tau} needs at least {first + 1} rows, there are {asked.n_steps}")
        values = np.concatenate([values, asked.values])
    executor = open_device(device)
    dtype = arguments.precision(dtype, executor.info.fp64, executor.info.name)
    ready = condition(values, dtype)
    aim = ready if target is None else condition(goal.values, dtype)
    penalty = penalty_of(goal.values[:, 0], Tp, dtype)
    n_query = library.n_steps if asked is None else asked.n_steps
    announce(executor.info, (E,), n_library=library.n_steps, n_query=n_query)
    search = Search((E,), (k,), tau, Tp, radius if asked is None else -1, library.n_steps, n_query, dtype)
    engine = ExactSearch(executor, search, "weights", masked=penalty is not None)
    data = Staging(executor, ready.values[: library.n_steps])
    other = None if asked is None else Staging(executor, ready.values[library.n_steps :])
    scored = (max(first, -Tp) + Tp, min(library.n_steps, library.n_steps + Tp))
    goals = Staging(executor, aim.values, scored=scored)
    projection = Projection(executor, goals, 0, 1)
    mean, spread = np.empty(n_query, dtype), np.empty(n_query, dtype)
    try:
        barred = None if penalty is None else executor.upload(penalty)
        table = next(engine.tables(*engine.load(data, 0, 1, other), barred))
        for buffer, values in zip(projection.predict(table), (mean, spread), strict=True):
            executor.download(buffer, values)
        shift, exponent = goals.scaling()
    finally:
        for held in (projection, engine, data, other, goals):
            if held is not None:
                held.release()
    # Back through both scalings: the device's centring, and that of extreme data.
    power = int(exponent[0])
    predicted = np.ldexp(mean[first:].astype(np.float64), power)
    there = predicted[np.isfinite(predicted)]
    noise = 8 * float(np.finfo(dtype).eps) * float(np.abs(there).max(initial=0.0)) * 2.0 ** int(aim.exponent[0])
    predicted += float(shift[0])
    predicted = np.ldexp(predicted, int(aim.exponent[0])) + aim.shift[0]
    variance = np.ldexp(spread[first:].astype(np.float64), 2 * (power + int(aim.exponent[0])))
    if asked is None:
        observed = _observed(goal.values[:, 0], Tp, first)
    elif target is None:
        observed = _observed(asked.values[:, 0], Tp, first)
    else:  # nobody has observed another target beside the new series
        observed = np.full(len(predicted), np.nan)
    mae, rmse = scores.errors(predicted, observed)
    return SimplexResult(
        time=np.arange(first, n_query) + Tp,
        observed=observed,
        predicted=predicted,
        variance=variance,
        rho=float(scores.pearson(predicted, observed, noise)),
        mae=mae,
        rmse=rmse,
        E=E,
        provenance=provenance(executor, ["knn", "predict"], engine.parameters, grade=engine.grade),
    )
