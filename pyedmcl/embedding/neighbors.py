"""States of a series as a table, their nearest neighbours, and false ones, which tell the dimension."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..arguments import real, some
from ..device.memory import budget
from ..device.select import DeviceNames
from ..errors import ConstantSeriesWarning, InputError, need, pandas_for, warn
from ..jobs.blocks import Arrays, Block, BlockResult, Record, Report, cut, origin, series_of_a_block
from ..jobs.runner import KERNEL, ArraySink, DeviceSink, arrays_of, public_function, runner_at
from ..launch.progress import Progress
from ..launch.replay import replayed
from ..launch.staging import DeviceRows, Pool, Staging, deliver_neighbours, require_rows
from ..parallel import bounds
from ..results.result import Label, Result, common, labelled
from ..search.choose import SearchRequest
from ..search.plan import SearchProblem
from ..search.searcher import open_searcher, sure_of
from ..series.arrays import OnDevice
from ..series.groups import take_groups
from ..series.scaling import Prepared, condition, near_one
from ..series.series import Series, as_series, build_series, check_embedding
from ..series.series import require_rows as series_require_rows
from ..states import arguments
from ..states.arguments import operations
from ..states.rows import library_mask_of
from ..states.states import embed as delays

if TYPE_CHECKING:
    from ..device.executor import Executor
    from ..search.tables import Tables


# Delay embedding as a table.


@dataclass(frozen=True, repr=False)
class EmbedResult(Result):
    """Delay coordinates.

    Attributes
    ----------
    values : ndarray (n_steps, n_series * E)
        Each series' lags in turn, newest first; NaN where a lag lies before the first row.
    names : tuple of str
        ``x(t-0)``, ``x(t-tau)``, ... of each series.
    time : ndarray or None
        Of the rows, where the data had it.
    provenance : mapping

    Examples
    --------
    >>> import pyedmcl
    >>> result = pyedmcl.embed([1.0, 2.0, 3.0, 4.0], E=2)
    >>> result.names, result.values[1:].tolist()
    (('x0(t-0)', 'x0(t-1)'), [[2.0, 1.0], [3.0, 2.0], [4.0, 3.0]])
    """

    series_label: ClassVar = Label("data", "value of the series this many rows before")

    values: NDArray[np.floating[Any]]
    names: tuple[str, ...]
    time: NDArray[Any] | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def to_xarray(self) -> Any:
        """An xarray DataArray (time, coordinate), or (row, coordinate) where the data have no time."""
        rows = ("row", np.arange(len(self.values))) if self.time is None else ("time", self.time)
        return labelled(self.values, [rows, ("coordinate", self.names)], "values")

    def to_frame(self) -> Any:
        """A pandas DataFrame, with the time as its index where there is one."""
        return pandas_for("to_frame()").DataFrame(self.values, columns=list(self.names), index=self.time)

    def plot(self, path: str | None = None) -> Any:
        """The path through the first coordinates, up to three; saved to ``path`` if given. Needs matplotlib."""
        from ..plot.curves import delay_path

        return delay_path(self, path)


@public_function
def embed(
    data: Any, *, E: int, tau: int = 1, columns: Sequence[str | int] | str | int | None = None, groups: Any = None,
    regular: str | None = None,
) -> EmbedResult:
    """Delay coordinates of one or several series: what ``embedded=True`` takes.

    Parameters
    ----------
    data : array_like (n_steps,) or (n_steps, n_series)
        Time along the first axis, NaN for gaps.
    E : int
        Lags of each series, at least 1.
    tau : int
        Lag between the coordinates of a state, in steps; at least 1.
    columns : str, int, or sequence of these, optional
        Which series to take, by name or position; names with a minus before them are left out.
    groups : str, sequence of str, or labels (n_steps,), optional
        Recordings (subjects, plots, replicates) that stand one below the other: columns of the data or levels of its
        index, or a label for each row. No state and no target crosses a border. The first rows of each have no lags.
    regular : {"insert", "ignore"}, optional
        What is done where times of rows (an index of dates or numbers, a coordinate, a time column) are not regular,
        which is refused by default. "insert" puts rows of NaN where rows are missing: ranges and masks are moved along,
        and rows of the result are those of the longer table. "ignore" takes the rows as they come. Dates whose index
        has a frequency are regular.

    Returns
    -------
    EmbedResult

    Raises
    ------
    InputError
        An argument cannot be used, or no row has all its lags.

    See Also
    --------
    simplex : takes such coordinates with ``embedded=True``.

    Notes
    -----
    Cost: copies the data E times.

    Examples
    --------
    >>> import pyedmcl
    >>> pyedmcl.embed([1.0, 2.0, 3.0, 4.0], E=2).values.tolist()
    [[1.0, nan], [2.0, 1.0], [3.0, 2.0], [4.0, 3.0]]
    """
    E, tau = check_embedding(E, tau)
    rest, of = take_groups(data, groups, "data")
    series = as_series(rest, columns=columns)
    if series.n_steps <= (E - 1) * tau:
        raise InputError(
            f"data: E={E}, tau={tau} needs at least {(E - 1) * tau + 1} rows, there are {series.n_steps}; use a "
            "smaller E or tau"
        )
    names = tuple(f"{name}(t-{e * tau})" for name in series.names for e in range(E))
    if of is None:
        return EmbedResult(delays(series.values, E, tau), names, series.time, origin())
    layout = of.layout(E=E, tau=tau, Tp=[0])
    return EmbedResult(delays(layout.series(series).values, E, tau)[layout.order], names, series.time, origin())


# All nearest neighbours of one series as a job of a single block: the problem, and its engine.


# Distances of data whose range is between these are numbers of float32, with room for sums and for small differences.
_LEAST, _MOST = 2.0**-100, 2.0**100


@dataclass(frozen=True)
class KnnProblem:
    """The k nearest library rows of each query row."""

    # One series.
    library: Series
    # Another series whose rows are looked up; the library itself if None.
    query: Series | None
    E: int
    tau: int
    Tp: int
    k: int
    exclusion_radius: int
    # How neighbours are searched.
    search: SearchRequest
    # What kernels compute in.
    dtype: str

    kernels: ClassVar[tuple[str, ...]] = ("knn",)
    unit: ClassVar[str] = ""  # the search itself reports

    @property
    def total(self) -> int:
        """Query rows."""
        return (self.query or self.library).n_steps

    def size(self, block: Block) -> int:
        return len(block)

    def blocks(self) -> list[Block]:
        """All query rows; layers are their neighbours' rows and distances."""
        return cut(self.total, self.total, 2)

    @property
    def operations(self) -> float:
        return operations((self.E,), n_library=self.library.n_steps, n_query=self.total)

    def result(self) -> tuple[NDArray[np.int32], NDArray[Any]]:
        """Room for rows and distances (query rows, k). These are float64 where float32 may not hold them."""
        shape = self.total, self.k
        return np.empty(shape, np.int32), np.empty(shape, self.result_dtype)

    @property
    def result_dtype(self) -> np.dtype[Any]:
        """Of distances."""
        sides = [side for side in (self.library, self.query) if side is not None]
        low, high = np.array([bounds(side.values, side.extent)[:2] for side in sides])[..., 0].T
        spread = float(high.max() - low.min())
        fits = spread == 0 or _LEAST < spread < _MOST
        return np.dtype(self.dtype if fits else np.float64)

    def open(self, executor: Executor) -> KnnEngine:
        return KnnEngine(self, executor)


class KnnEngine:
    """The search on a device; a small one goes through the copies and launches of the one before."""

    def __init__(self, problem: KnnProblem, executor: Executor) -> None:
        self._problem, self._executor = problem, executor
        p, n = problem, problem.library.n_steps
        # One shift and scale for both: they are put behind each other.
        both = p.library.values if p.query is None else np.concatenate([p.library.values, p.query.values])
        conditioned = condition(both, p.dtype)
        self._exponent = int(conditioned.exponent[0])
        self._series = {"library": conditioned.values[:n]}
        if p.query is not None:
            self._series["query"] = conditioned.values[n:]
        self._library_mask = library_mask_of(p.library.values[:, 0], p.Tp) if p.Tp else None
        radius = p.exclusion_radius if p.query is None else -1
        self._search = SearchProblem((p.E,), (p.k,), p.tau, p.Tp, radius, n, p.total, p.dtype)

    def block(self, block: Block, into: Any, progress: Report) -> BlockResult:
        """Rows of the library and distances, (query rows, k); -1 and infinity where there are fewer neighbours."""
        distances: Any
        indices, distances = into or self._problem.result()
        if isinstance(indices, DeviceRows):
            return BlockResult([], self._searched(self._executor, functools.partial(self._deliver, indices, distances)))
        fits = distances.dtype == self._problem.dtype
        squared = distances if fits else np.empty(distances.shape, self._problem.dtype)
        record = self._downloaded(indices, squared)
        require_rows(self._executor, indices, self._problem.library.n_steps, "knn")
        squared[indices < 0] = np.inf
        np.sqrt(squared, out=squared)  # here: the host's root is correctly rounded, the device's may not be
        # After the root: squares may be no numbers where distances are. A power of two is exact.
        np.ldexp(squared, self._exponent, out=distances, dtype=distances.dtype)
        return BlockResult([indices, distances], record)

    def _downloaded(self, indices: NDArray[np.int32], squared: NDArray[Any]) -> Record:
        """Write rows and squared distances."""

        def download(executor: Executor, tables: Tables) -> None:
            executor.download(tables.rows, indices)
            executor.download(tables.values, squared)

        search = self._problem.search
        sure = None if self._library_mask is not None else sure_of(search, self._executor.info, self._search)
        if sure is None:
            return self._searched(self._executor, download)
        key = "knn", self._search, search, sure
        outputs = {"indices": indices, "squared": squared}
        return replayed(self._executor, key, self._series, outputs, lambda executor: self._searched(executor, download))

    def _deliver(self, indices: DeviceRows, distances: DeviceRows, executor: Executor, tables: Tables) -> None:
        """Write rows and distances to arrays of the caller on the device."""
        deliver_neighbours(
            executor, tables.rows, tables.values, (indices, distances), exponent=self._exponent,
            n_library=self._problem.library.n_steps,
        )  # fmt: skip

    def _searched(self, executor: Executor, use: Callable[[Executor, Tables], None]) -> Record:
        """Search, and let ``use`` read the tables."""
        stagings = [Staging(executor, values) for values in self._series.values()]
        pool = Pool(executor, "knn", self._search)
        searcher = None
        try:
            searcher = open_searcher(executor, self._search, "neighbours", self._problem.search, pool=pool)
            series = searcher.load(stagings[0], 0, 1, *stagings[1:])
            use(executor, next(searcher.tables(series, self._library_mask)))
            return Record.of(searcher)
        finally:
            for held in (searcher, *stagings, pool):
                if held is not None:
                    held.release()

    def release(self) -> None:
        """Give the device memory back: nothing is held between blocks."""


# What a neighbour search returns.


@dataclass(frozen=True, repr=False)
class KnnResult(Result):
    """Nearest neighbours of every row.

    Attributes
    ----------
    indices : ndarray of int32 (n_rows, k)
        Rows of the library, nearest first, ties by row; -1 where there is no neighbour.
    distances : ndarray (n_rows, k)
        Euclidean distances in the data's unit; inf where there is no neighbour. They are computed in ``dtype``
        and of that type, but of float64 where the range of the data is below 2**-100 or above 2**100.
        With ``out=`` both stand for the caller's arrays on the device (``indices.array``), which any use of them as
        NumPy's copies to the host.
    provenance : mapping
        Device, driver, kernel digest, parameters.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> result = pyedmcl.knn(network.values[:, 0], E=3)
    >>> result.indices[2].tolist()  # rows of the states nearest to that of row 2
    [315, 100, 56, 371]
    >>> result.distances[0].tolist()  # row 0 has no lags, hence no neighbours
    [inf, inf, inf, inf]
    """

    column_labels: ClassVar = {
        "indices": Label("1", "row of the library, -1 where there is none"),
        "distances": Label("data", "Euclidean distance, inf where there is no neighbour"),
        "neighbor": Label("1", "rank of the neighbour, the nearest first"),
    }  # fmt: skip

    indices: NDArray[np.int32] | OnDevice
    distances: NDArray[np.floating] | OnDevice
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def to_xarray(self) -> Any:
        """An xarray.Dataset of indices and distances (row, neighbor)."""
        rows, k = self.indices.shape
        axes = [("row", np.arange(rows)), ("neighbor", np.arange(k))]
        parts = {name: labelled(getattr(self, name), axes, name) for name in ("indices", "distances")}
        return need("xarray", "to_xarray()").Dataset(parts)

    def plot(self, path: str | None = None) -> Any:
        """Distances of the nearest and the last neighbour over time; saved to ``path`` if given. Needs matplotlib."""
        from ..plot.curves import neighbour_distances

        return neighbour_distances(self, path)


# All nearest neighbours of a delay-embedded series.


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
    E : int
        Embedding dimension, at least 1.
    tau : int
        Lag between the coordinates of a state, in steps; at least 1.
    k : int, optional
        Neighbours per row; E + 1 by default.
    Tp : int
        Only rows j whose x[j + Tp] exists and is no gap are neighbours; may be negative.
    exclusion_radius : int
        Rows with |t - j| up to this are no neighbours (0: the row itself). Without effect with ``query``.
    query : array_like (m,), optional
        Another series whose rows are looked up in ``x``.
    groups : str, sequence of str, or labels (n_steps,), optional
        Recordings (subjects, plots, replicates) that stand one below the other: columns of the data or levels of its
        index, or a label for each row. No state and no target crosses a border. Of equal distances the row of the
        earlier group comes first.
    regular : {"insert", "ignore"}, optional
        What is done where times of rows (an index of dates or numbers, a coordinate, a time column) are not regular,
        which is refused by default. "insert" puts rows of NaN where rows are missing: ranges and masks are moved along,
        and rows of the result are those of the longer table. "ignore" takes the rows as they come. Dates whose index
        has a frequency are regular.
    neighbors : {"exact", "auto", "exhaustive", "pruned", "kdtree", "ivf", "hnsw"}
        How neighbours are searched. "exact" takes the fastest of "exhaustive" (compares all pairs), "pruned" and
        "kdtree", which find the same neighbours; so does "auto", to which an approximate search would be allowed, too.
        "ivf" and "hnsw" may miss some. Where there was a choice, ``provenance["neighbors"]`` says which ran, why, and
        its recall.
    recall : float
        Share of the true neighbours, in (0, 1], that an approximate search must find.
    progress : callable or True, optional
        Called as ``progress(done, total, unit)``, where the unit says what is counted, such as "series"; True shows a
        bar.
    dtype : {"float32", "float64"}
        What the device computes in.
    out : (array, array), optional
        Arrays on the device for indices (int32) and distances (``dtype``), both (rows of the query, k): of PyOpenCL, or
        in memory of SYCL. The result has them, and nothing of it is copied to the host until it is looked at; see
        ``docs/pipeline.md``. Not with ``groups``.
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
    count = k or E + 1
    search = SearchRequest(neighbors, recall)
    x, of = take_groups(x, groups, "x")
    library = arguments.one_series(x, "x")
    series_require_rows(library, E=E, tau=tau, Tp=Tp, k=1, what="x")
    other = None if query is None else arguments.one_series(query, "query")
    if other is not None and other.n_steps <= (E - 1) * tau:
        raise InputError(f"query: E={E}, tau={tau} needs at least {(E - 1) * tau + 1} rows, there are {other.n_steps}")
    layout = None
    if of is not None:
        if query is not None:
            raise InputError("groups= with query=: states of one recording are looked up; call once for each query")
        layout = of.layout(E=E, tau=tau, Tp=[Tp], exclusion_radius=exclusion_radius)
        library, exclusion_radius = layout.series(library, "x"), layout.exclusion_radius
    problem = KnnProblem(library, other, E, tau, Tp, count, exclusion_radius, search, dtype)
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


# The share of false nearest neighbours against embedding dimension: the problem, and its engine.


@dataclass(frozen=True)
class FalseNeighborsProblem:
    """Share of states whose nearest neighbour in E = 1 to E_max coordinates is far away in one more.

    Attributes
    ----------
    ratio, size : float
        Bounds of the criteria; see :func:`pyedmcl.false_neighbors`.
    """

    # The series without their first ``tau`` values, so that every state has a further coordinate.
    data: Prepared
    # ndarray (n_steps, n_series). The series.
    whole: NDArray[Any]
    E_max: int
    tau: int
    exclusion_radius: int
    ratio: float
    size_most: float
    search: SearchRequest

    kernels: ClassVar[tuple[str, ...]] = ("knn",)
    unit: ClassVar[str] = "series"

    @property
    def dims(self) -> range:
        """Embedding dimensions."""
        return range(1, self.E_max + 1)

    @property
    def total(self) -> int:
        return self.data.series.n_series

    def size(self, block: Block) -> int:
        return len(block)

    def blocks(self, devices: int = 1) -> list[Block]:
        """Ranges of series."""
        return cut(self.total, series_of_a_block(self.total, self.data.series.n_steps, devices))

    @property
    def operations(self) -> float:
        n = self.data.series.n_steps
        return operations(self.dims, n_library=n, n_query=n, n_series=self.total)

    def open(self, executor: Executor) -> FalseNeighborsEngine:
        return FalseNeighborsEngine(self, executor)


class FalseNeighborsEngine:
    """Neighbours are found on the device, and judged on the host in float64."""

    def __init__(self, problem: FalseNeighborsProblem, executor: Executor) -> None:
        self._problem, self._executor = problem, executor
        n, dims, room = problem.data.series.n_steps, problem.dims, budget(executor.info).total
        dtype, conditioned = problem.data.dtype, problem.data.conditioned
        ones = (1,) * len(dims)
        search = SearchProblem(tuple(dims), ones, problem.tau, 0, problem.exclusion_radius, n, n, dtype)
        self._pool = Pool(executor)
        self._data = Staging(executor, conditioned.values, room=room // 8)
        self._batch = max(room // 4 // (4 * search.stride(n) * search.itemsize), 1)
        self._searcher = open_searcher(
            executor, search, "neighbours", problem.search, data_bytes=conditioned.values.nbytes, pool=self._pool
        )

    def block(self, block: Block, into: Arrays | None, report: Report) -> BlockResult:
        """Shares (series of the block, E_max)."""
        share = np.empty((len(block), self._problem.E_max)) if into is None else into[0]
        for begin in range(block.begin, block.end, self._batch):
            end = min(begin + self._batch, block.end)
            for tables in self._searcher.tables(self._searcher.load(self._data, begin, end)):
                for E in tables.problem.dims:
                    rows, _ = tables.read(self._executor, E, tables.n_libraries)
                    for place in range(tables.n_libraries):
                        series = begin + tables.first + place
                        share[series - block.begin, E - 1] = self._judge(series, E, rows[place, :, 0])
            report(end - block.begin)
        return BlockResult([share], Record.of(self._searcher))

    def _judge(self, series: int, E: int, nearest: NDArray[np.int32]) -> float:
        """Share of false neighbours; NaN where no state has a neighbour."""
        p = self._problem
        x, _ = near_one(p.whole[:, series].astype(np.float64))
        first = (E - 1) * p.tau
        rows = np.flatnonzero(nearest[first:] >= 0) + first
        t, j = rows + p.tau, nearest[rows] + p.tau  # rows of the whole series
        squares = np.zeros(len(rows))
        for lag in range(0, first + 1, p.tau):
            squares += (x[t - lag] - x[j - lag]) ** 2
        apart = np.abs(x[t - E * p.tau] - x[j - E * p.tau])
        finite = ~np.isnan(apart)
        squares, apart = squares[finite], apart[finite]
        if not len(apart):
            return np.nan
        spread = np.nanstd(x)
        false = (apart > p.ratio * np.sqrt(squares)) | (np.sqrt(squares + apart * apart) > p.size_most * spread)
        return float(false.mean())

    def release(self) -> None:
        """Give the device memory back."""
        self._searcher.release()
        self._data.release()
        self._pool.release()


# False nearest neighbours: the embedding dimension that unfolds an attractor.


@dataclass(frozen=True, eq=False, repr=False)
class FalseNeighbors(Result):
    """Shares of false nearest neighbours.

    Attributes
    ----------
    share : ndarray of float64 (E_max,) or (n_series, E_max)
        For E = 1, ..., E_max.
    names : tuple of str
    provenance : mapping

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> result = pyedmcl.false_neighbors(network.values, E_max=5)
    >>> result.share[0].round(1).tolist()  # of the first series, for E = 1, ..., 5
    [0.7, 0.2, 0.2, 0.1, 0.1]
    >>> result.dimension(tolerance=0.3).tolist()  # of each series; noise leaves some neighbours false in any E
    [2, 2, 2, 2]
    """

    answer_columns = ("*",)

    series_label: ClassVar = Label("1", "share of false nearest neighbours of this series in E dimensions")
    column_labels: ClassVar = common("E")

    share: NDArray[np.float64]
    names: tuple[str, ...]
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def dimension(self, tolerance: float = 0.01) -> Any:
        """The smallest E whose share is at most ``tolerance``, of each series; 0 where there is none."""
        most = real("tolerance", tolerance, "a share from 0 to 1", lambda value: 0 <= value <= 1)
        few = np.atleast_2d(self.share) <= most
        smallest = np.where(few.any(axis=1), few.argmax(axis=1) + 1, 0)
        return int(smallest[0]) if self.share.ndim == 1 else smallest

    def to_xarray(self) -> Any:
        """An xarray DataArray (series, E)."""
        share = np.atleast_2d(self.share)
        return labelled(share, [("series", self.names), ("E", np.arange(1, share.shape[1] + 1))], "share")

    def to_frame(self) -> Any:
        """A pandas DataFrame: a row per E, a column per series."""
        table = np.atleast_2d(self.share).T
        frame = pandas_for("to_frame()").DataFrame(table, columns=list(self.names))
        frame.index = range(1, len(table) + 1)
        frame.index.name = "E"
        return frame

    def plot(self, path: str | None = None) -> Any:
        """Shares against E; saved to ``path`` if given. Needs matplotlib."""
        from ..plot.curves import curves

        at = range(1, self.share.shape[-1] + 1)
        return curves(at, self.share, self.names, "E", "share of false nearest neighbours", path)


@public_function
def false_neighbors(
    x: Any,
    *,
    E_max: int = 10,
    tau: int = 1,
    ratio: float = 15.0,
    size: float = 2.0,
    exclusion_radius: int = 0,
    groups: Any = None,
    regular: str | None = None,
    neighbors: str = "exact",
    recall: float = 0.99,
    progress: Progress | None = None,
    dtype: str = "float32",
    device: DeviceNames = None,
    client: Any = None,
    tune: str | None = None,
) -> FalseNeighbors:
    """Find the share of states whose nearest neighbour is false (Kennel et al., Physical Review A 45, 3403, 1992).

    A nearest neighbour in E coordinates is false where one more coordinate shows that the states only seemed near: the
    attractor needs more than E dimensions to unfold.

    Parameters
    ----------
    x : array_like (n_steps,) or (n_steps, n_series)
        Time along the first axis, NaN for gaps.
    E_max : int
        Largest dimension that is tried, at least 1.
    tau : int
        Lag between the coordinates of a state, in steps; at least 1.
    ratio : float
        False where the further coordinate, x[t - E tau], differs by more than ``ratio`` times the distance in E
        coordinates.
    size : float
        Also false where the distance in E + 1 coordinates exceeds ``size`` standard deviations of the series: noise
        seems to need ever more dimensions without this.
    exclusion_radius : int
        Rows with |t - j| up to this are no neighbours (0: the row itself).
    groups : str, sequence of str, or labels (n_steps,), optional
        Recordings (subjects, plots, replicates) that stand one below the other: columns of the data or levels of its
        index, or a label for each row. No state and no target crosses a border.
    regular : {"insert", "ignore"}, optional
        What is done where times of rows (an index of dates or numbers, a coordinate, a time column) are not regular,
        which is refused by default. "insert" puts rows of NaN where rows are missing: ranges and masks are moved along,
        and rows of the result are those of the longer table. "ignore" takes the rows as they come. Dates whose index
        has a frequency are regular.
    neighbors : {"exact", "auto", "exhaustive", "pruned", "kdtree", "ivf", "hnsw"}
        How neighbours are searched. "exact" takes the fastest of "exhaustive" (compares all pairs), "pruned" and
        "kdtree", which find the same neighbours; so does "auto", to which an approximate search would be allowed, too.
        "ivf" and "hnsw" may miss some. Where there was a choice, ``provenance["neighbors"]`` says which ran, why, and
        its recall.
    recall : float
        Share of the true neighbours, in (0, 1], that an approximate search must find.
    progress : callable or True, optional
        Called as ``progress(done, total, unit)``, where the unit says what is counted, such as "series"; True shows a
        bar.
    dtype : {"float32", "float64"}
        What the device computes in.
    device : str or sequence of str, optional
        Which device, or several that share the work; see ``pyedmcl devices``.
    client : optional
        Workers of a cluster that compute instead of this process: a ``dask.distributed.Client``, an ``Executor`` of
        ``concurrent.futures`` (spawned processes, MPI, loky), or another object with ``submit``. Each opens ``device``
        where it runs; see ``docs/scale.md``.
    tune : {"never", "cached", "auto", "force"}, optional
        Which tuned parameters kernels take, which changes speed and never the answer; ``PYEDMCL_TUNE`` or "cached" by
        default.

    Returns
    -------
    FalseNeighbors
        ``share`` (E_max,) for 1-D input, else (n_series, E_max); ``dimension()``, ``to_frame()``, ``plot()``.

    Raises
    ------
    InputError
        An argument cannot be used.
    DeviceNotFoundError
        No device matches.

    See Also
    --------
    embed_dimension : the dimension that predicts best.
    mutual_information : choose the lag.

    Notes
    -----
    Cost: about n_steps^2 * E_max multiply-adds for each series: the distances of E come from those of E - 1.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> pyedmcl.false_neighbors(network.values, E_max=5).share.shape
    (4, 5)
    """
    _, tau = check_embedding(1, tau)
    positive = "a positive number"
    ratio, size = (
        real(name, value, positive, lambda number: number > 0) for name, value in (("ratio", ratio), ("size", size))
    )
    search = SearchRequest(neighbors, recall)
    rest, of = take_groups(x, groups, "x")
    series = as_series(rest, what="x")
    series_require_rows(series, E=E_max + 1, tau=tau, Tp=0, k=1, what="x")
    if series.constant:
        warn(f"constant series, whose states all are neighbours: {some(series.constant)}", ConstantSeriesWarning)
    if of is not None:
        layout = of.layout(E=E_max + 1, tau=tau, Tp=[0], exclusion_radius=exclusion_radius)
        series, exclusion_radius = layout.series(series, "x"), layout.exclusion_radius
    behind = build_series(series.values[tau:], series.names)
    problem = FalseNeighborsProblem(
        Prepared(behind, dtype), series.values, E_max, tau, exclusion_radius, ratio, size, search
    )
    runner = arguments.runner_on(device, dtype, client)
    share = np.empty((series.n_series, E_max))
    record = runner.run(problem, ArraySink(problem.blocks(runner.devices), [share]))
    single = getattr(rest, "ndim", 2 if series.n_series > 1 else 1) == 1
    return FalseNeighbors(share[0] if single else share, series.names, runner.provenance(problem.kernels, record))
