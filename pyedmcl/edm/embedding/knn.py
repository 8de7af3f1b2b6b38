"""All nearest neighbours of a delay-embedded series."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...data.group_labels import take_groups
from ...data.series import check_embedding, require_rows
from ...device.select import DeviceNames
from ...errors import InputError
from ...io.on_device import OnDevice
from ...jobs.device_results import KERNEL, DeviceSink, arrays_of, runner_at
from ...jobs.function import public_function
from ...jobs.sinks import ArraySink
from ...launch.delivery import DeviceRows
from ...launch.progress import Progress
from ..shared import arguments
from .knn_problem import KnnProblem
from .knn_result import KnnResult


@public_function
def knn(
    x: Any,
    *,
    E: int,
    tau: int = 1,
    k: int | None = None,
    Tp: int = 0,
    exclusion_radius: int = 0,
    query: Any = None,
    groups: Any = None,
    regular: str | None = None,
    neighbors: str = "exact",
    recall: float = 0.99,
    progress: Progress | None = None,
    dtype: str = "float32",
    out: Any = None,
    device: DeviceNames = None,
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
    groups : str, sequence of str, or labels (n,), optional
        Recordings that stand one below the other, as for :func:`pyedmcl.simplex`: no state crosses a border, and
        neighbours come from all of them. Of equal distances the row of the earlier group comes first.
    regular : {"insert", "ignore"}, optional
        What is done where times of rows are not regular, as for :func:`pyedmcl.xmap`.
    neighbors : {"exact", "auto", "exhaustive", "pruned", "kdtree", "ivf", "hnsw"}
        How neighbours are searched. "exact" takes the fastest of "exhaustive" (compares all pairs), "pruned" and
        "kdtree", which find the same neighbours; so does "auto", to which an approximate search would be allowed, too.
        "ivf" and "hnsw" may miss some. Where there was a choice, ``provenance["neighbors"]`` says which ran, why, and
        its recall.
    recall : float
        Share of the true neighbours, in (0, 1], that an approximate search must find.
    progress : callable or True, optional
        Called within a long search as ``progress(done, total, "queries")``, and with unit "states" while an index is
        built.
    dtype : {"float32", "float64"}
        What the device computes in.
    out : (array, array), optional
        Arrays on the device for indices (int32) and distances (``dtype``), both (rows of the query, k): of PyOpenCL, or
        in memory of SYCL. The result has them, and nothing of it is copied to the host until it is looked at; see
        ``docs/pipeline.md``. Not with ``groups``.
    device : str, optional
        Which device; see ``pyedmcl devices``. Functions that make many results take several, too: "gpus", or a list.
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
    count = arguments.count("k", k) or E + 1
    Tp = arguments.integer("Tp", Tp)
    radius = arguments.exclusion(exclusion_radius)
    search = arguments.neighbor_search(neighbors, recall)
    arguments.reporter(progress)
    dtype = arguments.precision(dtype)
    x, of = take_groups(x, groups, "x")
    library = arguments.one_series(x, "x")
    require_rows(library, E=E, tau=tau, Tp=Tp, k=1, what="x")
    other = None if query is None else arguments.one_series(query, "query")
    if other is not None and other.n_steps <= (E - 1) * tau:
        raise InputError(f"query: E={E}, tau={tau} needs at least {(E - 1) * tau + 1} rows, there are {other.n_steps}")
    layout = None
    if of is not None:
        if query is not None:
            raise InputError("groups= with query=: states of one recording are looked up; call once for each query")
        layout = of.layout(E=E, tau=tau, Tp=[Tp], exclusion_radius=radius)
        library, radius = layout.series(library, "x"), layout.exclusion_radius
    problem = KnnProblem(library, other, E, tau, Tp, count, radius, search, dtype)
    if out is not None:
        return _on_device(problem, out, layout is not None, device)
    runner = arguments.runner_on(device, dtype)
    indices, distances = problem.result()
    record = runner.run(problem, ArraySink(problem.blocks(), [indices, distances]))
    if layout is not None:
        ordered = indices[layout.order]
        indices, distances = np.where(ordered < 0, -1, layout.rows[ordered]).astype(np.int32), distances[layout.order]
    return KnnResult(indices, distances, runner.provenance(problem.kernels, record))


def _on_device(problem: KnnProblem, out: Any, grouped: bool, device: DeviceNames) -> KnnResult:
    """The neighbours in arrays of the caller."""
    if grouped:
        raise InputError("out= with groups=: rows of groups are put in order on the host; leave one of them out")
    if problem.result_dtype != problem.dtype:
        raise InputError("out=: the range of the data is below 2**-100 or above 2**100, so that float32 cannot hold "
                         "distances; scale the data, use dtype='float64', or leave out= out")  # fmt: skip
    shape = problem.total, problem.k
    arrays = arrays_of(out, {"indices": (shape, np.int32), "distances": (shape, problem.dtype)})
    runner = runner_at(arrays, device, problem.dtype)
    rows = [DeviceRows.of(array, runner.executor) for array in arrays]
    record = runner.run(problem, DeviceSink(problem.blocks(), rows))
    used = runner.provenance((*problem.kernels, KERNEL), record)
    return KnnResult(OnDevice(arrays[0].array), OnDevice(arrays[1].array), used)
