"""Mutual information of a series and its past: the lag at which coordinates of a state tell little of each other."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..arguments import MOST_STEPS, integer, several, some
from ..device.select import open_devices
from ..errors import InputError, RecurrenceWarning, pandas_for, shown, warn
from ..jobs.blocks import Arrays, Block, BlockResult, Record, Report, cut
from ..jobs.client import ClientRunner
from ..jobs.runner import ArraySink, LocalRunner, Runner, public_function
from ..results.result import Label, Result, common, labelled
from ..series.scaling import near_one
from ..series.series import Series, as_series
from .problem import RqaProblem
from .remarks import tell_constant_series
from .rqa import Device, Progress
from .thresholds import Ranks

if TYPE_CHECKING:
    from ..device.executor import Executor

_EULER = 0.57721566490153286
_LAGS = 50  # that are tried where none are asked for, as far as the series allows
_SCATTER = 1.4826 / math.sqrt(6)  # from the median magnitude of second differences to a standard deviation
_LEAST_RISE, _NOISES_UP, _NOISES_WIDE = 0.02, 4.0, 2.0  # of a minimum: see MutualInformation.first_minimum
_LEAST_LAGS = 8  # from which a scatter can be told
_MANY_TIES = 0.1  # of the values occur more than once: nearest neighbours are at distance 0
Doubles = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class MutualInformation(Result):
    """Mutual information in nats against lag.

    Attributes
    ----------
    values : ndarray of float64 (lags,) or (n_series, lags)
        NaN where too few pairs are there.
    lags : tuple of int
    names : tuple of str
    floor : float
        What independent values rarely exceed, in nats: an estimate from few values is not 0.
    provenance : mapping

    Examples
    --------
    >>> import numpy as np
    >>> import pyedmcl
    >>> x = np.sin(np.arange(1000) * 0.1) + 0.1 * np.random.default_rng(0).standard_normal(1000)
    >>> result = pyedmcl.mutual_information(x, lags=40)
    >>> result.first_minimum()  # a usual choice for tau
    16
    >>> result.values[:3].round(1).tolist(), result.lags[:3]
    ([1.3, 1.1, 1.0], (1, 2, 3))
    """

    answer_columns = ("*",)

    series_label: ClassVar = Label("nats", "mutual information of the series and itself some rows later")
    column_labels: ClassVar = common("lag")

    values: Doubles
    lags: tuple[int, ...]
    names: tuple[str, ...]
    floor: float = 0.0
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def first_minimum(self) -> Any:
        """The first minimum of each series, a usual choice for tau (Fraser and Swinney 1986).

        A minimum is a valley behind which the curve rises by more than its noise: by 2 % of its range, and by four
        times the scatter of its second differences (half of the range at most). It is the middle of what lies within
        twice that scatter of the lowest point. It is the first lag where already that tells no more than independent
        values do. Where there is no valley, a warning says so, and it is the lag of the least value.
        """
        found = [_first_minimum(row, self.floor) for row in np.atleast_2d(self.values)]
        none = tuple(name for name, place in zip(self.names, found, strict=True) if place is None)
        if none:
            warn(
                f"{some(none)}: the mutual information has no minimum up to lag {self.lags[-1]}, and the lag of its "
                "least value is taken: try more lags=, or another rule for tau, such as the correlation time",
                RecurrenceWarning,
            )  # fmt: skip
        least = np.argmin(np.where(np.isnan(self.values), np.inf, self.values), axis=-1).reshape(-1)
        places = [int(low) if place is None else place for low, place in zip(least, found, strict=True)]
        minima = np.array(self.lags)[places]
        return int(minima[0]) if self.values.ndim == 1 else minima

    def to_xarray(self) -> Any:
        """An xarray DataArray (series, lag)."""
        axes = [("series", self.names), ("lag", list(self.lags))]
        return labelled(np.atleast_2d(self.values), axes, "mutual_information")

    def to_frame(self) -> Any:
        """A pandas DataFrame: a row per lag, a column per series."""
        frame = pandas_for("to_frame()").DataFrame(np.atleast_2d(self.values).T, columns=list(self.names))
        frame.index = list(self.lags)
        frame.index.name = "lag"
        return frame

    def plot(self, path: str | None = None) -> Any:
        """Values against lag; saved to ``path`` if given. Needs matplotlib."""
        from ..plot.curves import curves

        return curves(self.lags, self.values, self.names, "lag", "mutual information (nats)", path)


@public_function
def mutual_information(
    x: Any,
    *,
    lags: int | Sequence[int] | None = None,
    method: str = "binned",
    bins: int = 16,
    k: int = 4,
    regular: str | None = None,
    progress: Progress | None = None,
    device: Device = None,
    client: Any = None,
    tune: str | None = None,
) -> MutualInformation:
    """Find how much a series tells of itself some steps later: choose the lag where that is little.

    Parameters
    ----------
    x : array_like (n_steps,) or (n_steps, n_series)
        Time along the first axis. Pairs with a gap (NaN) do not count.
    lags : int or sequence of int, optional
        1, ..., ``lags``, or these, at least 1; 1 to 50 by default, or to a third of the series.
    method : {"binned", "kraskov"}
        "binned": from a histogram of ``bins`` x ``bins`` cells, whose edges leave equally many values of the series in
        each bin. It is biased upwards by some (bins - 1)^2 / (2 n). "kraskov": from the distances of nearest
        neighbours, with little bias (the first estimator of Kraskov et al., Physical Review E 69, 066138, 2004); equal
        values should be rare.
    bins : int
        At least 2.
    k : int
        Neighbours of each pair; more give less noise and more bias.
    regular : {"insert", "ignore"}, optional
        What is done where times of rows (an index of dates or numbers, a coordinate, a time column) are not regular,
        which is refused by default. "insert" puts rows of NaN where rows are missing: ranges and masks are moved along,
        and rows of the result are those of the longer table. "ignore" takes the rows as they come. Dates whose index
        has a frequency are regular.
    progress : callable or True, optional
        Called as ``progress(done, total, unit)``, where the unit says what is counted, such as "series"; True shows a
        bar.
    device : str or sequence of str, optional
        Which device, or several that share the work; see ``pyedmcl devices``. "binned" is computed by this processor.
    client : optional
        Workers of a cluster that compute instead of this process: a ``dask.distributed.Client``, an ``Executor`` of
        ``concurrent.futures`` (spawned processes, MPI, loky), or another object with ``submit``. Each opens ``device``
        where it runs; see ``docs/scale.md``.
    tune : {"never", "cached", "auto", "force"}, optional
        Which tuned parameters kernels take, which changes speed and never the answer; ``PYEDMCL_TUNE`` or "cached" by
        default.

    Returns
    -------
    MutualInformation
        ``values`` (lags,) for 1-D input, else (n_series, lags); ``first_minimum()``, ``to_frame()``, ``plot()``.

    Raises
    ------
    InputError
        An argument cannot be used.
    DeviceNotFoundError
        No device matches.

    See Also
    --------
    embedding_scan : the lag and dimension that predict best.
    false_neighbors : choose the dimension.

    Notes
    -----
    Cost: of "kraskov" about 8 n_steps^2 operations for each lag; of "binned" next to nothing.

    Examples
    --------
    >>> import numpy as np
    >>> import pyedmcl
    >>> x = np.sin(np.arange(1000) * 0.1) + 0.1 * np.random.default_rng(0).standard_normal(1000)
    >>> pyedmcl.mutual_information(x, lags=40).values.shape
    (40,)
    """
    series = as_series(x, what="x")
    chosen = _lags(lags, series.n_steps)
    least = max(chosen) + (k + 2 if method == "kraskov" else 2)
    if series.n_steps < least:
        raise InputError(
            f"x: {series.n_steps} values, and lags up to {max(chosen)} with method={method!r} need at least {least}"
        )
    tell_constant_series("x", series, "lag")
    if method == "kraskov":
        _tell_ties(series)
    problem = InformationProblem(series.values, chosen, method, bins, k)
    runner: Runner = LocalRunner(open_devices(device)) if client is None else ClientRunner(client, device)
    values = np.empty((series.n_series, len(chosen)))
    record = runner.run(problem, ArraySink(problem.blocks(runner.devices), [values]))
    single = getattr(x, "ndim", 2 if series.n_series > 1 else 1) == 1
    origin = runner.provenance(("recurrence_ranks",), record, method=method, bins=bins, k=k)
    floor = 1.5 * (bins - 1) ** 2 / (2 * series.n_steps) if method == "binned" else 2 / math.sqrt(series.n_steps)
    return MutualInformation(values[0] if single else values, chosen, series.names, floor, origin)


def _first_minimum(curve: Doubles, floor: float = 0.0) -> int | None:
    """The place of the first minimum that is more than noise, the first one where that is below ``floor``; None where
    there is no minimum."""
    places = np.flatnonzero(~np.isnan(curve))
    curve = curve[places]
    if len(curve) < 3:
        return None
    if curve[0] < floor:
        return int(places[0])
    noise = _SCATTER * float(np.median(np.abs(np.diff(curve, 2)))) if len(curve) >= _LEAST_LAGS else 0.0
    span = float(np.ptp(curve))
    rise = max(_LEAST_RISE * span, min(_NOISES_UP * noise, span / 2))
    lowest = np.minimum.accumulate(curve)
    risen = np.flatnonzero(curve - lowest > rise)
    if not len(risen):
        return None
    valley = curve[: risen[0]]
    low = np.flatnonzero(valley <= valley.min() + min(_NOISES_WIDE * noise, span / 4))
    return int(places[int(np.median(low))])


def _lags(lags: Any, n_steps: int) -> tuple[int, ...]:
    if lags is None:
        return tuple(range(1, max(min(_LAGS, n_steps // 3), 1) + 1))
    chosen = [integer("lags", lag, 1, most=MOST_STEPS) for lag in several("lags", lags)]
    if not chosen or len(set(chosen)) < len(chosen):
        raise InputError(f"lags={shown(lags)}: a number of lags, or several different ones, are needed")
    if np.ndim(lags) == 0:
        integer("lags", chosen[0], 1, most=max(n_steps, 1))
        return tuple(range(1, chosen[0] + 1))
    return tuple(chosen)


def _tell_ties(series: Series) -> None:
    """Warn of series with many equal values, whose neighbours are at distance 0."""
    tied = []
    for name, column in zip(series.names, series.values.T, strict=True):
        _, times = np.unique(column[~np.isnan(column)], return_counts=True)
        if len(times) > 1 and times[times > 1].sum() > _MANY_TIES * times.sum():
            tied.append(name)
    if tied:
        warn(
            f"{some(tuple(tied))}: many values are equal, and method='kraskov' takes the distances of nearest "
            "neighbours: its values mean little. Take method='binned', or add noise below the resolution",
            RecurrenceWarning,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class InformationProblem:
    """Mutual information of each series at each lag; blocks are ranges of series."""

    values: NDArray[Any]
    lags: tuple[int, ...]
    method: str
    bins: int
    k: int

    unit: ClassVar[str] = "series"

    @property
    def total(self) -> int:
        return int(self.values.shape[1])

    def size(self, block: Block) -> int:
        return len(block)

    def blocks(self, devices: int = 1) -> list[Block]:
        """Series by series, whatever the number of devices."""
        return cut(self.total, 1)

    @property
    def operations(self) -> float:
        pairs = float(len(self.values)) ** 2 * len(self.lags) * self.total
        return 8 * pairs if self.method == "kraskov" else 0.0

    def open(self, executor: Executor) -> InformationEngine:
        return InformationEngine(self, executor)


class InformationEngine:
    """The engine of :class:`InformationProblem`; it holds no memory on the device between lags."""

    def __init__(self, problem: InformationProblem, executor: Executor) -> None:
        self._problem, self._executor = problem, executor

    def block(self, block: Block, into: Arrays | None, report: Report) -> BlockResult:
        """Values (series of the block, lags)."""
        p = self._problem
        out = np.empty((len(block), len(p.lags))) if into is None else into[0]
        for place in range(len(block)):
            x, _ = near_one(p.values[:, block.begin + place].astype(np.float64))
            labels = quantile_bins(x, p.bins) if p.method == "binned" else None
            for at, lag in enumerate(p.lags):
                finite = ~np.isnan(x[lag:] + x[:-lag])
                if labels is not None:
                    out[place, at] = binned(labels[lag:][finite], labels[:-lag][finite], p.bins)
                else:
                    out[place, at] = kraskov(self._executor, x[lag:][finite], x[:-lag][finite], p.k)
            report(place + 1)
        return BlockResult([out], Record())

    def release(self) -> None:
        """Nothing is held."""


def quantile_bins(x: Doubles, bins: int) -> NDArray[np.int64]:
    """The bin of each value, with edges that leave equally many values in each; gaps are in the last one."""
    present = x[~np.isnan(x)]
    if not len(present):
        return np.zeros(len(x), np.int64)
    edges = np.quantile(present, np.arange(1, bins) / bins)
    bin_of: NDArray[np.int64] = np.searchsorted(edges, x, side="right")
    return bin_of


def binned(a: NDArray[np.int64], b: NDArray[np.int64], bins: int) -> float:
    """Mutual information of two columns of bins."""
    if not len(a):
        return np.nan
    counts = np.bincount(a * bins + b, minlength=bins * bins).reshape(bins, bins)
    rows, columns = counts.sum(axis=1), counts.sum(axis=0)
    i, j = np.nonzero(counts)
    n = len(a)
    return float((counts[i, j] / n * np.log(counts[i, j] * n / (rows[i] * columns[j]))).sum()) + 0.0


def kraskov(executor: Executor, a: Doubles, b: Doubles, k: int) -> float:
    """Mutual information of two columns of numbers, by the k-th nearest neighbour of each pair in the maximum norm."""
    n = len(a)
    if n < k + 1:
        return np.nan
    reach = kth_distances(executor, np.stack([a, b], axis=1), k)
    harmonic = np.concatenate([[-_EULER], np.cumsum(1.0 / np.arange(1, n + 1)) - _EULER])  # psi(1), psi(2), ...
    near = [neighbours_within(of, reach) for of in (a, b)]
    return float(harmonic[k - 1] + harmonic[n - 1] - (harmonic[near[0]] + harmonic[near[1]]).mean())


def kth_distances(executor: Executor, points: Doubles, k: int) -> Doubles:
    """The distance of each point (n, 2) to its k-th nearest other one, in the maximum norm."""
    n, exact = len(points), executor.info.fp64
    problem = RqaProblem(
        m=1, tau=1, metric="maximum", dtype="float32", exact=exact, radii=(), inner=None, strict=False, theiler=1,
        theiler_everywhere=False, n_rows=n, n_columns=n, symmetric=False, embedded=True, n_features=2,
    )  # fmt: skip
    ranks = Ranks(executor, problem, points, None, window=1)
    kind = np.dtype(problem.arithmetic)

    def sample(size: int) -> NDArray[Any]:
        i, j = np.random.default_rng(0).integers(0, n, (2, size))
        i, j = i[i != j], j[i != j]
        distances: NDArray[Any] = np.abs(points[i].astype(kind) - points[j].astype(kind)).max(axis=1)
        return distances

    try:
        return ranks.kth_of_columns(k, np.full(n, n - 1), sample)
    finally:
        ranks.release()


def neighbours_within(x: Doubles, reach: Doubles) -> NDArray[np.int64]:
    """How many other values are nearer to each one than its ``reach``."""
    out = np.zeros(len(x), np.int64)  # none is nearer than 0
    positive = reach > 0
    out[positive] = _within(np.sort(x), x[positive], reach[positive])
    return out


def _within(order: Doubles, x: Doubles, reach: Doubles) -> NDArray[np.int64]:
    low, high = np.searchsorted(order, x - reach, side="right"), np.searchsorted(order, x + reach, side="left")
    padded = np.concatenate([[-np.inf], order, [np.inf]])
    while True:  # sums are rounded: what counts is the difference
        moved = [
            (x - padded[low] < reach) & (low > 0), (x - padded[low + 1] >= reach) & (low < high),
            (padded[high + 1] - x < reach) & (high < len(order)), (padded[high] - x >= reach) & (high > low),
        ]  # fmt: skip
        if not any(move.any() for move in moved):
            break
        low = low - moved[0] + (moved[1] & ~moved[0])
        high = high + moved[2] - (moved[3] & ~moved[2])
    neighbours: NDArray[np.int64] = high - low - 1  # but for itself
    return neighbours
