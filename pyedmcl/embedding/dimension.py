"""The embedding dimension that predicts best, for one series or many at once."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..arguments import some
from ..device.memory import budget
from ..device.select import DeviceNames
from ..engines.predict import SUMS, SelfProjection, added, chunks_of, scores, skill_sums
from ..errors import InputError, need, pandas_for, shown, warn
from ..forecast.simplex import Projection, SimplexProblem, prepare, project
from ..jobs.blocks import Arrays, Block, BlockResult, Record, Report, cut, series_of_a_block
from ..jobs.runner import ArraySink, public_function
from ..launch.progress import Progress
from ..launch.replay import FEW_BYTES, replayed
from ..launch.staging import Pool, Staging
from ..results.result import ANSWER_ROWS, Answer, Label, Result, common, labelled
from ..search.choose import SearchRequest
from ..search.plan import SearchProblem
from ..search.searcher import open_searcher, sure_of
from ..series.fields import Grid
from ..series.groups import take_groups
from ..series.scaling import Prepared
from ..series.series import as_series, build_series, check_embedding, require_rows, tell_constant
from ..states import arguments
from ..states.arguments import PredictionOptions, operations
from ..states.rows import library_mask_of

if TYPE_CHECKING:
    from ..device.executor import Executor


# Which embedding dimension is taken from the skill of several: the best, or the smallest that is as good.


Doubles = NDArray[np.float64]

BEST, ONE_SE = "best", "one-se"
#: A skill below this is one of noise, whose best E is any; one that is this near the best is nearly as good, and a
#: dimension that is larger by so much than one that is nearly as good costs neighbours for nothing.
_SKILL, _NEARLY, _FLAT = 0.3, 0.01, 3
#: Parts of the predicted rows, one behind the other, from whose skill its standard error follows.
PARTS = 8


@dataclass(frozen=True)
class DimensionRule:
    """A rule, checked."""

    # The smallest E whose skill is within this of the best; None for one standard error.
    tolerance: float | None = 0.0

    @classmethod
    def parse(cls, value: Any) -> DimensionRule:
        """The rule that the argument ``E_rule`` names. Raises InputError for any other value."""
        if isinstance(value, str) and value in (BEST, ONE_SE):
            return cls(0.0 if value == BEST else None)
        number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, (bool, np.bool_))
        if number and 0 <= value < 2:
            return cls(float(value))
        raise InputError(f"E_rule={shown(value)}: {BEST!r}, {ONE_SE!r}, or a tolerance of rho from 0 to below 2")

    @property
    def parts(self) -> int:
        """Parts of the rows whose skill the rule needs; 0 for none."""
        return PARTS if self.tolerance is None else 0

    @property
    def value(self) -> str | float:
        """As the user gave it."""
        return ONE_SE if self.tolerance is None else self.tolerance or BEST

    def choose(self, rho: Doubles, of_parts: Doubles | None = None) -> NDArray[np.int_]:
        """Dimension of each series: the smallest one of a tie, 1 where no skill is defined.

        Parameters
        ----------
        rho : ndarray (n_series, E_max)
        of_parts : ndarray (n_series, E_max, PARTS), optional
            Skill of parts of the rows, for "one-se".
        """
        skill = np.where(np.isnan(rho), -np.inf, rho)
        most = skill.max(axis=1, keepdims=True)
        within: Any = self.tolerance
        if within is None:
            assert of_parts is not None
            at = skill.argmax(axis=1)
            within = standard_error(of_parts[np.arange(len(rho)), at])[:, None]
        smallest: NDArray[np.int_] = (skill >= most - within).argmax(axis=1) + 1
        return smallest


def tell_doubtful(names: Sequence[str], E: NDArray[np.int_], rho: Doubles) -> None:
    """Warn of dimensions at the upper end of their range, and of those that a much smaller one is nearly as good as.

    Parameters
    ----------
    names : sequence of str (n_series,)
    E : ndarray of int (n_series,)
        What was chosen.
    rho : ndarray (n_series, E_max)
    """
    highest = rho.shape[1]
    skill_of_all = np.where(np.isnan(rho), -np.inf, rho)
    at = skill_of_all[np.arange(len(E)), E - 1]
    least = (skill_of_all >= at[:, None] - _NEARLY).argmax(axis=1) + 1
    flat = (at >= _SKILL) & (least + _FLAT <= E)
    end = (at >= _SKILL) & (highest == E) & (highest > 1) & ~flat
    if end.any():
        warn(
            f"E is at the upper end of its range for {_some(names, end)}: more lags than E_max={highest} may do better"
        )
    if flat.any():
        first = int(np.argmax(flat))
        warn(
            f"skill hardly depends on E for {_some(names, flat)}: {names[first]!r} takes {E[first]} lags, and "
            f"{least[first]} are within {_NEARLY:g} of their skill. E_rule={_NEARLY:g} takes so few"
        )


def _some(names: Sequence[str], which: NDArray[np.bool_]) -> str:
    return some([names[place] for place in np.flatnonzero(which).tolist()])


def standard_error(of_parts: Doubles) -> Doubles:
    """Standard error (n,) of a mean skill from that of parts (n, PARTS); 0 where fewer than two have one.

    Rows within a part depend on each other; parts, which are long, do so little.
    """
    present = np.isfinite(of_parts)
    n = present.sum(axis=1)
    values = np.where(present, of_parts, 0.0)
    mean = values.sum(axis=1) / np.maximum(n, 1)
    squares = (np.where(present, of_parts - mean[:, None], 0.0) ** 2).sum(axis=1)
    deviation: Doubles = np.where(n > 1, np.sqrt(squares / np.maximum(n - 1, 1) / np.maximum(n, 1)), 0.0)
    return deviation


# Forecast skill of many series against embedding dimension: the problem, and its engine.


@dataclass(frozen=True)
class EmbedDimensionProblem:
    """Skill of simplex projection of each series by itself, for E = 1 to E_max."""

    data: Prepared
    E_max: int
    tau: int
    Tp: int
    exclusion_radius: int
    # Neighbours; E + 1 if None.
    knn: int | None
    # How neighbours are searched.
    search: SearchRequest
    # What progress counts; series, under another name where this is the first stage of another job.
    unit: str = "series"
    # Of the predicted rows: also the skill of each of this many parts; 0 for none.
    parts: int = 0

    kernels: ClassVar[tuple[str, ...]] = ("knn", "predict", "skill")

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
        """Ranges of series, to be shared by ``devices``."""
        rows = series_of_a_block(self.total, self.data.series.n_steps, devices)
        return cut(self.total, rows, 2 if self.parts else 1)

    @property
    def operations(self) -> float:
        series = self.data.series
        return operations(self.dims, n_library=series.n_steps, n_query=series.n_steps, n_series=series.n_series)

    def open(self, executor: Executor) -> SelfSkill:
        return SelfSkill(self, executor)


class SelfSkill:
    """rho of each series predicted by itself: the engine of :class:`EmbedDimensionProblem`.

    Few series go through the copies and launches of the call before.
    """

    def __init__(self, problem: EmbedDimensionProblem, executor: Executor) -> None:
        self._problem, self._executor = problem, executor
        dims, L = problem.dims, problem.data.series.n_steps
        ks = tuple(problem.knn or E + 1 for E in dims)
        self._search = SearchProblem(tuple(dims), ks, problem.tau, problem.Tp, problem.exclusion_radius, L, L,
                                     problem.data.dtype)  # fmt: skip
        self._conditioned = problem.data.conditioned
        self._opened: _SeriesOnDevice | None = None

    def block(self, block: Block, into: Arrays | None, report: Report) -> BlockResult:
        """rho (series of the block, E_max), and that of parts (series of the block, E_max, parts) where they are asked
        for."""
        shape = len(block), self._problem.E_max
        arrays = [np.empty(shape), np.empty((*shape, self._problem.parts))] if into is None else list(into)
        arrays = arrays[: 2 if self._problem.parts else 1]
        for array in arrays:
            array[...] = np.nan
        record = self._repeated(block, arrays)
        if record is not None:
            report(len(block))
            return BlockResult(arrays, record)
        opened = self._opened = self._opened or _SeriesOnDevice(self._problem, self._search, self._executor)
        for part, sums in self._sums(opened, block, report=report):
            part.write(sums, arrays, self._problem)
        return BlockResult(arrays, Record.of(opened.searcher))

    def _sums(
        self, opened: _SeriesOnDevice, block: Block, into: NDArray[Any] | None = None, report: Report | None = None
    ) -> Iterator[tuple[_Part, Doubles]]:
        """Sums of predictions of as many series at a time as fit on the device and share a pattern of gaps.

        Those of chunks go ``into`` an array, one behind the other.
        """
        values, gaps = (held[..., block.begin : block.end] for held in
                        (self._problem.data.series.values, self._conditioned.gaps))  # fmt: skip
        done = 0
        for a, b in _runs(values, gaps, opened.batch):
            mask = library_mask_of(values[:, a], self._problem.Tp) if gaps[a] else None
            room = None if into is None else into[done:]
            for part, sums in opened.sums(block.begin + a, block.begin + b, mask, room):
                done += part.pairs
                yield replace(part, first=a + part.first), sums
            if report is not None:
                report(b)

    def _repeated(self, block: Block, arrays: list[NDArray[Any]]) -> Record | None:
        """Compute few series without gaps as the call before did; None where that is not the same for all data."""
        p, search, values = self._problem, self._search, self._conditioned.values
        pairs = len(block) * p.E_max * (1 + p.parts)
        shape = pairs, chunks_of(search.n_query), len(SUMS)
        few = max(values.nbytes, math.prod(shape) * values.itemsize) <= FEW_BYTES
        sure = sure_of(p.search, self._executor.info, search) if few else None
        if sure is None or self._conditioned.gaps[block.begin : block.end].any():
            return None
        parts_of_sums = np.empty(shape, p.data.dtype)

        def work(executor: Executor) -> tuple[Record, list[_Part]]:
            opened = _SeriesOnDevice(p, search, executor)
            try:
                computed = [part for part, _ in self._sums(opened, block, parts_of_sums)]
                return Record.of(opened.searcher), computed
            finally:
                opened.release()

        key = "embed_dimension", search, p.search, sure, p.parts, block.begin, block.end
        record, computed = replayed(self._executor, key, {"values": values}, {"sums": parts_of_sums}, work)
        first = 0
        for part in computed:
            part.write(added(parts_of_sums[first : first + part.pairs]), arrays, p)
            first += part.pairs
        return record

    def release(self) -> None:
        """Give the device memory back."""
        if self._opened is not None:
            self._opened.release()


@dataclass(frozen=True)
class _Part:
    """Which skills come from sums that were computed together."""

    dims: NDArray[np.int_]
    # first, libraries: The first series of the block, and how many there are.
    first: int
    libraries: int
    # Of the part of the predicted rows; -1 for all rows.
    number: int

    @property
    def pairs(self) -> int:
        return len(self.dims) * self.libraries

    def write(self, sums: Doubles, arrays: Sequence[NDArray[Any]], problem: EmbedDimensionProblem) -> None:
        """Write the skill of ``sums`` (pairs, 8) where it belongs."""
        rho = np.asarray(scores(sums, problem.data.dtype)[0]).reshape(len(self.dims), -1).T
        at = slice(self.first, self.first + self.libraries), self.dims - problem.dims.start
        if self.number < 0:
            arrays[0][at] = rho
        else:
            arrays[1][(*at, self.number)] = rho


class _SeriesOnDevice:
    """Series and their search on a device.

    Raw, padded and centred copies of the series that are on the device together, and their predictions, take a quarter
    of its memory.

    Attributes
    ----------
    batch : int
        Series that are computed together.
    """

    def __init__(self, problem: EmbedDimensionProblem, search: SearchProblem, executor: Executor) -> None:
        self._problem, self._executor = problem, executor
        self._dims, self._L = np.array(search.dims), search.n_library
        room, values = budget(executor.info).total, problem.data.conditioned.values
        series_bytes = (4 * search.stride(self._L) + 2 * len(search.dims) * self._L) * search.itemsize
        self.batch = max(room // 4 // series_bytes, 1)
        begin, end = self._first(problem.E_max), min(self._L, self._L - problem.Tp)
        self._data = Staging(executor, values, scored=(begin + problem.Tp, end + problem.Tp), room=room // 8)
        self._pool = Pool(executor, "embed_dimension", search, min(self.batch, values.shape[1]))
        self.searcher = open_searcher(
            executor, search, "weights", problem.search, data_bytes=values.nbytes, pool=self._pool
        )

    def _first(self, E: Any) -> Any:
        """First row that is predicted in dimension ``E``, one or several."""
        return np.maximum((E - 1) * self._problem.tau, -self._problem.Tp)

    def sums(
        self, a: int, b: int, library_mask: NDArray[np.bool_] | None, into: NDArray[Any] | None = None
    ) -> Iterator[tuple[_Part, Doubles]]:
        """Sums of predictions of series a to b, which share a pattern of gaps; their chunks go ``into`` an array."""
        p, L = self._problem, self._L
        end, first = min(L, L - p.Tp), int(self._first(p.E_max))
        # The same parts for all dimensions.
        edges: Any = np.linspace(first, end, p.parts + 1).astype(int) if p.parts else ()
        projection = SelfProjection(self._executor, self._data, a, b, len(self._dims))
        done = 0
        try:
            for tables in self.searcher.tables(self.searcher.load(self._data, a, b), library_mask):
                predicted, _ = projection.predict(tables)
                dims, libraries = np.array(tables.problem.dims), tables.n_libraries
                series = np.arange(tables.first, tables.first + libraries)
                rows = [(np.repeat(self._first(dims), libraries), end), *itertools.pairwise(edges)]
                for number, (begin, until) in enumerate(rows, -1):
                    part = _Part(dims, tables.first, libraries, number)
                    yield part, skill_sums(
                        self._executor, predicted, projection.targets, dtype=p.data.dtype, n_rows=L, observed_stride=L,
                        observed_offset=p.Tp, observed_of=np.tile(series, len(dims)), t_begin=begin, t_end=until,
                        into=None if into is None else into[done : done + part.pairs],
                    )  # fmt: skip
                    done += part.pairs
        finally:
            projection.release()

    def release(self) -> None:
        """Give the device memory back."""
        self.searcher.release()
        self._data.release()
        self._pool.release()


def _runs(values: NDArray[Any], gaps: NDArray[np.bool_], most: int) -> Iterator[tuple[int, int]]:
    """Ranges of series that have the same gaps, which rule out the same rows."""

    def alike(a: int, b: int) -> bool:
        return bool(gaps[a] == gaps[b]) and (
            not gaps[a] or np.array_equal(np.isnan(values[:, a]), np.isnan(values[:, b]))
        )

    a = 0
    while a < len(gaps):
        b = a + 1
        while b < len(gaps) and b - a < most and alike(a, b):
            b += 1
        yield a, b
        a = b


# Skill against E where rows are chosen or another series is predicted: a projection for each series and dimension.
#
# The one pass of :mod:`embed_dimension_problem` shares its neighbours' rows among all dimensions. Here each dimension
# has a library of its own: the first rows of a segment have no state of E lags, and that depends on E.


@dataclass(frozen=True)
class EmbedDimensionRowsProblem:
    """Skill over the rows that are predicted, for E = 1 to E_max."""

    data: Prepared
    E_max: int
    # array_like (n_steps,) or None. What each series predicts; itself if None.
    target: Any
    # But for E.
    options: PredictionOptions
    # How neighbours are searched.
    search: SearchRequest

    kernels: ClassVar[tuple[str, ...]] = SimplexProblem.kernels

    @property
    def unit(self) -> str:
        return "series"

    @property
    def total(self) -> int:
        return self.data.series.n_series

    def size(self, block: Block) -> int:
        return len(block)

    def blocks(self, devices: int = 1) -> list[Block]:
        """Series by series, whatever the number of devices."""
        return cut(self.total, 1)

    @property
    def operations(self) -> float:
        n = self.data.series.n_steps
        return operations(range(1, self.E_max + 1), n_library=n, n_query=n, n_series=self.total)

    def check(self) -> None:
        """Refuse, before a device is opened, rows that some dimension cannot use. Raises InputError."""
        self.projections(0)

    def projections(self, number: int) -> list[Projection]:
        """The projection of a series for each dimension."""
        series = self.data.series
        column = np.ascontiguousarray(series.values[:, number])
        library = build_series(column, [series.names[number]], series.time)
        return [
            prepare(library, None, self.target, replace(self.options, E=E), gaps_only=True, quiet=True)
            for E in range(1, self.E_max + 1)
        ]

    def open(self, executor: Executor) -> RowsSkill:
        return RowsSkill(self, executor)


class RowsSkill:
    """The engine of :class:`EmbedDimensionRowsProblem`; it holds nothing on the device between blocks."""

    def __init__(self, problem: EmbedDimensionRowsProblem, executor: Executor) -> None:
        self._problem, self._executor = problem, executor

    def block(self, block: Block, into: Arrays | None, report: Report) -> BlockResult:
        """rho (series of the block, E_max)."""
        p, record = self._problem, Record()
        rho = np.empty((len(block), p.E_max)) if into is None else into[0]
        for place, number in enumerate(range(block.begin, block.end)):
            for e, projection in enumerate(p.projections(number)):
                forecast, new_record = project(self._executor, projection, p.data.dtype, p.search)
                rho[place, e] = forecast.rho
                record = record.joined(new_record)
        return BlockResult([rho], record)

    def release(self) -> None:
        """Nothing is held."""


# What the search for an embedding dimension returns.


@dataclass(frozen=True, repr=False)
class EmbedDimensionResult(Result):
    """Forecast skill against embedding dimension.

    Attributes
    ----------
    E : int or ndarray of int (n_series,)
        Dimension of the highest rho (the smaller one of a tie; 1 where no rho is defined).
    rho : ndarray of float64 (E_max,) or (n_series, E_max)
        Skill for E = 1, ..., E_max.
    names : tuple of str
    grid : Grid or None
        Where the series lie, if they are a field.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> result = pyedmcl.embed_dimension(network.values, E_max=5)
    >>> result.E.tolist()  # of each series
    [2, 2, 2, 3]
    >>> result.rho[0].round(2).tolist()  # of the first one, for E = 1, ..., 5
    [0.97, 0.99, 0.99, 0.98, 0.97]
    """

    series_label: ClassVar = Label("1", "skill of predicting this series by itself, in E dimensions")
    column_labels: ClassVar = common("E")

    E: Any
    rho: NDArray[np.float64]
    names: tuple[str, ...]
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)
    grid: Grid | None = field(default=None, repr=False)

    def answer(self) -> Answer:
        """The best E of each series, and its skill."""
        skill, best = np.atleast_2d(self.rho), np.atleast_1d(self.E)
        first = zip(self.names[:ANSWER_ROWS], best, skill, strict=False)
        rows = [(name, int(E), float(own[E - 1])) for name, E, own in first]
        return Answer(("series", "E", "rho"), rows, len(self.names))

    def to_xarray(self) -> Any:
        """An xarray Dataset of E (series) and rho (series, E); the coordinates of a field take the place of its cells.

        The dimension of the tried E is called "dimension".
        """
        rho, best = np.atleast_2d(self.rho), np.atleast_1d(self.E)
        axis = "series", self.grid or self.names
        values = {"E": labelled(best, [axis], "E"),
                  "rho": labelled(rho, [axis, ("dimension", np.arange(1, rho.shape[1] + 1))], "rho")}  # fmt: skip
        return need("xarray", "to_xarray()").Dataset(values)

    def to_frame(self) -> Any:
        """A pandas DataFrame: a row per E, a column per series."""
        table = np.atleast_2d(self.rho).T
        frame = pandas_for("to_frame()").DataFrame(table, columns=list(self.names))
        frame.index = range(1, len(table) + 1)
        frame.index.name = "E"
        return frame

    def plot(self, path: str | None = None) -> Any:
        """rho against E; saved to ``path`` if given. Needs matplotlib."""
        from ..plot import skill_against_E

        return skill_against_E(self, path)


# The embedding dimension that predicts best, for one series or many at once.


@public_function
def embed_dimension(
    x: Any,
    *,
    target: Any = None,
    E_max: int = 20,
    E_rule: str | float = "best",
    tau: int = 1,
    Tp: int = 1,
    exclusion_radius: int = 0,
    knn: int | None = None,
    lib_range: Any = None,
    pred_range: Any = None,
    valid_lib: Any = None,
    groups: Any = None,
    regular: str | None = None,
    neighbors: str = "exact",
    recall: float = 0.99,
    progress: Progress | None = None,
    dtype: str = "float32",
    device: DeviceNames = None,
    client: Any = None,
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
        Largest dimension that is tried, at least 1.
    E_rule : "best", "one-se" or float
        Which E is taken where it is searched: that of the highest rho; the smallest whose rho is at most one standard
        error below it, from the spread of skill over eight parts of the rows; or the smallest within a tolerance of it.
        "one-se" is not available with ``target`` or chosen rows.
    tau : int
        Lag between the coordinates of a state, in steps; at least 1.
    Tp : int
        Steps ahead; 0 or negative are allowed.
    exclusion_radius : int
        Rows with |t - j| up to this are no neighbours (0: the row itself).
    knn : int, optional
        Neighbours; the number of coordinates + 1 by default.
    lib_range : (int, int), sequence of (int, int), or mask of bool, optional
        Rows of the library: ranges begin <= t < end, 0-based, in which lags and targets of a row lie, too; or a mask,
        whose rows are taken as they are. Of a range each E uses the rows that have E lags.
    pred_range : (int, int), sequence of (int, int), or mask of bool, optional
        Rows that are predicted, in the same form; their lags may lie before them.
    valid_lib : mask of bool (n_steps,), optional
        Rows that may be used, in addition to ``lib_range`` (conditional embedding).
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
    EmbedDimensionResult
        ``E`` is an int and ``rho`` (E_max,) for 1-D input, else (n_series,) and (n_series, E_max).

    Raises
    ------
    InputError
        An argument cannot be used.
    DeviceNotFoundError
        No device matches.
    ClientError
        Workers of ``client`` cannot be used, or were lost.

    See Also
    --------
    simplex : the projection behind each value.
    xmap : takes E="auto" and calls this.

    Notes
    -----
    Cost: about n_steps^2 * E_max multiply-adds for each series: the distances of E come from those of E - 1.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> result = pyedmcl.embed_dimension(network.values, E_max=5)
    >>> result.rho.shape
    (4, 5)
    >>> result.E.shape
    (4,)
    """
    _, tau = check_embedding(1, tau)
    search, rule = SearchRequest(neighbors, recall), DimensionRule.parse(E_rule)
    rest, of = take_groups(x, groups, "x")
    series = as_series(rest, what="x")
    require_rows(series, E=E_max, tau=tau, Tp=Tp, k=1, what="x", name="E_max")
    if target is not None and of is not None:
        target = take_groups(target, groups, "target", required=False)[0]
    tell_constant(**({"x": series} if target is None else {"target": arguments.one_series(target, "target")}))
    problem: EmbedDimensionProblem | EmbedDimensionRowsProblem
    if any(given is not None for given in (target, lib_range, pred_range, valid_lib)):
        if rule.parts:
            raise InputError(
                f"E_rule={E_rule!r} is for series that predict themselves from all rows; leave out target, lib_range, "
                "pred_range and valid_lib, or give a tolerance such as E_rule=0.02"
            )
        options = PredictionOptions(
            None, tau, Tp, knn, exclusion_radius, lib_range=lib_range, pred_range=pred_range, valid_lib=valid_lib,
            groups=of,
        )
        problem = EmbedDimensionRowsProblem(Prepared(series, dtype), E_max, target, options, search)
        problem.check()
    else:
        if of is not None:
            layout = of.layout(E=E_max, tau=tau, Tp=[Tp], exclusion_radius=exclusion_radius)
            series, exclusion_radius = layout.series(series, "x"), layout.exclusion_radius
        problem = EmbedDimensionProblem(
            Prepared(series, dtype), E_max, tau, Tp, exclusion_radius, knn, search, parts=rule.parts
        )
    runner = arguments.runner_on(device, dtype, client)
    rho = np.empty((series.n_series, E_max))
    layers = [rho, np.empty((series.n_series, E_max, rule.parts))][: 2 if rule.parts else 1]
    record = runner.run(problem, ArraySink(problem.blocks(runner.devices), layers))
    best = rule.choose(*layers)
    tell_doubtful(series.names, best, rho)
    single = getattr(rest, "ndim", 2 if series.n_series > 1 else 1) == 1
    used = runner.provenance(problem.kernels, record)
    return EmbedDimensionResult(
        int(best[0]) if single else best, rho[0] if single else rho, series.names, used, series.grid
    )


# E="auto" of two variables: the dimension at which each predicts itself best.


def dimensions_of(x: Any, y: Any, E: Any, *, E_max: Any, E_rule: Any, groups: Any, **options: Any) -> Any:
    """``E`` as it was given; for "auto" what :func:`pyedmcl.embed_dimension` finds for x and for y.

    ``options`` are more arguments of that function.
    """
    DimensionRule.parse(E_rule)
    arguments.integer("E_max", E_max, 1)
    if not isinstance(E, str):
        return E
    if E != "auto":
        raise InputError(f"E={arguments.shown(E)}: 'auto', one integer, or one for x and one for y, is needed")
    x, of = take_groups(x, groups, "x")
    y = take_groups(y, groups, "y", required=False)[0]
    dims = []
    for what, data in (("x", x), ("y", y)):
        series = as_series(data, what=what)
        if series.n_series != 1:
            raise InputError(f"E='auto': {what} has {series.n_series} columns; give E, or one column")
        named = series.renamed((what,)) if series.names == ("x0",) else series
        dims.append(int(embed_dimension(named, E_max=E_max, E_rule=E_rule, groups=of, **options).E))
    return tuple(dims)
