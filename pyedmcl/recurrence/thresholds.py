"""Radii that follow from the data: thresholds, and exact order statistics of distances."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..device.memory import budget
from ..errors import DeviceMemoryError, InputError
from ..jobs.runner import LocalRunner
from ..kernels import spec
from ..kernels.build import build
from ..launch.staging import Pacer
from ..tuning.parameters import parameters
from .arguments import Convention, Spread, metric_named, required, scaled, spread, spread_in
from .counts import cells_of_columns, cells_within
from .points import Points
from .problem import RqaProblem, require_precision

if TYPE_CHECKING:
    from ..device.executor import Buffer, Executor
    from ..jobs.runner import Runner


# Order statistics among the distances of a recurrence matrix, exact and without the matrix.
#
# Distances are not negative, so that they order like their bit patterns. A limit is found by narrowing an interval of
# bit patterns: each sweep over the cells counts those at or below some limits inside the interval. Where few cells are
# left in it their distances are fetched and sorted. A sample says where to begin, such that one sweep mostly suffices.


_GATHERED = 1 << 22  # distances fetched to be sorted
_SAMPLE = 1 << 16, 1 << 22  # pairs looked at on the host for a first interval, at least and at most
_SAMPLED = 512  # cells, of which one is looked at
_BANDS = 8  # intervals of which distances are fetched in one sweep
_COLUMNS = 1 << 20  # columns with limits of their own at once


class Ranks:
    """Counts of cells at or below given limits, on one device.

    Parameters
    ----------
    problem : RqaProblem
        Its points, metric and arithmetic; radii and Theiler fields do not enter.
    x, y : ndarray
        Rows and columns, as in :class:`pyedmcl.recurrence.problem.RqaProblem`; ``y`` None for a symmetric matrix.
    window : int
        Cells with |i - j| < window do not count.
    lower : bool
        Only cells below the main diagonal count.
    """

    def __init__(
        self, executor: Executor, problem: RqaProblem, x: NDArray[Any], y: NDArray[Any] | None, *,
        window: int, lower: bool = False,
    ) -> None:  # fmt: skip
        self.dtype = np.dtype(problem.arithmetic)
        require_precision(executor.info, problem)
        self.executor, self.problem = executor, problem
        self.window, self.lower = window, lower
        self._values: dict[str, Any] = problem.cell
        self._spec = spec("recurrence_ranks")
        self._pacer = Pacer(executor.info)
        chosen = parameters(self._spec, self._values, executor.info).parameters
        self.candidates: int = chosen["candidates"]
        self._values |= chosen
        self._room(x, y)
        self._held: list[Buffer] = []
        with np.errstate(over="ignore"):
            self._x = self._upload(x.astype(self.dtype))
            self._y = self._x if y is None else self._upload(y.astype(self.dtype))

    def _room(self, x: NDArray[Any], y: NDArray[Any] | None) -> None:
        width = min(self.problem.n_columns, _COLUMNS)
        limits = self.candidates * width * (self.dtype.itemsize + 4)
        needed = (x.size + (0 if y is None else y.size)) * self.dtype.itemsize + max(limits, _GATHERED * 8)
        room = budget(self.executor.info)
        if needed > room.total or max(x.size, _GATHERED) * self.dtype.itemsize > room.largest:
            raise DeviceMemoryError(
                f"selecting a threshold among the distances of {len(x):,} points needs {needed:,} bytes; "
                f"{room.total:,} may be used on {self.executor.info.name}, {room.largest:,} of them for one buffer "
                "(raise PYEDMCL_MEMORY_FRACTION or PYEDMCL_MEMORY_LIMIT)"
            )

    def _upload(self, values: NDArray[Any]) -> Buffer:
        self._held.append(self.executor.upload(np.ascontiguousarray(values)))
        return self._held[-1]

    def release(self) -> None:
        """Give the device memory back."""
        for buffer in self._held:
            buffer.release()
        self._held.clear()

    def counts(self, limits: NDArray[Any], begin: int = 0) -> NDArray[np.int64]:
        """Cells at or below the limits.

        Parameters
        ----------
        limits : ndarray (candidates,) or (columns, candidates)
            Common to all columns, or for the columns from ``begin`` on.

        Returns
        -------
        ndarray (candidates,) or (columns, candidates)
        """
        of_columns = limits.ndim == 2
        n = len(limits) if of_columns else self.problem.n_columns
        width = n if of_columns else min(n, _COLUMNS)
        counted = np.zeros((self.candidates, width), np.uint32)
        total = np.zeros(self.candidates, np.int64)
        kernel = build(self.executor, self._spec, {**self._values, "per_column": of_columns})
        buffers = [self.executor.upload(np.ascontiguousarray(limits, self.dtype)), self.executor.upload(counted)]
        try:
            for first in range(begin, begin + n, width):
                block = np.zeros((self.candidates, min(width, begin + n - first)), np.uint32)
                self.executor.upload(block, buffers[1])
                self._sweep(
                    kernel, block.shape[1], self.candidates, limits=buffers[0], counts=buffers[1], column_begin=first
                )
                self.executor.download(buffers[1], block)
                total += block.sum(axis=1, dtype=np.int64)
                counted = block
        finally:
            for buffer in buffers:
                buffer.release()
        return counted.T.astype(np.int64) if of_columns else total

    def gathered(self, bands: NDArray[Any]) -> tuple[NDArray[np.int64], list[NDArray[Any]]]:
        """Of bands (n, 2), low < distance <= high: how many cells (n, 2) are below each and in it, and the distances in
        it, in any order; only some of them where :data:`_GATHERED` are too few for all bands."""
        n, width, held = len(bands), self.problem.n_columns, _GATHERED // len(bands)
        counted, filled = np.zeros((2 * n, width), np.uint32), np.zeros(n, np.int32)
        kernel = build(self.executor, self._spec, {**self._values, "per_column": False}, "recurrence_gather")
        download = self.executor.download
        named: dict[str, Buffer] = {}
        try:
            room = named["found"] = self.executor.allocate(n * held * self.dtype.itemsize)
            given = {"limits": np.ascontiguousarray(bands, self.dtype), "counts": counted, "filled": filled}
            for name, array in given.items():
                named[name] = self.executor.upload(array)
            self._sweep(kernel, width, 4 * n, bands=n, capacity=held, **named)
            totals = download(named["counts"], counted).sum(axis=1, dtype=np.int64).reshape(2, n).T
            found = [np.empty(min(int(count), held), self.dtype) for count in totals[:, 1]]
            for band, part in enumerate(found):
                if len(part):
                    download(room, part, band * held * self.dtype.itemsize)
        finally:
            for buffer in named.values():
                buffer.release()
        return totals, found

    def _sweep(self, kernel: Any, n_columns: int, comparisons: int, **arguments: Any) -> None:
        """All rows against some columns, with the given number of comparisons a cell."""
        cost = float(n_columns) * (3 * self._values["m"] + 2 * comparisons)
        groups = -(-n_columns // self._values["wg"])
        row = 0
        while row < self.problem.n_rows:
            end = min(row + self._pacer.units(cost), self.problem.n_rows)
            event = self.executor.launch(
                kernel, (groups * self._values["wg"],), (self._values["wg"],), x=self._x, y=self._y, row_begin=row,
                row_end=end, n_columns=n_columns, window=self.window, lower=self.lower, **arguments,
            )  # fmt: skip
            self._pacer.launched(event, cost * (end - row))
            row = end
        self.executor.finish()

    def kth(self, k: Sequence[int], cells: int, sample: Callable[[int], NDArray[Any]]) -> list[float]:
        """The k-th smallest distances of all counted cells, k = 1, ..., as numbers of the arithmetic.

        Parameters
        ----------
        k : sequence of int
            All are searched together.
        cells : int
            ``cells`` of complete points are counted, and no k is more than that.
        sample : callable
            ``sample(n)`` gives some n distances of random cells; only speed depends on them.
        """
        search = _Search(np.array(k, np.int64), cells, self.dtype)
        seen = _bits(np.sort(sample(int(np.clip(cells // _SAMPLED, *_SAMPLE)))))
        open_ = search.open
        bands, inside = (search.guessed(seen) if len(seen) else search.bands(open_))
        while len(open_):
            bands, inside, now = bands[:_BANDS], inside[:_BANDS], open_[:_BANDS]
            if inside.max() <= _GATHERED // len(now):
                limits = _values(np.maximum(bands, 0), self.dtype)
                limits[bands < 0] = -1
                totals, found = self.gathered(limits)
                search.learn(bands.ravel(), totals.cumsum(axis=1).ravel())
                for at, (below, held), part in zip(now, totals, found, strict=True):
                    rank = int(search.k[at] - below)
                    if 0 < rank <= held == len(part):
                        search.value[at] = float(np.partition(part, rank - 1)[rank - 1])
            else:
                trial = search.trial(bands, self.candidates, seen)
                search.learn(trial, self.counts(_values(trial, self.dtype)))
            open_ = search.open
            bands, inside = search.bands(open_)
        return search.value.tolist()

    def above(self, low: float, cells: int, sample: Callable[[int], NDArray[Any]]) -> float:
        """The smallest distance above ``low`` of all counted ``cells``; 0 where there is none."""
        counted = int(self.counts(np.full(self.candidates, low, self.dtype))[0])
        return self.kth([counted + 1], cells, sample)[0] if counted < cells else 0.0

    def kth_of_columns(
        self, k: int, cells: NDArray[np.int64], sample: Callable[[int], NDArray[Any]]
    ) -> NDArray[np.float64]:
        """The k-th smallest distance of each column, the largest where it has fewer, -1 where it has none.

        Parameters
        ----------
        cells : ndarray (columns,)
            How many cells of complete points of each column are counted.
        sample : callable
            As for :meth:`kth`.
        """
        seen = np.sort(sample(_SAMPLE[0]))
        out = np.empty(self.problem.n_columns, np.float64)
        for begin in range(0, len(out), _COLUMNS):
            part = out[begin : begin + _COLUMNS]
            part[:] = self._kth_of_columns(k, begin, cells[begin : begin + _COLUMNS], seen)
        return out

    def _kth_of_columns(
        self, k: int, begin: int, cells: NDArray[np.int64], seen: NDArray[Any]
    ) -> NDArray[Any]:
        n = len(cells)
        high = np.full(n, _bits(np.full(1, np.inf, self.dtype))[0], np.int64)
        low, below = np.full(n, -1, np.int64), np.zeros(n, np.int64)  # below: cells at or below low
        rank = np.minimum(k, cells)
        trial = _spread(low[:, None], high[:, None], self.candidates)
        if len(seen):  # a column's quantile is within some powers of two of that of all
            shares = k / self.problem.n_rows * 2.0 ** (np.arange(self.candidates) - self.candidates // 2)
            places = np.clip(np.rint(shares * len(seen)).astype(int), 0, len(seen) - 1)
            trial = np.broadcast_to(_bits(seen[places]), trial.shape)
        rows = np.arange(n)
        while ((high - low > 1) & (rank - below > self._values["next"])).any():
            counted = self.counts(_values(trial, self.dtype), begin)
            above = counted >= rank[:, None]
            first = np.where(above.any(axis=1), above.argmax(axis=1), self.candidates)
            last, capped = np.maximum(first - 1, 0), np.minimum(first, self.candidates - 1)
            higher = (first > 0) & (trial[rows, last] > low)
            below = np.where(higher, counted[rows, last], below)
            low = np.where(higher, trial[rows, last], low)
            high = np.where(first < self.candidates, np.minimum(trial[rows, capped], high), high)
            trial = _spread(low[:, None], high[:, None], self.candidates)
        limits = _values(high, self.dtype).copy()
        rest = rank - below
        sorted_out = rest <= self._values["next"]
        if sorted_out.any():
            least = np.where(low >= 0, _values(np.maximum(low, 0), self.dtype), self.dtype.type(-1))
            following = self._next(least, begin)
            limits[sorted_out] = following[rows, np.clip(rest, 1, self._values["next"]) - 1][sorted_out]
        return np.where(cells > 0, limits, -1)

    def _next(self, low: NDArray[Any], begin: int) -> NDArray[Any]:
        """The smallest distances above ``low`` of the columns from ``begin`` on, (columns, next)."""
        following = np.full((len(low), self._values["next"]), np.inf, self.dtype)
        kernel = build(self.executor, self._spec, {**self._values, "per_column": True}, "recurrence_next")
        buffers = [self.executor.upload(np.ascontiguousarray(low, self.dtype)), self.executor.upload(following)]
        try:
            self._sweep(kernel, len(low), 4, lows=buffers[0], found=buffers[1], column_begin=begin)
            return self.executor.download(buffers[1], following)
        finally:
            for buffer in buffers:
                buffer.release()


class _Search:
    """What is known of the k-th distances of some cells: each lies in an interval (low, high] of bit patterns."""

    def __init__(self, k: NDArray[np.int64], cells: int, dtype: np.dtype[Any]) -> None:
        self.k, self.dtype, self.cells = k, dtype, cells
        self.low, self.below = np.full(len(k), -1, np.int64), np.zeros(len(k), np.int64)  # below: cells up to low
        self.high = np.full(len(k), _bits(np.full(1, np.inf, dtype))[0])
        self.reached = np.full(len(k), cells, np.int64)  # cells up to high
        self.value = np.full(len(k), np.nan)

    @property
    def open(self) -> NDArray[np.int64]:
        """Places of those that are not known yet."""
        return np.flatnonzero(np.isnan(self.value))

    def learn(self, limits: NDArray[np.int64], counted: NDArray[np.int64]) -> None:
        """So many cells lie at or below each limit."""
        for limit, count in zip(limits.tolist(), counted.tolist(), strict=True):
            up, down = (count < self.k) & (limit > self.low), (count >= self.k) & (limit < self.high)
            self.low[up], self.below[up] = limit, count
            self.high[down], self.reached[down] = limit, count
        certain = self.high - self.low <= 1
        self.value[certain] = _values(self.high[certain], self.dtype)

    def bands(self, of: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Intervals (n, 2) and how many cells lie in each."""
        return np.stack([self.low[of], self.high[of]], axis=1), self.reached[of] - self.below[of]

    def guessed(self, seen: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The same by a sorted sample: the wanted quantiles, as far to both sides as their error is wide."""
        n, share = len(seen), self.k / self.cells
        error = 4 * np.sqrt(n * share * (1 - share)) + 4
        places = np.rint(np.stack([share * n - error, share * n + error], axis=1)).astype(np.int64)
        bands = np.where(places < 0, -1, seen[np.clip(places, 0, n - 1)])
        held = np.searchsorted(seen, bands[:, 1], "right") - np.searchsorted(seen, bands[:, 0], "right")
        return bands, -(-held * self.cells // n)

    def trial(self, bands: NDArray[np.int64], n: int, seen: NDArray[np.int64]) -> NDArray[np.int64]:
        """n limits in ascending order that tell most of where in these bands the distances lie: as many cells of the
        sample between two of them, else evenly spaced. Where many cells have one distance, that one and the last
        number before it."""
        each = max(n // len(bands), 2)
        chosen: list[int] = []
        for low, high in bands.tolist():
            first, end = np.searchsorted(seen, [low, high], "right")
            if end - first < 4 * each:
                chosen += _spread(low, high, each).tolist()
                continue
            own = np.unique(seen[np.linspace(first, end - 1, each).astype(np.int64)])
            repeated = own[np.searchsorted(seen, own, "right") - np.searchsorted(seen, own) > 1]
            chosen += np.unique(np.concatenate([own, repeated - 1]))[:each].tolist()
        limits = np.unique(np.array(chosen[:n], np.int64))
        return np.concatenate([limits, np.full(n - len(limits), limits[-1])])


def _bits(values: NDArray[Any]) -> NDArray[np.int64]:
    kind = np.int32 if values.dtype == np.float32 else np.int64
    return values.view(kind).astype(np.int64)


def _values(bits: NDArray[np.int64], dtype: np.dtype[Any]) -> NDArray[Any]:
    kind = np.int32 if dtype == np.float32 else np.int64
    return np.ascontiguousarray(bits, kind).view(dtype)


def _value(bits: int, dtype: np.dtype[Any]) -> float:
    return float(_values(np.array([bits], np.int64), dtype)[0])


def _spread(low: Any, high: Any, n: int) -> NDArray[np.int64]:
    """n patterns above ``low`` and below ``high``, evenly spaced and ascending; ``high`` - 1 again where few are."""
    step = np.maximum((np.asarray(high, np.int64) - low) // (n + 1), 1)
    patterns: NDArray[np.int64] = np.minimum(low + step * np.arange(1, n + 1), np.asarray(high, np.int64) - 1)
    return patterns


_PIXELS = 64  # in whose squares distances are added
_LEAST = 5e-324  # the smallest number above 0, which is no radius


@dataclass(frozen=True)
class RqaPass:
    """One sweep over the matrix, for some of the radii that were asked for."""

    # With radii, or limits that were selected.
    problem: RqaProblem
    # What each of its matrices reports as its radius.
    radii: tuple[Any, ...]
    # The place of each among the radii that were asked for: a problem has them in ascending order.
    order: tuple[int, ...]


def passes_for(
    runner: Runner, problem: RqaProblem, convention: Convention, rows: Points, columns: Points, threshold: str,
    radii: Sequence[Any], *, name: str = "radius", unit: str = "data", what: str | None = None,
) -> list[RqaPass]:  # fmt: skip
    """Sweeps that give a matrix for each radius, rate or number of neighbours.

    Parameters
    ----------
    runner : Runner
        Limits are selected on its own device, if they must be.
    problem : RqaProblem
        Without radii.
    convention : Convention
        Whose recurrence rate counts.
    rows, columns : Points
        The same object for one series with itself.
    radii : sequence
        From :func:`pyedmcl.recurrence.arguments.radii_of`.
    name : str
        The argument that held them.
    unit : str
        Of radii; see :mod:`pyedmcl.recurrence.arguments`.
    what : str, optional
        What messages call the series.
    """
    what = what or ("x" if name == "radius" else name.replace("radius_", ""))
    pairs = convention.mean_of_pairs
    radii = scaled(list(radii), unit_of(unit, runner, problem, rows, columns, what, pairs=pairs), name)
    if threshold == "neighbours":
        return [
            RqaPass(_with_neighbours(runner.executor, problem, rows, columns, k, name), (math.nan,), (at,))
            for at, k in enumerate(radii)
        ]
    if threshold == "recurrence_rate":
        limits = _limits_of_rates(runner.executor, problem, convention, rows, columns, radii, name)
        radii = [_smallest_radius(problem, *limit, name) for limit in limits]
    order = sorted(range(len(radii)), key=lambda at: radii[at][::-1] if threshold == "corridor" else radii[at])
    ascending = tuple(radii[at] for at in order)
    if threshold == "corridor":
        inner, outer = zip(*ascending, strict=True)
        return [RqaPass(replace(problem, radii=outer, inner=inner), ascending, tuple(order))]
    return [RqaPass(replace(problem, radii=ascending), ascending, tuple(order))]


def unit_of(
    unit: str, runner: Runner, problem: RqaProblem, rows: Points, columns: Points, what: str = "x", *,
    pairs: bool = True,
) -> float:  # fmt: skip
    """How long the unit of a radius is, in that of the data.

    Parameters
    ----------
    unit : str
        One of :data:`pyedmcl.parameters.UNITS`.
    runner : Runner
        Distances are searched, and added, on its own device.
    problem : RqaProblem
        Without radii.
    rows, columns : Points
        The same object for one series with itself.
    what : str
        What messages call the series.
    pairs : bool
        The mean distance of one series is that of different points.
    """
    if unit == "data":
        return 1.0
    if unit == "max_distance":
        length = largest_distance(runner.executor, problem, rows, columns)
    elif unit == "mean_distance":
        length = mean_distance(runner.executor, problem, rows, columns, pairs=pairs)
    elif metric_named(problem.metric).prepare is not None:
        raise InputError(
            f"radius_unit={unit!r} contradicts metric={problem.metric!r}, whose distances do not grow with the data; "
            "choose 'data' or 'max_distance'"
        )
    else:
        sides = [rows.given] if rows is columns else [rows.given, columns.given]
        parts = [spread(np.ascontiguousarray(side.T)) for side in sides]
        together = Spread(*(np.concatenate(field)[None] for field in zip(*parts, strict=True)))
        length = float(spread_in(unit, together)[0])
    return required(unit, length, what)


def largest_distance(executor: Executor, problem: RqaProblem, rows: Points, columns: Points) -> float:
    """The distance of the two points that are farthest from each other, in the unit of the data."""
    n, m = int(np.count_nonzero(rows.complete)), int(np.count_nonzero(columns.complete))
    cells = n * (n - 1) // 2 if problem.symmetric else n * m
    if not cells:
        return math.nan
    window = 1 if problem.symmetric else 0
    problem = replace(problem, n_rows=rows.n, n_columns=columns.n)  # not those of a window
    ranks = Ranks(
        executor, problem, rows.values, None if problem.symmetric else columns.values,
        window=window, lower=problem.symmetric,
    )  # fmt: skip
    try:
        limit = ranks.kth([cells], cells, sampler(problem, rows, columns, window))[0]
    finally:
        ranks.release()
    return math.ldexp(float(metric_named(problem.metric).radius_of(np.float64(limit))), problem.exponent)


def mean_distance(
    executor: Executor, problem: RqaProblem, rows: Points, columns: Points, *, pairs: bool = True
) -> float:
    """The mean distance of all points of the rows and all of the columns, in the unit of the data; of one series of
    different points (``pairs``), or of all. Distances are added as integers, so that it is the same on every device."""
    from .image_problem import image_problem, rendered

    n, m = int(np.count_nonzero(rows.complete)), int(np.count_nonzero(columns.complete))
    cells = n * (n - 1) if problem.symmetric and pairs else n * m
    if not cells:
        return math.nan
    whole = replace(
        problem, n_rows=rows.n, n_columns=columns.n, dtype=problem.arithmetic, exact=False, radii=(), inner=None
    )
    pixels = min(rows.n, _PIXELS), min(columns.n, _PIXELS)
    drawn = image_problem(
        whole, rows.values, None if problem.symmetric else columns.values, pixels=pixels, mean=True,
        exponent=problem.exponent,
    )  # fmt: skip
    means = rendered(LocalRunner([executor]), drawn).values
    sums = np.where(np.isnan(means), 0.0, means) * np.outer(*drawn.complete_points(0, pixels[0]))
    return math.fsum(sums.ravel().tolist()) / cells


def _limits_of_rates(
    executor: Executor, problem: RqaProblem, convention: Convention, rows: Points, columns: Points,
    rates: Sequence[float], name: str,
) -> list[tuple[float, float]]:  # fmt: skip
    """The smallest limit for each rate at which the recurrence rate, as the convention counts it, reaches it; and,
    where that is 0, the smallest one above it (0 where all are equal)."""
    window = problem.theiler if problem.theiler_everywhere else 0
    every = int(np.count_nonzero(rows.complete)) * int(np.count_nonzero(columns.complete))
    dropped = cells_within(rows.complete, columns.complete, window)
    outside = every - dropped
    cells = outside if convention.outside(problem.symmetric) else every
    if cells == 0:
        raise InputError(
            f"{name}={rates[0]!r}: there is no cell of which a share could recur, since every point touches a gap or "
            "every cell lies within the Theiler window"
        )
    # A symmetric matrix is searched below its diagonal, on which every complete point recurs with itself.
    identity = int(np.count_nonzero(rows.complete)) if problem.symmetric and window == 0 else 0
    weight = 2 if problem.symmetric else 1
    searched = (outside - identity) // weight
    lower_window = max(window, 1) if problem.symmetric else window
    wanted = [-(-(_points_for(rate, cells) - identity) // weight) for rate in rates]
    for rate, k in zip(rates, wanted, strict=True):
        if k > searched:
            most = (identity + weight * searched) / max(cells, 1)
            raise InputError(
                f"{name}={rate!r}: the recurrence rate can reach {most:.6g} at most, since cells within the "
                "Theiler window do not recur; choose a lower rate"
            )
    sample = sampler(problem, rows, columns, lower_window)
    ranks = Ranks(
        executor, problem, rows.values, None if problem.symmetric else columns.values,
        window=lower_window, lower=problem.symmetric,
    )  # fmt: skip
    try:
        found = iter(ranks.kth([k for k in wanted if k > 0], searched, sample))
        limits = [next(found) if k > 0 else 0.0 for k in wanted]
        following = ranks.above(0.0, searched, sample) if 0.0 in limits else 0.0
    finally:
        ranks.release()
    return [(limit, limit or following) for limit in limits]


def _smallest_radius(problem: RqaProblem, limit: float, following: float, name: str) -> float:
    """The smallest radius, in the unit of the data, within which what is compared may be as large as ``limit``.

    It gives the same cells wherever it is passed as a radius. A limit itself need not do so: cells at it are outside of
    a radius that is compared by "less than", and roots are rounded. At limit 0 the radius is 0 where equal points are
    within it, else half of the least distance above 0, that of ``following``.
    """
    if limit == 0.0:
        least = float(metric_named(problem.metric).radius_of(np.float64(following)))
        half = math.ldexp(least, problem.exponent - 1)
        return 0.0 if not problem.strict else half if half > _LEAST else 1.0

    def holds(radius: Any, among: RqaProblem) -> bool:
        limit_of_radius = among.limits_of((float(radius),))[0]
        return bool(limit_of_radius > limit if problem.strict else limit_of_radius >= limit)

    near_one, arithmetic = replace(problem, exponent=0), np.dtype(problem.arithmetic).type
    radius: Any = arithmetic(metric_named(problem.metric).radius_of(arithmetic(limit)))
    while radius > 0 and holds(np.nextafter(radius, arithmetic(0)), near_one):
        radius = np.nextafter(radius, arithmetic(0))
    while not holds(radius, near_one):
        radius = np.nextafter(radius, arithmetic(np.inf))
    in_units = np.maximum(np.ldexp(np.float64(radius), problem.exponent), _LEAST)
    if not np.isfinite(in_units):
        raise InputError(f"{name}: the radius of this rate is no number of float64; scale the data down")
    while not holds(in_units, problem):  # it lost digits, being so small
        in_units = np.nextafter(in_units, np.inf)
    return float(in_units)


def _points_for(rate: float, cells: int) -> int:
    """The least number of recurrent points whose share of the cells is at least ``rate``."""
    points = math.ceil(rate * cells)
    while points > 0 and (points - 1) / cells >= rate:
        points -= 1
    while points / cells < rate:
        points += 1
    return points


def enough_cells(
    k: int, n_rows: int, n_columns: int, theiler: int, *, symmetric: bool, name: str = "radius"
) -> None:
    """Refuse more neighbours than the points of a matrix have. Gaps may leave a point with fewer; it then recurs with
    all that it has."""
    window = max(theiler, 1) if symmetric else theiler
    if k < min(n_rows, n_columns) - 2 * window:
        return
    most = int(cells_of_columns(np.ones(n_rows, bool), np.ones(n_columns, bool), window).min())
    if k > most:
        raise InputError(
            f"{name}={k!r}: a point has {most} neighbours at least outside the Theiler window; ask for fewer"
        )


def _with_neighbours(
    executor: Executor, problem: RqaProblem, rows: Points, columns: Points, k: int, name: str
) -> RqaProblem:
    window = problem.line_window
    enough_cells(k, rows.n, columns.n, problem.theiler, symmetric=problem.symmetric, name=name)
    ranks = Ranks(executor, problem, rows.values, None if problem.symmetric else columns.values, window=window)
    try:
        cells = cells_of_columns(rows.complete, columns.complete, window)
        limits = ranks.kth_of_columns(k, cells, sampler(problem, rows, columns, window))
    finally:
        ranks.release()
    return replace(problem, radii=(math.nan,), column_limits=limits, symmetric=False, strict=False)


def sampler(problem: RqaProblem, rows: Points, columns: Points, window: int) -> Any:
    """What gives some distances of random cells, from which :class:`Ranks` guesses where to begin."""
    def sample(n: int) -> NDArray[Any]:
        rng = np.random.default_rng(0)
        i, j = rng.integers(0, rows.n, n), rng.integers(0, columns.n, n)
        kept = np.abs(i - j) >= window
        compared = compared_pairs(problem, rows, columns, i[kept], j[kept])
        present: NDArray[Any] = compared[~np.isnan(compared)]
        return present

    return sample


def compared_pairs(
    problem: RqaProblem, rows: Points, columns: Points, i: NDArray[np.int_], j: NDArray[np.int_]
) -> NDArray[Any]:
    """What is compared with a limit, for the cells (i, j), on the host; bit for bit what the devices find."""
    with np.errstate(over="ignore", under="ignore"):
        x, y = (side.values.astype(problem.arithmetic, copy=False) for side in (rows, columns))
        if problem.embedded:
            differences = (x[i, e] - y[j, e] for e in range(problem.n_features))
        else:
            differences = (x[i + lag] - y[j + lag] for lag in problem.tau * np.arange(problem.m))
        return metric_named(problem.metric).compared(differences)
