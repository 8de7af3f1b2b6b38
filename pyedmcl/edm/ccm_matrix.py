"""Convergent cross mapping of all pairs: does skill grow with the library, for N x N directions?"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..data.series import Series, as_series, check_embedding, require_rows
from ..device.fingerprint import device_key
from ..device.session import open_device
from ..engines.ccm import SampledSkill
from ..engines.subsets import Link
from ..errors import InputError, Interrupted
from ..kernels import spec
from ..launch.progress import Progress, reporting
from ..neighbors.choose import Choice
from ..neighbors.searched import add
from ..tuning.retry import tunable
from . import arguments
from .ccm import KERNELS
from .ccm_matrix_result import CcmMatrixResult
from .ccm_problem import check_seed
from .convergence import means
from .effort import announce
from .provenance import provenance
from .states import delay_states, embed, future
from .xmap import _digest, _dimensions, _find

if TYPE_CHECKING:
    from ..device.executor import Executor
    from ..jobs.store import XmapStore
    from .ccm_matrix_store import Stores

Doubles = NDArray[np.float64]
_SIZES = 8
_BLOCK_LINKS = 1024  # pairs of a block: some seconds to minutes of work
_LINKS = 256  # pairs whose targets are on the device together


@tunable
@reporting
def ccm_matrix(
    data: Any,
    *,
    lib_sizes: Any = None,
    sample: int = 30,
    E: str | int | Sequence[int] = "auto",
    tau: int = 1,
    Tp: int = 0,
    seed: int | None = None,
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
) -> CcmMatrixResult:
    """Convergent cross mapping of every series onto every other.

    ``result.at(size)[i, j]`` is the mean skill with which random states of series i predict series j; skill that grows
    with the library says that j drives i (see :func:`pyedmcl.ccm`).

    Parameters
    ----------
    data : array_like (n_steps, n_series)
        Time along the first axis, NaN for gaps.
    lib_sizes : int or sequence of int, optional
        Rows of a sub-library; eight up to all by default.
    sample : int
        Sub-libraries of each pair and size; each pair, size and sample has a random stream of its own.
    E : "auto", int or sequence of int
        Embedding dimension: **of the library**, whose states are embedded, for all or one by one. (:func:`pyedmcl.xmap`
        takes that of the target.) "auto" finds each series' own by :func:`pyedmcl.embed_dimension`.
    seed : int, optional
        Chooses the sub-libraries; by default that of the result that is continued, else a fresh one, which the result
        names. Pair (0, 1) of a seed has the sub-libraries of :func:`pyedmcl.ccm`.
    out : path, optional
        A folder for the result, a store for each library size, written block by block; the same call continues after an
        interruption, and a call with other library sizes adds these.
    resume : bool
        False starts the stores of these library sizes afresh.
    neighbors, recall
        As for :func:`pyedmcl.ccm`; a result that is continued keeps its search.
    progress : callable, optional
        Called as ``progress(done, total, "series")`` and, while E is searched, with unit "dimensions"; within
        long computations also as :func:`pyedmcl.ccm` calls it.
    tau, Tp, exclusion_radius, knn, E_max, columns, dtype, device, tune
        As for :func:`pyedmcl.xmap`.

    Returns
    -------
    CcmMatrixResult

    Raises
    ------
    InputError
        Data or an argument cannot be used.
    DeviceNotFoundError, DeviceMemoryError
        No device matches; sixteen samples of a library do not fit on it.
    StoreForeignError, StoreMismatchError, StoreWriteError
        ``out`` is not ours, belongs to other data or parameters, or cannot be written.
    Interrupted
        Ctrl-C with ``out``: what was finished is kept.
    """
    _, tau = check_embedding(1, tau)
    Tp = arguments.integer("Tp", Tp)
    radius = arguments.integer("exclusion_radius", exclusion_radius, 0)
    samples = arguments.integer("sample", sample, 1)
    k = arguments.count("knn", knn)
    arguments.reporter(progress)
    arguments.folder("out", out)
    choice = arguments.neighbor_search(neighbors, recall)
    arguments.precision(dtype)
    E_max = arguments.integer("E_max", E_max, 1)
    series = as_series(data, columns=columns)
    if series.n_series < 2:
        raise InputError("data: there is one series; pairs need two at least")
    dims = _dimensions(E, series, tau)
    highest = E_max if dims is None else int(dims.max())
    require_rows(series, E=highest, tau=tau, Tp=Tp, k=1)
    if seed is None and out is not None and resume:
        from .ccm_matrix_store import stored_seed

        seed = stored_seed(out)
    number = check_seed(seed)
    # Sizes are checked before E is known: the largest E that may be found has the fewest rows.
    sizes = _library_sizes(lib_sizes, series, highest, tau, Tp, k)
    executor = open_device(device)
    dtype = arguments.precision(dtype, executor.info.fp64, executor.info.name)
    n, N = series.n_steps, series.n_series
    announce(executor.info, [highest], n_library=n, n_query=n, n_series=N, n_targets=N * len(sizes) * samples)
    begun = time.perf_counter()
    asked = {"E": "auto" if dims is None else _digest(dims), "tau": tau, "Tp": Tp, "exclusion_radius": radius, "knn": k,
             "E_max": E_max if dims is None else None, "dtype": dtype, "sample": samples, "seed": number}  # fmt: skip
    if choice.search != "exact":  # stores of before know no other
        asked |= {"neighbors": choice.search, "recall": choice.recall}
    searched: list[dict[str, Any]] = []

    def found_dims(known: NDArray[np.int_] | None) -> NDArray[np.int_]:
        return _find(executor, series, known, E_max, tau, radius, k, dtype, progress, choice, searched)

    if out is None:
        dims = found_dims(dims)
        matrix = _Matrix(executor, series, dims, asked)
        rho = np.empty((len(sizes), N, N), np.dtype(dtype))
        step = _block_rows(N)
        for a in range(0, N, step):
            b = min(a + step, N)
            rho[:, a:b] = matrix.skill(a, b, sizes)
            if progress is not None:
                progress(b, N, "series")
        record = provenance(executor, KERNELS, matrix.parameters, arguments=asked, seconds=time.perf_counter() - begun,
                            neighbors=searched + matrix.searched)  # fmt: skip
        return CcmMatrixResult(np.array(sizes), tuple(rho), dims, series.names, samples, number, record)
    from .ccm_matrix_store import open_stores, read_stores

    with open_stores(out, sizes, _manifest(series, asked, executor, dtype), resume=resume) as stores:
        try:
            used = _fill(stores, executor, series, asked, dims, found_dims, searched, progress)
        except KeyboardInterrupt as stop:
            done = stores.first.n_blocks - len(stores.pending())
            raise Interrupted(
                f"stopped: {done} of {stores.first.n_blocks} blocks of {out} are finished and kept; the same call (or "
                "command) continues there"
            ) from stop
    there = read_stores(out)
    record = provenance(executor, KERNELS, used, arguments=asked, seconds=time.perf_counter() - begun,
                        neighbors=_searched({size: there[size] for size in sizes}))  # fmt: skip
    return CcmMatrixResult(
        np.array(sizes), tuple(there[size].rho for size in sizes), np.asarray(there[sizes[0]].E, int), series.names,
        samples, number, record,
    )  # fmt: skip


def open_ccm_matrix(path: str | os.PathLike[str]) -> CcmMatrixResult:
    """Open a result that ``ccm_matrix(..., out=path)`` or the command line wrote; skill is read when it is looked at.

    Raises
    ------
    StoreForeignError
        The path is not such a result.
    StoreMismatchError
        Its library sizes do not belong together.
    """
    from .ccm_matrix_store import read_stores

    stores = read_stores(path)
    first = next(iter(stores.values()))
    dims = np.zeros(len(first.names), int) if first.E is None else np.asarray(first.E, int)
    own = first.manifest.parameters
    return CcmMatrixResult(
        np.array(list(stores)), tuple(store.rho for store in stores.values()), dims, first.names, int(own["sample"]),
        int(own["seed"]), {"manifest": first.manifest, "neighbors": _searched(stores)},
    )  # fmt: skip


def _searched(stores: Mapping[int, XmapStore]) -> list[dict[str, Any]]:
    """What searched for neighbours, for any of the library sizes."""
    found: list[dict[str, Any]] = []
    for store in stores.values():
        add(found, store.searched)
    return found


def _library_sizes(lib_sizes: Any, series: Series, E: int, tau: int, Tp: int, k: int | None) -> list[int]:
    """Library sizes, checked against the rows of the pair that has the fewest."""
    there = np.isfinite(series.values)
    known = np.array([np.isfinite(future(series.values[:, j], Tp)) for j in range(series.n_series)])
    embedded = np.array([
        np.isfinite(embed(series.values[:, [i]], E, tau)).all(axis=1) for i in range(series.n_series)
    ]) if not there.all() else (np.arange(series.n_steps) >= (E - 1) * tau)[None]  # fmt: skip
    rows = embedded.astype(np.float32) @ known.astype(np.float32).T
    most, least = int(rows.min()), (k or E + 1) + 1
    if most < least:
        raise InputError(
            f"data: some pair has {most:,} rows with all coordinates (E={E}) and a target, which is too few for "
            f"{least - 1} neighbours of each row; leave out series with many gaps, or use a smaller E, E_max or knn"
        )
    if lib_sizes is None:
        return [int(size) for size in np.unique(np.linspace(max(least, most // 50), most, _SIZES).astype(int))]
    given = [lib_sizes] if np.ndim(lib_sizes) == 0 else list(lib_sizes)
    sizes = [arguments.integer("lib_sizes", size) for size in given]
    for size in sizes:
        if not least <= size <= most:
            raise InputError(
                f"lib_sizes: {size:,}; from {least} (more than the neighbours) to {most:,} rows can be drawn of each "
                f"series with E up to {E}"
            )
    if not sizes or len(set(sizes)) != len(sizes):
        raise InputError(f"lib_sizes={lib_sizes!r}: at least one size is needed, and none twice")
    return sizes


def _block_rows(n_series: int) -> int:
    """Libraries of a block; depends on nothing else, so that another run can continue."""
    return max(min(_BLOCK_LINKS // n_series, 16, n_series), 1)


def _manifest(series: Series, asked: dict[str, Any], executor: Executor, dtype: str) -> dict[str, Any]:
    from .. import __version__

    return {
        "input_digest": series.digest(),
        "names": series.names,
        "block_rows": _block_rows(series.n_series),
        "parameters": asked,
        "version": __version__,
        "kernels": {name: spec(name).digest() for name in KERNELS},
        "device": device_key(executor.info).as_dict(),
        "dtype": dtype,
    }


def _fill(
    stores: Stores, executor: Executor, series: Series, asked: dict[str, Any], dims: NDArray[np.int_] | None,
    find: Any, searched: list[dict[str, Any]], progress: Progress | None,
) -> dict[str, Any]:  # fmt: skip
    """Compute and write what stores still lack; returns the parameters that kernels had."""
    known = next((store.E for store in stores.by_size.values() if store.E is not None), None)
    chosen = find(dims) if known is None else np.asarray(known, int)
    add(searched, _searched(stores.by_size))
    for store in stores.by_size.values():
        if store.E is None:
            if searched:  # before E: a run that continues finds E there and does not search for it
                store.set_searched(searched)
            store.set_E(chosen)
    waiting = stores.pending()
    done = series.n_series - sum(b - a for a, b in map(stores.first.rows, waiting))
    if progress is not None:
        progress(done, series.n_series, "series")
    matrix = _Matrix(executor, series, chosen, asked)
    for block in waiting:
        a, b = stores.first.rows(block)
        sizes = stores.sizes_lacking(block)
        blocks = matrix.skill(a, b, sizes)
        add(searched, matrix.searched)
        for size, rho in zip(sizes, blocks, strict=True):
            if stores.by_size[size].searched != searched:
                stores.by_size[size].set_searched(searched)
            stores.by_size[size].write(block, rho)
        done += b - a
        if progress is not None:
            progress(done, series.n_series, "series")
    return matrix.parameters


class _Matrix:
    """Mean skill of blocks of libraries against all targets."""

    def __init__(self, executor: Executor, series: Series, dims: NDArray[np.int_], asked: dict[str, Any]) -> None:
        self._executor, self._series, self._dims, self._asked = executor, series, dims, asked
        self._aims = np.array([future(series.values[:, j], asked["Tp"]) for j in range(series.n_series)])
        self._choice = Choice(asked.get("neighbors", "exact"), asked.get("recall", 0.99))
        self.parameters: dict[str, Any] = {}
        self.searched: list[dict[str, Any]] = []

    def skill(self, a: int, b: int, sizes: Sequence[int]) -> NDArray[Any]:
        """Mean skill (n_sizes, b - a, n_series) of libraries a to b."""
        n, asked = self._series.n_series, self._asked
        out = np.full((len(sizes), b - a, n), np.nan, np.dtype(asked["dtype"]))
        for E in np.unique(self._dims[a:b]):
            alike = a + np.flatnonzero(self._dims[a:b] == E)
            step = max(_LINKS // n, 1)
            for first in range(0, len(alike), step):
                libraries = alike[first : first + step]
                states = delay_states(
                    self._series.values[:, libraries], int(E), asked["tau"], k=asked["knn"] or int(E) + 1,
                    Tp=asked["Tp"], exclusion_radius=asked["exclusion_radius"], dtype=asked["dtype"],
                )  # fmt: skip
                pairs = [(place, j) for place, i in enumerate(libraries) for j in range(n) if i != j]
                links = [Link(place, j, (int(libraries[place]), j)) for place, j in pairs]
                engine = SampledSkill(self._executor, states, self._aims, choice=self._choice)
                try:
                    mean = means(engine.skill(links, sizes, asked["sample"], asked["seed"]))
                finally:
                    engine.release()
                add(self.searched, engine.searched)
                self.parameters = engine.parameters or self.parameters
                for (place, j), values in zip(pairs, mean, strict=True):
                    out[:, libraries[place] - a, j] = values
        return out
