"""The embedding dimension that predicts best, for one series or many at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..data.condition import condition
from ..data.series import Series, as_series, check_embedding, require_rows
from ..device.memory import budget
from ..device.session import open_device
from ..engines.project import Projection
from ..engines.skill import scores, skill_sums
from ..launch.pool import Pool
from ..launch.progress import Progress, reporting
from ..launch.staging import Staging
from ..neighbors.choose import Choice, report
from ..neighbors.choose import engine as search_engine
from ..neighbors.exact import ExactSearch
from ..neighbors.plan import Search
from ..tuning.retry import tunable
from . import arguments
from .effort import announce
from .embed_dimension_result import EmbedDimensionResult
from .embed_dimension_rows import check_rows, chosen_skill
from .masks import penalty_of
from .provenance import provenance

if TYPE_CHECKING:
    from ..device.executor import Executor

_BLOCK_CELLS = 1 << 24  # values of series handled at a time


@tunable
@reporting
def embed_dimension(
    x: Any,
    *,
    target: Any = None,
    E_max: int = 20,
    tau: int = 1,
    Tp: int = 1,
    exclusion_radius: int = 0,
    knn: int | None = None,
    lib_range: Any = None,
    pred_range: Any = None,
    valid_lib: Any = None,
    neighbors: str = "exact",
    recall: float = 0.99,
    progress: Progress | None = None,
    dtype: str = "float32",
    device: str | None = None,
    tune: str | None = None,
) -> EmbedDimensionResult:
    """Find the embedding dimension E = 1, ..., E_max whose simplex projection of a series by itself is best (rho).

    All dimensions come from one pass over the pairs of rows, all series from a few launches; with ``target`` or chosen
    rows each series and dimension is a search of its own.

    Parameters
    ----------
    x : array_like (n_steps,) or (n_steps, n_series)
        Time along the first axis, NaN for gaps.
    target : array_like (n_steps,), optional
        Series that each of x predicts; itself by default.
    E_max : int
        Largest dimension tried, at least 1.
    tau, Tp : int
        Lag (at least 1) and steps ahead.
    exclusion_radius : int
        Rows with |t - j| up to this are no neighbours (0: the row itself).
    knn : int, optional
        Neighbours; E + 1 by default.
    lib_range, pred_range : (int, int), sequence of (int, int), or mask of bool, optional
        Rows of the library and rows that are predicted, as for :func:`pyedmcl.simplex`; they may be disjoint. Of a
        range each E uses the rows that have E lags.
    valid_lib : mask of bool (n_steps,), optional
        Library rows that may be used, in addition to ``lib_range`` (conditional embedding).
    neighbors : {"exact", "auto", "kdtree", "ivf", "hnsw", "pruned"}
        How neighbours are searched; see :func:`pyedmcl.knn`.
    recall : float
        Share of the true neighbours, in (0, 1], that an approximate search must find.
    progress : callable, optional
        Called as ``progress(done, total, "series")``, and within long searches with unit "queries" or "states".
    dtype : {"float32", "float64"}
        What the device computes in.
    device : str, optional
        Which device; see ``pyedmcl devices``.
    tune : {"never", "cached", "auto", "force"}, optional
        Which tuned parameters kernels take, which changes speed and never the answer; ``PYEDMCL_TUNE`` or "cached" by
        default.

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
    choice = arguments.neighbor_search(neighbors, recall)
    arguments.precision(dtype)
    arguments.reporter(progress)
    series = as_series(x, what="x")
    require_rows(series, E=E_max, tau=tau, Tp=Tp, k=1, what="x")
    chosen = any(given is not None for given in (target, lib_range, pred_range, valid_lib))
    rows = {"tau": tau, "Tp": Tp, "knn": k, "exclusion_radius": radius, "lib_range": lib_range,
            "pred_range": pred_range, "valid_lib": valid_lib}  # fmt: skip
    if chosen:
        check_rows(series, range(1, E_max + 1), target, rows)
    executor = open_device(device)
    dtype = arguments.precision(dtype, executor.info.fp64, executor.info.name)
    announce(executor.info, range(1, E_max + 1), n_library=series.n_steps, n_query=series.n_steps,
             n_series=series.n_series)  # fmt: skip
    dims = range(1, E_max + 1)
    if chosen:
        rho, record = chosen_skill(executor, series, dims, target, rows, dtype, progress, choice)
    else:
        rho, record = self_skill(executor, series, dims, tau, Tp, radius, k, dtype, progress, choice)
    best = np.where(np.isnan(rho), -np.inf, rho).argmax(axis=1) + 1
    single = getattr(x, "ndim", 2 if series.n_series > 1 else 1) == 1
    return EmbedDimensionResult(int(best[0]) if single else best, rho[0] if single else rho, series.names, record)


def self_skill(
    executor: Executor, series: Series, dims: range, tau: int, Tp: int, radius: int, k: int | None, dtype: str,
    progress: Progress | None = None, choice: Choice | None = None,
) -> tuple[NDArray[np.float64], dict[str, Any]]:  # fmt: skip
    """rho (n_series, len(dims)) of each series predicted by itself, and where it comes from."""
    n, L = series.n_series, series.n_steps
    search = Search(tuple(dims), tuple(k or E + 1 for E in dims), tau, Tp, radius, L, L, dtype)
    rho = np.full((n, len(dims)), np.nan)
    ready = condition(series.values, dtype, series.extent)
    first = max((max(dims) - 1) * tau, -Tp) + Tp
    data = Staging(executor, ready.values, scored=(first, min(L, L + Tp)), room=budget(executor.info).total // 8)
    # Gaps rule out rows of their own series only: series with gaps go one by one, runs of others in blocks.
    # Raw, padded and centred copies of a block, and its predictions, take a quarter of the device's budget.
    room = budget(executor.info).total // 4
    each = (4 * search.stride(L) + 2 * len(dims) * L) * search.itemsize
    step = max(min(_BLOCK_CELLS // L, room // each), 1)
    pool = Pool(executor)
    engines: dict[bool, ExactSearch] = {}
    try:
        for a, b in _runs(ready.gaps, step):
            barred = penalty_of(series.values[:, a], Tp, dtype) if ready.gaps[a] else None
            masked = barred is not None
            if masked not in engines:
                engines[masked] = search_engine(
                    executor, search, "weights", choice, masked=masked, data_bytes=ready.values.nbytes, pool=pool
                )
            engine = engines[masked]
            projection = Projection(executor, data, a, b)
            penalty = None if barred is None else executor.upload(barred)
            for tables in engine.tables(*engine.load(data, a, b), penalty):
                predicted, _ = projection.predict(tables)
                these = np.array(tables.sweep.search.dims)
                sums = skill_sums(
                    executor, predicted, projection.targets, dtype=dtype,
                    n_rows=L, observed_stride=L, observed_offset=Tp,
                    observed_of=np.tile(np.arange(tables.first, tables.first + tables.n_libraries), len(these)),
                    t_begin=np.repeat(np.maximum((these - 1) * tau, -Tp), tables.n_libraries), t_end=min(L, L - Tp),
                )  # fmt: skip
                at = slice(a + tables.first, a + tables.first + tables.n_libraries)
                rho[at, these - dims.start] = scores(sums, dtype)[0].reshape(len(these), -1).T
            projection.release()
            if progress is not None:
                progress(b, n, "series")
    finally:
        data.release()
        pool.release()
    chosen = next(iter(engines.values()))
    return rho, provenance(executor, ["knn", "predict", "skill"], chosen.parameters, grade=chosen.grade,
                           neighbors=report(*engines.values()))  # fmt: skip


def _runs(gaps: NDArray[np.bool_], most: int) -> Iterator[tuple[int, int]]:
    """Ranges of columns: each series with gaps alone, the others in runs of at most ``most``."""
    a = 0
    while a < len(gaps):
        b = a + 1
        while not gaps[a] and b < len(gaps) and not gaps[b] and b - a < most:
            b += 1
        yield a, b
        a = b
