"""The recurrence network: points as nodes, recurrences as links."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..device.memory import budget
from ..errors import DeviceMemoryError, InputError, need, shown
from ..jobs.blocks import Arrays, Block, BlockResult, Record, Report, cut, rows_of_a_block
from ..jobs.runner import ArraySink, LocalRunner, Runner, public_function
from ..kernels import spec
from ..kernels.build import build
from ..launch.staging import Pacer
from ..results.edges import Graph
from ..results.result import Label, Result, brief
from ..tuning.parameters import parameters
from . import arguments, remarks, rqa
from .arguments import CONVENTIONS
from .engine import operations
from .points import coded, embedding_of, near_one, points_of
from .problem import RqaProblem, require_precision
from .rqa import Device, Progress
from .thresholds import passes_for

if TYPE_CHECKING:
    from ..device.executor import Buffer, Executor


# The recurrence network as a job: the problem, and the engine that finds the triangles of some points.


_BLOCK_BYTES = 1 << 26  # of the links that the host holds
_ROWS_MOST = 60_000  # along the second axis of a launch; NVIDIA refuses more than 65,535
_SUMS_MOST = 1_000_000  # points of a launch that finds triangles, however few links they have


@dataclass(frozen=True, eq=False)
class NetworkProblem:
    """The network of a recurrence matrix; blocks are ranges of points.

    A block gives the degree of each point, and how many ordered pairs of its neighbours are linked with each other
    (closed pairs: twice the triangles through the point).
    """

    # Symmetric, with one radius.
    matrix: RqaProblem
    # ndarray (n,) or (n_points, n_features). Series, or points where the matrix is ``embedded``. NaN for gaps.
    x: NDArray[Any]

    @property
    def unit(self) -> str:
        return "points"

    @property
    def total(self) -> int:
        return self.matrix.n_rows

    def size(self, block: Block) -> int:
        return len(block)

    @property
    def words(self) -> int:
        """Words of 32 bits that hold the links of a point."""
        return -(-self.total // 32)

    @property
    def operations(self) -> float:
        return operations(self.matrix)

    def blocks(self, devices: int = 1) -> list[Block]:
        """Ranges of points, to be shared by ``devices``."""
        most = max(_BLOCK_BYTES // (4 * self.words), 1)
        return cut(self.total, rows_of_a_block(self.total, most, devices), layers=2)

    def open(self, executor: Executor) -> NetworkEngine:
        return NetworkEngine(self, executor)


class NetworkEngine:
    """The engine of :class:`NetworkProblem`. It makes all links, a bit for each pair of points, and keeps them."""

    def __init__(self, problem: NetworkProblem, executor: Executor) -> None:
        self._problem, self._executor = problem, executor
        matrix = problem.matrix
        require_precision(executor.info, matrix)
        x = np.ascontiguousarray(problem.x, matrix.arithmetic)
        self._require_room(x)
        values: dict[str, Any] = {**matrix.cell, "strict": matrix.strict}
        choice = parameters(spec("recurrence_network"), values, executor.info)
        self._record = Record(dict(choice.parameters), choice.grade)
        values |= choice.parameters
        self._wg = values["wg"]
        link, self._close = (
            build(executor, spec("recurrence_network"), values, entry) for entry in (None, "recurrence_triangles")
        )
        self._bits = executor.allocate(4 * problem.words * problem.total)
        try:
            self._make_links(link, x)
        except BaseException:
            self.release()
            raise

    def _require_room(self, x: NDArray[Any]) -> None:
        n, room = self._problem.total, budget(self._executor.info)
        links = 4 * self._problem.words * n
        if links > room.largest or links + x.nbytes + 16 * n > room.total:
            raise DeviceMemoryError(
                f"x: the adjacency matrix of {n:,} points needs {links:,} bytes; {room.largest:,} may be used for "
                f"one buffer on {self._executor.info.name} and {room.total:,} for all (raise PYEDMCL_MEMORY_FRACTION "
                "or PYEDMCL_MEMORY_LIMIT, or thin out the series)"
            )

    def _make_links(self, kernel: Any, x: NDArray[Any]) -> None:
        matrix, n, words = self._problem.matrix, self._problem.total, self._problem.words
        # Of each pair and coordinate a difference, a term and a sum.
        pacer, cost = Pacer(self._executor.info), float(words * 32 * 3 * matrix.cell["m"])
        across = -(-words // self._wg) * self._wg
        data = self._executor.upload(x)
        try:
            row = 0
            while row < n:
                end = min(row + min(pacer.units(cost), _ROWS_MOST), n)
                event = self._executor.launch(
                    kernel, (across, end - row), (self._wg, 1), x=data, bits=self._bits, row_begin=row, n=n,
                    words=words, window=matrix.theiler, limit=float(matrix.outer_limits()[0]),
                )  # fmt: skip
                pacer.launched(event, cost * (end - row))
                row = end
        finally:
            data.release()

    def block(self, block: Block, into: Arrays | None, report: Report) -> BlockResult:
        """Degrees and closed pairs of neighbours of the block's points (int64)."""
        words = self._problem.words
        links = np.empty((len(block), words), np.uint32)
        degree = _ones(self._executor.download(self._bits, links, 4 * words * block.begin))
        closed = np.empty(len(block), np.uint64)
        sums = self._executor.allocate(closed.nbytes)
        try:
            self._find_triangles(block, degree, closed, sums, report)
        finally:
            sums.release()
        return BlockResult([degree, closed.astype(np.int64)], self._record)

    def _find_triangles(
        self, block: Block, degree: NDArray[np.int64], closed: NDArray[np.uint64], sums: Buffer, report: Report
    ) -> None:
        words, pacer = self._problem.words, Pacer(self._executor.info)
        before = np.concatenate([[0], np.cumsum(degree)])
        row = 0
        while row < len(block):
            # A point takes as long as it has links: as many points as fill a launch with theirs.
            links = pacer.units(float(words))
            end = max(int(np.searchsorted(before, before[row] + links, side="right")) - 1, row + 1)
            end = min(end, len(block), row + _SUMS_MOST)
            event = self._executor.launch(
                self._close, ((end - row) * self._wg,), (self._wg,), bits=self._bits, closed=sums,
                row_begin=block.begin + row, words=words,
            )  # fmt: skip
            pacer.launched(event, float(words) * max(int(before[end] - before[row]), 1))
            self._executor.download(sums, closed[row:end])
            row = end
            report(row)

    def release(self) -> None:
        """Give the device memory back."""
        self._bits.release()


def links_of(runner: Runner, problem: NetworkProblem) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Degrees and closed pairs of neighbours of all points, by any runner."""
    degree, closed = np.empty(problem.total, np.int64), np.empty(problem.total, np.int64)
    runner.run(problem, ArraySink(problem.blocks(runner.devices), [degree, closed]))
    return degree, closed


def list_links(executor: Executor, problem: NetworkProblem) -> NDArray[np.int32]:
    """Pairs of linked points (links, 2), the earlier one first, in ascending order."""
    engine, words, n = NetworkEngine(problem, executor), problem.words, problem.total
    found = [np.empty((0, 2), np.int32)]
    try:
        step = max((_BLOCK_BYTES >> 3) // (4 * words), 1)
        for begin in range(0, n, step):
            rows = np.empty((min(step, n - begin), words), np.uint32)
            executor.download(engine._bits, rows, 4 * words * begin)
            bits = np.unpackbits(rows.astype("<u4").view(np.uint8), axis=1, bitorder="little")
            i, j = np.nonzero(bits)
            later = j > i + begin
            found.append(np.stack([i[later] + begin, j[later]], axis=1).astype(np.int32))
    finally:
        engine.release()
    return np.concatenate(found)


def count_links(executor: Executor, matrix: RqaProblem, x: NDArray[Any]) -> tuple[NDArray[np.int64], ...]:
    """The same on one device."""
    return links_of(LocalRunner([executor]), NetworkProblem(matrix, x))


_BYTE_ONES = np.array([bin(byte).count("1") for byte in range(256)], np.uint8)


def _ones(bits: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Set bits of each row; NumPy before 2.0 has no population count."""
    out = np.empty(len(bits), np.int64)
    step = max((1 << 22) // bits.shape[1], 1)
    for row in range(0, len(bits), step):
        part = _BYTE_ONES[bits[row : row + step].view(np.uint8)]
        out[row : row + step] = part.sum(axis=1, dtype=np.int64)
    return out


@dataclass(frozen=True, eq=False, repr=False)
class RecurrenceNetwork(Result, Graph):
    """Measures of a recurrence network (Donner et al., New Journal of Physics 12, 033025, 2010).

    Attributes
    ----------
    degree : ndarray of int64 (n_points,)
        Links of each node; 0 for points that touch a gap.
    closed : ndarray of int64 (n_points,)
        Ordered pairs of linked neighbours: twice the triangles through each node.
    complete : ndarray of bool (n_points,)
        Points without a gap; the others are no nodes.
    radius : float
    links : ndarray of int32 (n_links, 2), optional
        Pairs of linked points, the earlier one first, where they were asked for.
    provenance : mapping

    Examples
    --------
    >>> import numpy as np
    >>> import pyedmcl
    >>> x = np.sin(np.arange(500) * 0.2)
    >>> result = pyedmcl.recurrence_network(x, m=2, tau=8, radius=0.2)
    >>> round(result.transitivity, 1), result.mean_degree > 20
    (0.7, True)
    >>> result.clustering.shape  # of each point
    (492,)
    """

    degree: NDArray[np.int64]
    closed: NDArray[np.int64]
    complete: NDArray[np.bool_] = field(repr=False)
    radius: float
    links: NDArray[np.int32] | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)

    column_labels: ClassVar = {
        "point": Label("rows", "number of the point, counted from 0"),
        "degree": Label("1", "links of the point"),
        "clustering": Label("1", "share of pairs of the point's neighbours that are linked"),
    }

    def _facts(self) -> dict[str, str]:
        numbers = {name: brief(value) for name, value in self.to_dict().items()}
        links = f"{int(self.degree.sum()) // 2:,}"
        return numbers | {"points": f"{len(self.degree):,}", "links": links, "radius": brief(self.radius)}

    @property
    def clustering(self) -> NDArray[np.float64]:
        """Local clustering: the share of pairs of a node's neighbours that are linked; 0 below two neighbours, NaN
        for points that touch a gap."""
        pairs = self.degree * (self.degree - 1)
        local = np.divide(self.closed, pairs, out=np.zeros(len(pairs)), where=pairs > 0)
        return np.where(self.complete, local, np.nan)

    @property
    def mean_clustering(self) -> float:
        """Mean of the local clustering over all nodes (the global clustering coefficient of Watts and Strogatz)."""
        return float(self.clustering[self.complete].mean()) if self.complete.any() else float("nan")

    @property
    def transitivity(self) -> float:
        """Closed pairs of neighbours / all pairs of neighbours, over all nodes; NaN without such pairs."""
        pairs = int((self.degree * (self.degree - 1)).sum())
        return int(self.closed.sum()) / pairs if pairs else float("nan")

    @property
    def mean_degree(self) -> float:
        """Mean number of links of a node."""
        return float(self.degree[self.complete].mean()) if self.complete.any() else float("nan")

    @property
    def density(self) -> float:
        """Links / pairs of nodes."""
        n = int(np.count_nonzero(self.complete))
        return int(self.degree.sum()) / (n * (n - 1)) if n > 1 else float("nan")

    def to_dict(self) -> dict[str, float]:
        """The measures that are single numbers."""
        names = ("transitivity", "mean_clustering", "mean_degree", "density")
        return {name: getattr(self, name) for name in names}

    def to_frame(self) -> Any:
        """A pandas DataFrame: a row per point, which is the index, with its degree and local clustering."""
        frame = need("pandas", "to_frame()").DataFrame({"degree": self.degree, "clustering": self.clustering})
        frame.index.name = "point"
        return frame

    def edges(self) -> Any:
        """A pandas DataFrame: a row per link, the two points that recur, the earlier one first.

        Raises
        ------
        InputError
            The network was made without ``links=True``.
        """
        return need("pandas", "edges()").DataFrame(self._links(), columns=["source", "target"])

    def to_networkx(self) -> Any:
        """An undirected networkx.Graph of the points without a gap; InputError as for :meth:`edges`."""
        links = self._links()
        graph = need("networkx", "to_networkx()", "graph").Graph()
        graph.add_nodes_from(str(point) for point in np.flatnonzero(self.complete))
        graph.add_edges_from((str(i), str(j)) for i, j in links.tolist())
        return graph

    def _links(self) -> NDArray[np.int32]:
        if self.links is None:
            raise InputError("links=True is needed for the links themselves; this network holds their numbers only")
        return self.links


@public_function
def recurrence_network(
    x: Any,
    *,
    m: int = 1,
    tau: int = 1,
    radius: float,
    metric: str = "euclidean",
    theiler: int | str | None = None,
    threshold: str = "fixed",
    normalize: str | None = None,
    radius_unit: str = "data",
    state: Any = None,
    embedded: bool = False,
    regular: str | None = None,
    dtype: str = "float32",
    exact: bool = True,
    strict: bool = True,
    links: bool = False,
    progress: Progress | None = None,
    device: Device = None,
    tune: str | None = None,
) -> RecurrenceNetwork:
    """Degree, clustering and transitivity of the network whose links are recurrences.

    The adjacency matrix lies in the device's memory with a bit per pair of points: n (n + 31) / 8 bytes. Of several
    devices each makes all links, and finds the triangles of some points.

    Parameters
    ----------
    x : array_like (n,) or (n, d)
        A series; d series, whose values at one time are one state; or, with ``embedded``, n points of d coordinates.
        NaN marks gaps: a point that touches one recurs with no point and belongs to no cell.
    m : int
        Embedding dimension: coordinates of a point, at least 1.
    tau : int
        Lag between the coordinates of a point, in steps; at least 1.
    radius : float
        A radius, or with ``threshold="recurrence_rate"`` the share of linked pairs (the density).
    metric : str
        How far apart two points are: "euclidean", "maximum", "manhattan", or another row of the table "Metrics" in
        ``docs/recurrence.md``.
    theiler : int or "auto", optional
        Points less than max(theiler, 1) apart in time are not linked; "auto" as for :func:`pyedmcl.rqa`.
    threshold : {"fixed", "recurrence_rate"}
    normalize : {"zscore", "range"}, optional
        Each column of x, and of y, is brought to mean 0 and standard deviation 1, or to 0, ..., 1, by itself, before
        anything else. Missing values do not count; a constant column becomes 0.
    radius_unit : {"data", "std", "range", "max_distance", "mean_distance"}
        What a radius, or a corridor, is a multiple of: 1; the standard deviation; greatest minus least value; the
        largest, or the mean, distance of two points. All are those of the values that are compared, hence after
        ``normalize``, and standard deviations divide by the number of values. With several columns, or with y, "std" is
        the root of the mean variance of all columns and "range" the largest range. The result's ``radius`` is in the
        unit of the data (of the normalised ones, with ``normalize``). Other thresholds have no radius, and take "data"
        only.
    state : sequence of str or int, optional
        Columns of ``x`` that together are one state, by name or position; of ``y`` too, where it is a table.
    embedded : bool
        ``x`` (and ``y``) hold points: the columns are the coordinates themselves.
    regular : {"insert", "ignore"}, optional
        What is done where times of rows (an index of dates or numbers, a coordinate, a time column) are not regular,
        which is refused by default. "insert" puts rows of NaN where rows are missing: ranges and masks are moved along,
        and rows of the result are those of the longer table. "ignore" takes the rows as they come. Dates whose index
        has a frequency are regular.
    dtype : {"float32", "float64"}
        What the device computes in.
    exact : bool
        Cells too close to the radius for ``dtype`` are decided in float64: the counts are those of float64 arithmetic,
        the same integers on every device. Otherwise series and radius are rounded to ``dtype``.
    strict : bool
        Linked where d < radius; else where d <= radius.
    links : bool
        Keep the links themselves, 8 bytes each, for ``edges()``, networkx and files of graphs.
    progress : callable or True, optional
        Called as ``progress(done, total, unit)``, where the unit says what is counted, such as "series"; True shows a
        bar.
    device : str, optional
        Which device; see ``pyedmcl devices``.
    tune : {"never", "cached", "auto", "force"}, optional
        Which tuned parameters kernels take, which changes speed and never the answer; ``PYEDMCL_TUNE`` or "cached" by
        default.

    Returns
    -------
    RecurrenceNetwork

    Raises
    ------
    InputError
        An argument cannot be used.
    DeviceNotFoundError
        No device matches.
    DeviceMemoryError
        The matrix does not fit; the message says how many bytes it needs.

    See Also
    --------
    rqa : lines of the same matrix.

    Notes
    -----
    Cost: about n^2 * m multiply-adds, and n / 32 word operations for each link, to find the triangles.

    Examples
    --------
    >>> import numpy as np
    >>> import pyedmcl
    >>> x = np.sin(np.arange(500) * 0.2)
    >>> result = pyedmcl.recurrence_network(x, m=2, tau=8, radius=0.2)
    >>> result.degree.shape
    (492,)
    """
    (x,) = coded(radius, threshold, x, metric=metric, normalize=normalize, radius_unit=radius_unit)
    threshold = arguments.threshold_named(threshold)
    options = rqa.options_of(
        convention="pyrqa" if strict else "crqa", lmin=2, vmin=2, wmin=2, dtype=dtype, exact=exact, tile=None,
        radius_unit=radius_unit, threshold=threshold,
    )  # fmt: skip
    if threshold not in ("fixed", "recurrence_rate"):
        raise InputError(f"threshold={threshold!r}: links go both ways; choose 'fixed' or 'recurrence_rate'")
    radii, several = arguments.radii_of(radius, threshold, strict=strict, unit=options.radius_unit)
    if several:
        raise InputError(f"radius={shown(radius)}: a network has one radius; call once for each")
    embedding = embedding_of(m=m, tau=tau, embedded=embedded, metric=metric, normalize=normalize, state=state)
    (points,) = near_one(options.arithmetic, points_of(x, "x", embedding))
    # The rate is that of linked pairs, whatever the rules of a convention: outside the window on both sides.
    rules = CONVENTIONS["recurrenceanalysis"]
    window = max(arguments.window(theiler, rules, points.n, points.n, series=(points.given,)), 1)
    problem = rqa.problem_of(points, None, options, theiler=window)
    runner = rqa.runner_of(device, options)
    rated = replace(problem, theiler_everywhere=True)
    sweep = passes_for(runner, rated, rules, points, points, threshold, radii, unit=options.radius_unit)[0]
    found = NetworkProblem(sweep.problem, points.values)
    degree, closed = links_of(runner, found)
    listed = list_links(runner.executor, found) if links else None
    record = rqa.provenance(runner, points, options, threshold=threshold, wanted=radii[0], theiler=window)
    network = RecurrenceNetwork(degree, closed, points.complete, sweep.radii[0], listed, record)
    density = network.density
    remarks.tell_of_links(density, density, network.radius, threshold, radii[0], points.given)
    return network
