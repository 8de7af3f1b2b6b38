"""All nearest neighbours of a delay-embedded series."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..data.condition import condition
from ..data.series import check_embedding, require_rows
from ..device.session import open_device
from ..errors import InputError
from ..launch.progress import Progress, reporting
from ..launch.staging import Staging
from ..neighbors.choose import engine as search_engine
from ..neighbors.choose import report
from ..neighbors.plan import Search
from ..tuning.retry import tunable
from . import arguments
from .effort import announce
from .knn_result import KnnResult
from .masks import penalty_of
from .provenance import provenance


@tunable
@reporting
def knn(
    x: Any,
    *,
    E: int,
    tau: int = 1,
    k: int | None = None,
    Tp: int = 0,
    exclusion_radius: int = 0,
    query: Any = None,
    neighbors: str = "exact",
    recall: float = 0.99,
    progress: Progress | None = None,
    dtype: str = "float32",
    device: str | None = None,
    tune: str | None = None,
) -> KnnResult:
    """Find the k nearest neighbours of every delay-embedded row.

    Row t is embedded as (x[t], x[t - tau], ..., x[t - (E-1) tau]). Distances are Euclidean; ties go to the smaller row.

    Parameters
    ----------
    x : array_like (n,)
        The library: one series, time along the first axis, NaN for gaps.
    E, tau : int
        Embedding dimension and lag, at least 1.
    k : int, optional
        Neighbours per row; E + 1 by default.
    Tp : int
        Only rows j whose x[j + Tp] exists and is no gap are neighbours; may be negative.
    exclusion_radius : int
        Rows with |t - j| up to this are no neighbours (0: the row itself). Without effect with ``query``.
    query : array_like (m,), optional
        Another series whose rows are looked up in ``x``.
    neighbors : {"exact", "auto", "kdtree", "ivf", "hnsw", "pruned"}
        How neighbours are searched. "kdtree" and "pruned" find the same neighbours as "exact"; "ivf" and "hnsw" may
        miss some; "auto" takes the fastest. ``provenance["neighbors"]`` says which ran, why, and its recall.
    recall : float
        Share of the true neighbours, in (0, 1], that an approximate search must find.
    progress : callable, optional
        Called within a long search as ``progress(done, total, "queries")``, and with unit "states" while an index is
        built.
    dtype : {"float32", "float64"}
        What the device computes in.
    device : str, optional
        Which device; see ``pyedmcl devices``.
    tune : {"never", "cached", "auto", "force"}, optional
        Which tuned parameters kernels take, which changes speed and never the answer; ``PYEDMCL_TUNE`` or "cached" by
        default.

    Returns
    -------
    KnnResult
        ``indices`` and ``distances``, (rows of the query, k).

    Raises
    ------
    InputError
        An argument cannot be used.
    DeviceNotFoundError
        No device matches.
    DeviceMemoryError
        The tables do not fit on the device.

    See Also
    --------
    simplex : predict by these neighbours.
    embed_dimension : choose E.

    Notes
    -----
    Cost: exact search compares each query row with each library row: about n_query * n_library * E multiply-adds;
    memory grows with n * k.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> result = pyedmcl.knn(network.values[:, 0], E=3)
    >>> result.indices.shape
    (400, 4)
    >>> bool((result.distances[2:, 0] <= result.distances[2:, 1]).all())
    True
    """
    E, tau = check_embedding(E, tau)
    wanted = arguments.count("k", k) or E + 1
    Tp = arguments.integer("Tp", Tp)
    radius = arguments.integer("exclusion_radius", exclusion_radius, 0)
    choice = arguments.neighbor_search(neighbors, recall)
    arguments.reporter(progress)
    arguments.precision(dtype)
    series = arguments.one_series(x, "x")
    require_rows(series, E=E, tau=tau, Tp=Tp, k=1, what="x")
    values = series.values
    rows = len(values)
    if query is not None:
        asked = arguments.one_series(query, "query")
        rows = asked.n_steps
        if rows <= (E - 1) * tau:
            raise InputError(f"query: E={E}, tau={tau} needs at least {(E - 1) * tau + 1} rows, there are {rows}")
        # One shift and scale for both: they are put behind each other.
        values = np.concatenate([values, asked.values])
    executor = open_device(device)
    dtype = arguments.precision(dtype, executor.info.fp64, executor.info.name)
    announce(executor.info, (E,), n_library=series.n_steps, n_query=rows)
    ready = condition(values, dtype)
    data = Staging(executor, ready.values[: series.n_steps])
    other = None if query is None else Staging(executor, ready.values[series.n_steps :])
    penalty = penalty_of(series.values[:, 0], Tp, dtype) if Tp else None
    search = Search((E,), (wanted,), tau, Tp, -1 if query is not None else radius, series.n_steps, rows, dtype)
    engine = search_engine(executor, search, "neighbours", choice, masked=penalty is not None)
    try:
        barred = None if penalty is None else executor.upload(penalty)
        table = next(engine.tables(*engine.load(data, 0, 1, other), barred))
        indices = np.empty((rows, wanted), np.int32)
        squared = np.empty((rows, wanted), np.dtype(dtype))
        executor.download(table.rows, indices)
        executor.download(table.values, squared)
    finally:
        engine.release()
        data.release()
        if other is not None:
            other.release()
    none = indices < 0
    squared[none] = np.inf
    squared = np.ldexp(squared, 2 * int(ready.exponent[0]))  # a power of two: exact
    record = provenance(executor, ["knn"], engine.parameters, grade=engine.grade, neighbors=report(engine))
    distances = np.sqrt(squared)  # here, since the host's root is correctly rounded and the device's may not be
    return KnnResult(indices, distances, record)
