"""The embedding dimension that predicts best, for one series or many at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..condition import condition
from ..device.session import open_device
from ..neighbors.exact import ExactSearch
from ..neighbors.project import Projection
from ..plan import Search
from ..results import EmbedDimensionResult
from ..series import Series, as_series, check_embedding, require_rows
from . import arguments, scores
from .masks import penalty_of
from .provenance import provenance

if TYPE_CHECKING:
    from ..device.executor import Executor

Progress = Callable[[int, int, str], None]
_BLOCK_CELLS = 1 << 24  # predictions held on the host at a time


def embed_dimension(
    x: Any,
    *,
    E_max: int = 20,
    tau: int = 1,
    Tp: int = 1,
    exclusion_radius: int = 0,
    knn: int | None = None,
    progress: Progress | None = None,
    dtype: str = "float32",
    device: str | None = None,
) -> EmbedDimensionResult:
    """Find the embedding dimension E = 1, ..., E_max whose simplex projection of a series by itself has the highest rho.

    All dimensions come from one pass over the pairs of rows, all series from a few launches.

    Parameters
    ----------
    x : array_like (n_steps,) or (n_steps, n_series)
        Time along the first axis, NaN for gaps.
    E_max : int
        Largest dimension tried, at least 1.
    tau, Tp : int
        Lag (at least 1) and steps ahead.
    exclusion_radius : int
        Rows with |t - j| up to this are no neighbours (0: the row itself).
    knn : int, optional
        Neighbours; E + 1 by default.
    progress : callable, optional
        Called as ``progress(done, total, "series")``.
    dtype : {"float32", "float64"}
        What the device computes in.
    device : str, optional
        Which device; see ``pyedmcl devices``.

    Returns
    -------
    EmbedDimensionResult
        ``E`` is an int and ``rho`` (E_max,) for 1-D input, else (n_series,) and (n_series, E_max).

    Raises
    ------
    InputError
        An argument cannot be used.
    DeviceNotFoundError
        No device matches.
    """
    _, tau = check_embedding(1, tau)
    E_max = arguments.integer("E_max", E_max, 1)
    Tp = arguments.integer("Tp", Tp)
    radius = arguments.integer("exclusion_radius", exclusion_radius, 0)
    k = arguments.count("knn", knn)
    arguments.precision(dtype)
    series = as_series(x, what="x")
    require_rows(series, E=E_max, tau=tau, Tp=Tp, k=1, what="x")
    executor = open_device(device)
    dtype = arguments.precision(dtype, executor.info.fp64, executor.info.name)
    rho, record = self_skill(executor, series, range(1, E_max + 1), tau, Tp, radius, k, dtype, progress)
    best = np.where(np.isnan(rho), -np.inf, rho).argmax(axis=1) + 1
    single = getattr(x, "ndim", 2 if series.n_series > 1 else 1) == 1
    return EmbedDimensionResult(int(best[0]) if single else best, rho[0] if single else rho, series.names, record)


def self_skill(
    executor: Executor, series: Series, dims: range, tau: int, Tp: int, radius: int, k: int | None, dtype: str,
    progress: Progress | None = None,
) -> tuple[NDArray[np.float64], dict[str, Any]]:  # fmt: skip
    """rho (n_series, len(dims)) of each series predicted by itself, and where it comes from."""
    n, L = series.n_series, series.n_steps
    search = Search(tuple(dims), tuple(k or E + 1 for E in dims), tau, Tp, radius, L, L, dtype)
    rho = np.full((n, len(dims)), np.nan)
    gaps = np.isnan(series.values).any(axis=0)
    # Gaps rule out rows of their own series only: series with gaps go one by one, the others in blocks.
    step = max(_BLOCK_CELLS // (L * len(dims)), 1)
    whole = np.flatnonzero(~gaps)
    blocks = [whole[a : a + step] for a in range(0, len(whole), step)]
    blocks += [np.array([column]) for column in np.flatnonzero(gaps)]
    buffers: dict[str, Any] = {}
    engines = {masked: ExactSearch(executor, search, "weights", masked=masked, buffers=buffers) for masked in (False, True)}
    done = 0
    try:
        for block in blocks:
            values = np.ascontiguousarray(series.values[:, block])
            ready = condition(values, dtype, centre=False)
            aim = condition(values, dtype, centre=True)
            barred = penalty_of(values[:, 0], Tp, dtype) if len(block) == 1 else None
            engine = engines[barred is not None]
            library, query, count = engine.upload(ready.values.T)
            projection = Projection(executor, aim.values.T)
            penalty = None if barred is None else executor.upload(barred)
            observed = np.where(np.isnan(values), np.nan, aim.values).T
            for tables in engine.tables(library, query, count, penalty):
                predicted, _ = projection.predict(tables)
                at = slice(tables.first, tables.first + tables.n_libraries)
                for slot, E in enumerate(tables.sweep.search.dims):
                    first, last = max((E - 1) * tau, -Tp), min(L, L - Tp)
                    rho[block[at], dims.index(E)] = scores.pearson(
                        predicted[slot][:, first:last], observed[at, first + Tp : last + Tp]
                    )
            projection.release()
            done += len(block)
            if progress is not None:
                progress(done, n, "series")
    finally:
        for engine in engines.values():
            engine.release()
    chosen = engines[False]
    return rho, provenance(executor, ["knn", "predict"], chosen.parameters, grade=chosen.grade)
