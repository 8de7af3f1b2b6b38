"""All-pairs cross mapping."""

from __future__ import annotations

import hashlib
import os
import time
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..data.condition import condition
from ..data.series import Series, as_series, check_embedding, require_rows, some
from ..device.fingerprint import device_key
from ..device.session import open_device
from ..engines.crossmap import CrossMap
from ..errors import InputError, Interrupted
from ..kernels import spec
from ..launch.progress import Progress, reporting
from ..neighbors.choose import Choice
from ..neighbors.searched import add
from ..tuning.recorded import Answers, keeping
from ..tuning.retry import tunable
from . import arguments
from .effort import announce
from .embed_dimension import self_skill
from .masks import penalty_of
from .provenance import provenance
from .xmap_result import XmapResult

if TYPE_CHECKING:
    from ..device.executor import Executor
    from ..jobs.store import XmapStore

_BLOCK_SERIES = 1024
_KERNELS = ("stage", "knn", "lookup")


@tunable
@reporting
def xmap(
    data: Any,
    *,
    E: str | int | Sequence[int] = "auto",
    tau: int = 1,
    Tp: int = 0,
    exclusion_radius: int = 0,
    knn: int | None = None,
    E_max: int = 20,
    columns: Sequence[str | int] | str | int | None = None,
    out: str | os.PathLike[str] | None = None,
    resume: bool = True,
    neighbors: str = "exact",
    recall: float = 0.99,
    progress: Progress | None = None,
    dtype: str = "float32",
    device: str | None = None,
    tune: str | None = None,
) -> XmapResult:
    """Cross map every series onto every other: which series carries the trace of which.

    The embedding of series i (the library) predicts series j (the target) from its own nearest neighbours;
    ``rho[i, j]`` is the Pearson correlation of prediction and observation over all rows. If j drives i, i knows
    about j, and rho[i, j] is high (convergent cross mapping at full library size; Sugihara et al., Science 338, 496,
    2012).

    Parameters
    ----------
    data : array_like (n_steps, n_series)
        NumPy, pandas, polars, xarray or anything with ``__array__``; NaN for gaps.
    E : "auto", int or sequence of int
        Embedding dimension: **of the target**, for all or one by one. "auto" finds each series' own by
        :func:`embed_dimension` with ``E_max`` and Tp = 1.
    tau : int
        Lag, at least 1.
    Tp : int
        Steps between library row and target; 0 or negative are allowed.
    exclusion_radius : int
        Rows with |t - j| up to this are no neighbours (0: the row itself).
    knn : int, optional
        Neighbours; E + 1 by default.
    E_max : int
        Largest dimension for E = "auto".
    columns : optional
        Which series to take, by name or position.
    out : path, optional
        A folder for the result (Zarr v3), written block by block; the same call continues after an interruption, and
        the result may be larger than memory. Blocks that are added later take the tuned parameters of the first ones.
    resume : bool
        False starts ``out`` afresh.
    neighbors : {"exact", "auto", "kdtree", "ivf", "hnsw", "pruned"}
        How neighbours are searched; see :func:`pyedmcl.knn`.
    recall : float
        Share of the true neighbours, in (0, 1], that an approximate search must find.
    progress : callable, optional
        Called as ``progress(done, total, "series")`` and, while E is searched, with unit "dimensions"; within long
        searches with unit "queries" or "states" (an index is built).
    dtype : {"float32", "float64"}
        What the device computes in.
    device : str, optional
        Which device; see ``pyedmcl devices``.
    tune : {"never", "cached", "auto", "force"}, optional
        Which tuned parameters kernels take, which changes speed and never the answer; ``PYEDMCL_TUNE`` or "cached" by
        default.

    Returns
    -------
    XmapResult
        ``rho`` (n_series, n_series) with row = library and column = target; ``E``, ``names``.

    Raises
    ------
    InputError
        Data or an argument cannot be used.
    DeviceNotFoundError, DeviceMemoryError
        No device matches; the targets or a table do not fit.
    StoreForeignError, StoreMismatchError, StoreWriteError
        ``out`` is not ours, belongs to other data or parameters, or cannot be written.
    Interrupted
        Ctrl-C with ``out``: what was finished is kept.
    """
    _, tau = check_embedding(1, tau)
    Tp = arguments.integer("Tp", Tp)
    radius = arguments.integer("exclusion_radius", exclusion_radius, 0)
    k = arguments.count("knn", knn)
    arguments.reporter(progress)
    arguments.folder("out", out)
    choice = arguments.neighbor_search(neighbors, recall)
    arguments.precision(dtype)
    E_max = arguments.integer("E_max", E_max, 1)
    series = as_series(data, columns=columns)
    dims = _dimensions(E, series, tau)
    require_rows(series, E=E_max if dims is None else int(dims.max()), tau=tau, Tp=Tp, k=1)
    executor = open_device(device)
    dtype = arguments.precision(dtype, executor.info.fp64, executor.info.name)
    announce(executor.info, range(1, E_max + 1) if dims is None else dims.tolist(), n_library=series.n_steps,
             n_query=series.n_steps, n_series=series.n_series, n_targets=series.n_series)  # fmt: skip
    begun = time.perf_counter()
    kernels = (*_KERNELS, "predict", "skill") if dims is None else _KERNELS
    asked = {"E": "auto" if dims is None else _digest(dims), "tau": tau, "Tp": Tp, "exclusion_radius": radius,
             "knn": k, "E_max": E_max if dims is None else None, "dtype": dtype}  # fmt: skip
    if choice.search != "exact":  # stores of before know no other
        asked |= {"neighbors": choice.search, "recall": choice.recall}
    if out is None:
        searched: list[dict[str, Any]] = []
        dims = _find(executor, series, dims, E_max, tau, radius, k, dtype, progress, choice, searched)
        rho = np.empty((series.n_series, series.n_series), np.dtype(dtype))
        mapping = _mapping(executor, series, dims, tau, Tp, radius, k, dtype, choice)
        try:
            for a in range(0, series.n_series, _BLOCK_SERIES):
                b = min(a + _BLOCK_SERIES, series.n_series)
                mapping.skill(a, b, rho[a:b])
                if progress is not None:
                    progress(b, series.n_series, "series")
        finally:
            mapping.release()
        record = provenance(
            executor, _KERNELS, mapping.parameters, arguments=asked, seconds=time.perf_counter() - begun,
            neighbors=searched + mapping.searched,
        )  # fmt: skip
        return XmapResult(rho, dims, series.names, None, record)
    from ..jobs.store import open_store

    with _store(out, series, asked, executor, dtype, resume, kernels) as store:
        try:
            answers = store.parameters
            with keeping(answers):
                chosen = _fill(store, executor, series, dims, asked, answers, progress)
        except KeyboardInterrupt as stop:
            done = store.n_blocks - len(store.pending())
            raise Interrupted(
                f"stopped: {done} of {store.n_blocks} blocks of {store.path} are finished and kept; "
                "the same call (or command) continues there"
            ) from stop
    stored = open_store(out)
    record = provenance(executor, kernels, chosen, arguments=asked, seconds=time.perf_counter() - begun,
                        neighbors=stored.searched)  # fmt: skip
    return XmapResult(stored.rho, np.asarray(stored.E, int), series.names, stored, record)


def open_xmap(path: str | os.PathLike[str]) -> XmapResult:
    """Open a result that ``xmap(..., out=path)`` or the command line wrote; rho is read when it is looked at.

    Raises
    ------
    StoreForeignError
        The path is not such a result.
    """
    from ..jobs.store import open_store

    store = open_store(path)
    dims = np.zeros(len(store.names), int) if store.E is None else np.asarray(store.E, int)
    return XmapResult(store.rho, dims, store.names, store,
                      {"manifest": store.manifest, "neighbors": store.searched})  # fmt: skip


def _dimensions(E: Any, series: Series, tau: int) -> NDArray[np.int_] | None:
    """Dimension per series, or None for "auto"."""
    n = series.n_series
    if isinstance(E, str):
        if E != "auto":
            raise InputError(f"E={E!r}: 'auto', an integer of at least 1, or one for each of the {n} series")
        return None
    if np.ndim(E) == 0:
        return np.full(n, check_embedding(E, tau)[0])
    values = list(E)
    if len(values) != n:
        raise InputError(f"E has {len(values)} values, but there are {n} series")
    return np.array([check_embedding(value, tau)[0] for value in values])


def _digest(dims: NDArray[np.int_]) -> Any:
    """A list of dimensions as a manifest holds it: one number if they are equal, else a digest."""
    if (dims == dims[0]).all():
        return int(dims[0])
    return "sha256:" + hashlib.sha256(dims.astype("<i4").tobytes()).hexdigest()


def _find(
    executor: Executor, series: Series, dims: NDArray[np.int_] | None, E_max: int, tau: int, radius: int, k: int | None,
    dtype: str, progress: Progress | None, choice: Choice | None = None,
    searched: list[dict[str, Any]] | None = None,
) -> NDArray[np.int_]:  # fmt: skip
    """E of each series; what searched while it was found is added to ``searched``, marked as such."""
    if dims is not None:
        return dims

    def told(done: int, total: int, _: str) -> None:
        if progress is not None:
            progress(done, total, "dimensions")

    rho, record = self_skill(executor, series, range(1, E_max + 1), tau, 1, radius, k, dtype, told, choice)
    if searched is not None:
        add(searched, [{**one, "for": "E"} for one in record["neighbors"]])
    best: NDArray[np.int_] = np.where(np.isnan(rho), -np.inf, rho).argmax(axis=1) + 1
    return best


def _mapping(
    executor: Executor, series: Series, dims: NDArray[np.int_], tau: int, Tp: int, radius: int, k: int | None,
    dtype: str, choice: Choice | None = None,
) -> CrossMap:  # fmt: skip
    """The device side: targets uploaded, and grouped by dimension and pattern of gaps."""
    ready = condition(series.values, dtype, series.extent)
    flat = [series.names[column] for column in np.flatnonzero(ready.constant)]
    if flat:
        warnings.warn(f"constant series, whose rho is NaN: {some(flat)}", RuntimeWarning, stacklevel=6)
    pattern = np.zeros(series.n_series, int)
    penalties: dict[int, Any] = {}
    known: dict[bytes, int] = {}
    for column in np.flatnonzero(ready.gaps):
        barred = penalty_of(series.values[:, column], Tp, dtype)
        assert barred is not None
        number = known.setdefault(barred.tobytes(), len(known) + 1)
        pattern[column] = number
        penalties[number] = barred
    legal = series.n_steps - (int(dims.max()) - 1) * tau - abs(Tp) - 2 * radius - 1
    return CrossMap(
        executor, ready.values, dims, pattern, penalties,
        k=k, tau=tau, Tp=Tp, exclusion_radius=radius, gaps=bool(ready.gaps.any()) or legal < 1,
        choice=choice,
    )  # fmt: skip


def _store(
    out: str | os.PathLike[str], series: Series, asked: dict[str, Any], executor: Executor, dtype: str, resume: bool,
    kernels: tuple[str, ...],
) -> XmapStore:  # fmt: skip
    from .. import __version__
    from ..jobs.manifest import Manifest, default_block_rows
    from ..jobs.store import XmapStore

    manifest = Manifest(
        input_digest=series.digest(),
        names=series.names,
        block_rows=default_block_rows(series.n_series),
        parameters=asked,
        version=__version__,
        kernels={name: spec(name).digest() for name in kernels},
        device=device_key(executor.info).as_dict(),
        dtype=dtype,
    )
    return XmapStore.create_or_resume(out, manifest, resume=resume)


def _fill(
    store: XmapStore, executor: Executor, series: Series, dims: NDArray[np.int_] | None, asked: dict[str, Any],
    answers: Answers, progress: Progress | None,
) -> dict[str, Any]:  # fmt: skip
    """Compute and write what a store still lacks; returns the tuned parameters used."""
    tau, Tp, radius, k, dtype = (asked[name] for name in ("tau", "Tp", "exclusion_radius", "knn", "dtype"))
    choice = Choice(asked.get("neighbors", "exact"), asked.get("recall", 0.99))
    searched = store.searched
    if store.E is None:
        found = _find(executor, series, dims, asked["E_max"] or 1, tau, radius, k, dtype, progress, choice, searched)
        if searched:  # before E: a run that continues finds E there and does not search for it
            store.set_searched(searched)
        store.set_E(found)
    waiting = store.pending()
    done = sum(stop - start for start, stop in map(store.rows, range(store.n_blocks)))
    done -= sum(stop - start for start, stop in map(store.rows, waiting))
    if progress is not None:
        progress(done, series.n_series, "series")
    if not waiting:
        return {}
    mapping = _mapping(executor, series, np.asarray(store.E), tau, Tp, radius, k, dtype, choice)
    chosen, kept = mapping.parameters, store.parameters
    try:
        for block in waiting:
            rho = mapping.skill(*store.rows(block))
            if answers != kept:  # before the block: a run that continues it must know
                store.set_parameters(answers)
                kept = dict(answers)
            there = len(searched)
            add(searched, mapping.searched)
            if len(searched) > there:
                store.set_searched(searched)
            store.write(block, rho)
            done += len(rho)
            if progress is not None:
                progress(done, series.n_series, "series")
    finally:
        mapping.release()
    return chosen
