"""The recurrence network: points as nodes, recurrences as links."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.build import build
from ..device.memory import budget
from ..device.select import DeviceNames
from ..errors import DeviceMemoryError, InputError, shown
from ..io.optional import need
from ..io.result import Result
from ..jobs.function import public_function
from ..kernels import spec
from ..launch.pacing import Pacer
from ..tuning.parameters import parameters
from . import arguments, common
from .conventions import CONVENTIONS
from .points import embedding_of, near_one, points_of
from .problem import RqaProblem, require_precision
from .thresholds import passes_for

if TYPE_CHECKING:
    from ..device.executor import Executor


@dataclass(frozen=True, eq=False, repr=False)
class RecurrenceNetwork(Result):
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
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)

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
        """A pandas DataFrame: a row per point with its degree and local clustering."""
        return need("pandas", "to_frame()").DataFrame({"degree": self.degree, "clustering": self.clustering})


@public_function
def recurrence_network(
    x: Any,
    *,
    m: int = 1,
    tau: int = 1,
    radius: float,
    metric: str = "euclidean",
    theiler: int = 1,
    threshold: str = "fixed",
    normalize: str | None = None,
    radius_unit: str = "data",
    state: Any = None,
    embedded: bool = False,
    regular: str | None = None,
    dtype: str = "float32",
    exact: bool = True,
    strict: bool = True,
    device: DeviceNames = None,
    tune: str | None = None,
) -> RecurrenceNetwork:
    """Degree, clustering and transitivity of the network whose links are recurrences.

    The adjacency matrix lies in the device's memory with a bit per pair of points: n (n + 31) / 8 bytes.

    Parameters
    ----------
    x, m, tau, metric, normalize, radius_unit, state, embedded, regular, dtype, device, tune
        As for :func:`pyedmcl.rqa`.
    radius : float
        A radius, or with ``threshold="recurrence_rate"`` the share of linked pairs (the density).
    theiler : int
        Points less than max(theiler, 1) apart in time are not linked.
    threshold : {"fixed", "recurrence_rate"}
    exact : bool
        Links are those of float64 arithmetic; else series and radius are rounded to ``dtype``.
    strict : bool
        Linked where d < radius; else where d <= radius.

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
    threshold = arguments.threshold_named(threshold)
    options = common.options_of(
        convention="pyrqa" if strict else "crqa", lmin=2, vmin=2, wmin=2, dtype=dtype, exact=exact, tile=None,
        radius_unit=radius_unit, threshold=threshold,
    )  # fmt: skip
    if threshold not in ("fixed", "recurrence_rate"):
        raise InputError(f"threshold={threshold!r}: links go both ways; choose 'fixed' or 'recurrence_rate'")
    radii, several = arguments.radii_of(radius, threshold)
    if several:
        raise InputError(f"radius={shown(radius)}: a network has one radius; call once for each")
    embedding = embedding_of(m=m, tau=tau, embedded=embedded, metric=metric, normalize=normalize, state=state)
    (points,) = near_one(options.arithmetic, points_of(x, "x", embedding))
    # The rate is that of linked pairs, whatever the rules of a convention: outside the window on both sides.
    rules = CONVENTIONS["recurrenceanalysis"]
    window = max(arguments.window(theiler, rules, points.n, points.n), 1)
    problem = common.problem_of(points, None, options, theiler=window)
    runner = common.runner_of_one(device, options, "a network is counted")
    rated = replace(problem, theiler_everywhere=True)
    sweep = passes_for(runner, rated, rules, points, points, threshold, radii, unit=options.radius_unit)[0]
    degree, closed = count_links(runner.executor, sweep.problem, points.values)
    record = common.provenance(runner, points, options, threshold=threshold, wanted=radii[0], theiler=window)
    return RecurrenceNetwork(degree, closed, points.complete, sweep.radii[0], record)


def count_links(
    executor: Executor, problem: RqaProblem, x: NDArray[Any]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Degrees and closed pairs of neighbours."""
    dtype = np.dtype(problem.arithmetic)
    require_precision(executor.info, problem)
    n = problem.n_rows
    words = -(-n // 32)
    room = budget(executor.info)
    if 4 * words * n > room.largest or 4 * words * n + x.size * dtype.itemsize + 16 * n > room.total:
        raise DeviceMemoryError(
            f"x: the adjacency matrix of {n:,} points needs {4 * words * n:,} bytes; {room.largest:,} may be used for "
            f"one buffer on {executor.info.name} and {room.total:,} for all (raise PYEDMCL_MEMORY_FRACTION or "
            "PYEDMCL_MEMORY_LIMIT, or thin out the series)"
        )
    values: dict[str, Any] = {**problem.cell, "strict": problem.strict}
    kernel_spec = spec("recurrence_network")
    values |= parameters(kernel_spec, values, executor.info).parameters
    wg = values["wg"]
    link, close = (build(executor, kernel_spec, values, entry) for entry in (None, "recurrence_triangles"))
    with np.errstate(over="ignore"):
        series = np.ascontiguousarray(x, dtype)
    data, bits = executor.upload(series), executor.allocate(4 * words * n)
    sums = None
    try:
        limit = float(problem.outer_limits()[0])
        pacer, cost = Pacer(executor.info), float(words * 32 * 3 * values["m"])
        row = 0
        while row < n:
            end = min(row + min(pacer.units(cost), 60_000), n)
            groups = -(-words // wg) * wg
            event = executor.launch(
                link, (groups, end - row), (wg, 1), x=data, bits=bits, row_begin=row, n=n, words=words,
                window=problem.theiler, limit=limit,
            )  # fmt: skip
            pacer.launched(event, cost * (end - row))
            row = end
        host = np.empty((n, words), np.uint32)
        executor.download(bits, host)
        degree = _ones(host)
        closed = np.empty(n, np.uint64)
        sums = executor.allocate(closed.nbytes)
        pacer = Pacer(executor.info)
        row = 0
        before = np.concatenate([[0], np.cumsum(degree)])
        while row < n:
            # Rows differ in their degree: as many as hold the links that fit a launch.
            links = pacer.units(float(words))
            end = max(int(np.searchsorted(before, before[row] + links, side="right")) - 1, row + 1)
            end = min(end, n, row + 1_000_000)
            event = executor.launch(
                close, ((end - row) * wg,), (wg,), bits=bits, closed=sums, row_begin=row, words=words
            )
            pacer.launched(event, float(words) * max(int(before[end] - before[row]), 1))
            executor.download(sums, closed[row:end])
            row = end
    finally:
        for buffer in (data, bits, sums):
            if buffer is not None:
                buffer.release()
    return degree, closed.astype(np.int64)


_BYTE_ONES = np.array([bin(byte).count("1") for byte in range(256)], np.uint8)


def _ones(bits: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Set bits of each row; NumPy before 2.0 has no population count."""
    out = np.empty(len(bits), np.int64)
    step = max((1 << 22) // bits.shape[1], 1)
    for row in range(0, len(bits), step):
        part = _BYTE_ONES[bits[row : row + step].view(np.uint8)]
        out[row : row + step] = part.sum(axis=1, dtype=np.int64)
    return out
