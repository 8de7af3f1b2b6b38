"""The lag profile of cross recurrence: how often two series are in the same state, one of them some rows later.

It is the recurrence rate of each diagonal of the cross recurrence matrix, which crqa calls the diagonal-wise recurrence
profile: where it is highest, one series leads the other by that lag.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arguments import integer
from ..errors import InputError, shown
from ..jobs.runner import public_function
from ..launch.progress import report_progress
from ..series.arrays import to_array
from ..series.regular import require_same_times, windows_along
from ..series.series import Series
from .arguments import correlation_time, metric_named
from .batch import RqaBatch, rqa_batch
from .measures import LagProfile, profile_of
from .points import Points, coded
from .rqa import Device, Progress

Doubles = NDArray[np.float64]

_BLOCK = 10  # times the correlation time: how long blocks are that are put in another order
_TOGETHER = 1 << 15  # points of surrogates that are compared at once: they stay in a processor's cache

@public_function
def lag_profile(
    x: Any,
    y: Any,
    *,
    lags: int | None = None,
    window: int | None = None,
    step: int | None = None,
    m: int = 1,
    tau: int = 1,
    radius: Any,
    metric: str = "euclidean",
    convention: str = "pyrqa",
    threshold: str = "fixed",
    normalize: str | None = None,
    radius_unit: str = "data",
    embedded: bool = False,
    n: int = 0,
    surrogate: str = "blocks",
    level: float = 0.95,
    seed: int | None = None,
    regular: str | None = None,
    progress: Progress | None = None,
    device: Device = None,
    tune: str | None = None,
) -> LagProfile:
    """Find how often two series are in the same state, one of them some rows later: who leads, and by how much.

    The rate at a lag is the share of recurrent cells on that diagonal of the cross recurrence matrix: the diagonal-wise
    recurrence profile of crqa (Dale et al., International Journal of Bifurcation and Chaos 21, 1153, 2011).

    Parameters
    ----------
    x, y : array_like, or lists of them
        A dyad: two series (n,), or of states (n, d). Lists, or mappings, are the first and the second series of several
        dyads.
    lags : int, optional
        The largest lag to either side; by default as far as all series reach.
    window, step : int, optional
        Rows of windows along each dyad that have a profile, a band and a p-value each: who leads when. ``step`` is from
        one to the next, a whole window by default; the last window is the last one that lies inside the series.
        Pseudo-dyads are of the same rows.
    m : int
        Embedding dimension: coordinates of a point, at least 1.
    tau : int
        Lag between the coordinates of a point, in steps; at least 1.
    radius : float or sequence
        One radius: by ``threshold`` in the unit of the data, a pair (inner, outer), a recurrence rate in (0, 1), or a
        number of neighbours. No Theiler window is left out.
    metric : str
        How far apart two points are: "euclidean", "maximum", "manhattan", or another row of the table "Metrics" in
        ``docs/recurrence.md``.
    convention : {"pyrqa", "accrqa", "recurrenceanalysis", "crqa", "crqa-2.1"}
        Which tool's rules for the main diagonal, the Theiler window, the threshold at equality and the denominators.
        "crqa" has those of crqa up to 2.0.7, and "crqa-2.1" its newer denominator of the recurrence rate.
    threshold : {"fixed", "corridor", "recurrence_rate", "neighbours"}
        What ``radius`` holds. "corridor": recurrent is inner < d < outer. "recurrence_rate": the smallest radius at
        which the rate is reached. "neighbours": each column has its own radius, which holds as many recurrent points
        outside the Theiler window (outside the main diagonal for theiler = 0), and more only where distances tie.
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
    embedded : bool
        Each series holds points: its columns are the coordinates themselves.
    n : int
        Surrogates of each dyad, for a band and a p-value, such as 99.
    surrogate : {"blocks", "shift", "shuffle", "pairs"}
        What is compared with x in place of y. "blocks": stretches of y, ten times as long as it stays correlated (a
        quarter of it at most), in random order, which keeps how y moves and tests that the two are in step. "shift": y
        moved by a random number of rows, its end put to its beginning: it keeps all of how y moves, but p is hardly
        below (2 lags + 1) / n_steps. "shuffle": the points of y in random order, the usual
        baseline of crqa, which any slow series exceeds. "pairs": y of other dyads (pseudo-dyads), which tests that x
        and y have more in common than what all dyads share; ``n`` at most as many as there are others.
    level : float
        Share of surrogates within the band at each lag.
    seed : int, optional
        Chooses what is random: the same seed gives the same result, whatever the device. By default a fresh one, which
        the result names.
    regular : {"insert", "ignore"}, optional
        What is done where times of rows (an index of dates or numbers, a coordinate, a time column) are not regular,
        which is refused by default. "insert" puts rows of NaN where rows are missing: ranges and masks are moved along,
        and rows of the result are those of the longer table. "ignore" takes the rows as they come. Dates whose index
        has a frequency are regular.
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
    LagProfile
        ``rate`` (dyads, lags), ``max_lag``, ``max_rate``; with surrogates ``band`` and ``p_value``.

    Raises
    ------
    InputError
        An argument cannot be used.
    DeviceNotFoundError, DeviceMemoryError

    See Also
    --------
    rqa : measures of the same matrix; its result has ``lag_profile()``, too.
    windowed_rqa : who leads when: its table has ``lag_profile()``.

    Notes
    -----
    Cost: profiles of dyads that of ``rqa_batch``; each surrogate (2 lags + 1) n m comparisons on this processor.

    Examples
    --------
    >>> import numpy as np
    >>> import pyedmcl
    >>> x = np.random.default_rng(0).standard_normal(500)
    >>> pyedmcl.lag_profile(x, np.roll(x, -2), lags=5, radius=0.1).max_lag.tolist()  # y leads
    [-2]
    """
    if seed is not None:
        seed = integer("seed", seed, 0)
    for name, side in (("x", x), ("y", y)):
        if not hasattr(side, "__len__") and not isinstance(side, Series):
            raise InputError(f"{name}={shown(side)}: a series, or a list of series, is needed")
    x, y = coded(radius, threshold, x, y, metric=metric, normalize=normalize, radius_unit=radius_unit)
    if isinstance(x, Series) and isinstance(y, Series):
        require_same_times(x=x, y=y)
    x, y = (np.squeeze(side.values, 1) if isinstance(side, Series) and side.n_series == 1 else side for side in (x, y))
    single = not isinstance(x, (list, tuple, Mapping)) or np.ndim(next(iter(_items(x)), 0)) == 0
    if single:
        require_same_times(x=x, y=y)
        x, y = [x], [y]
    windows: dict[str, tuple[Any, ...]] = {}
    if window is not None or step is not None:
        x, y, windows = _windows(x, y, window, step, single)
    try:
        batch = rqa_batch(
            x, y, m=m, tau=tau, radius=radius, metric=metric, theiler=0,
            convention=convention, threshold=threshold, normalize=normalize, radius_unit=radius_unit, embedded=embedded,
            errors="raise", device=device,
        )  # fmt: skip
    except InputError as error:  # of rqa_batch, which calls x its series
        name = "dyad" if window is None else "window"
        raise InputError(re.sub(r"^series \(series=(\d+)\)", rf"x ({name} \1)", str(error))) from None
    if batch.asked.shape[1] != 1:
        raise InputError("radius: a profile has one radius; call once for each")
    labels: Mapping[str, tuple[Any, ...]] = windows or ({} if single else batch.labels)
    found = profile_of(batch, lags, labels, batch.provenance)
    if not n:
        return found
    if threshold not in ("fixed", "recurrence_rate"):
        raise InputError(f"threshold={threshold!r}: surrogates need one radius; choose 'fixed' or 'recurrence_rate'")
    drawn = _surrogate_rates(batch, found.lags, n, surrogate, seed, windows.get("start", (0,) * len(batch.x)))
    origin = {**batch.provenance, "n": n, "surrogate": surrogate, "seed": seed}
    return LagProfile(found.rate, found.lags, labels, drawn, level, origin)


def _items(side: Any) -> Iterable[Any]:
    """The series of several dyads."""
    return side.values() if isinstance(side, Mapping) else side


def _windows(
    x: Any, y: Any, window: int | None, step: int | None, single: bool
) -> tuple[list[Any], list[Any], dict[str, tuple[Any, ...]]]:
    """Windows of dyads as dyads of their own, and which they are."""
    dyads = tuple(x) if isinstance(x, Mapping) else tuple(range(len(x)))
    sides = [[to_array(one, name) for one in _items(side)] for name, side in (("x", x), ("y", y))]
    if len(sides[0]) != len(sides[1]):
        raise InputError(f"y: {len(sides[1]):,} series, and there are {len(sides[0]):,} of x; one for each is needed")
    places: list[tuple[int, int]] = []
    for number, (one, other) in enumerate(zip(*sides, strict=True)):
        if len(one) != len(other):
            raise InputError(f"y: {len(other)} rows, and x has {len(one)}; windows of both begin together")
        along = windows_along(window, step, len(one))
        places += [(number, start) for start in along.starts]
    x, y = ([side[number][start : start + along.width] for number, start in places] for side in sides)
    labels = {} if single else {"series": tuple(dyads[number] for number, _ in places)}
    return x, y, {**labels, "start": tuple(start for _, start in places)}


def _surrogate_rates(
    batch: RqaBatch, lags: NDArray[np.int64], n: int, surrogate: str, seed: int | None, starts: tuple[int, ...]
) -> Doubles:
    """Rates (dyads, n, lags) of surrogates, each dyad by random numbers of its own; windows of others begin with it."""
    first = batch.convention.columns == "x"
    sides = (batch.x, batch.y) if first else (batch.y, batch.x)
    dyads = len(batch.x)
    fewest = min(starts.count(start) for start in set(starts)) - 1
    if surrogate == "pairs" and n > fewest:
        raise InputError(f"n={n}: surrogate='pairs' takes y of other dyads, and there are {fewest:,} others")
    x, y = ([np.ldexp(_points(side.of(at)), side.exponents[at]) for at in range(dyads)] for side in sides)
    seeds = np.random.SeedSequence(seed).spawn(dyads)
    out = np.empty((dyads, n, len(lags)))

    def of_dyad(at: int) -> None:
        rng = np.random.default_rng(seeds[at])
        radius = float(batch.used[at, 0])
        scale = -int(batch.x.exponents[at])
        own, radius = np.ldexp(x[at], scale), float(np.ldexp(radius, scale))
        drawn = [np.ldexp(other, scale) for other in _drawn(y, at, n, surrogate, rng, starts)]
        alike = len({len(other) for other in drawn}) == 1  # then all are compared at once
        step = min(max(_TOGETHER // len(drawn[0]), 1), n) if alike else 1
        for begin in range(0, n, step):
            out[at, begin : begin + step] = _rates(own, np.stack(drawn[begin : begin + step]), lags, radius, batch)

    with ThreadPoolExecutor(max_workers=min(os.cpu_count() or 1, dyads)) as pool:
        for done, _ in enumerate(pool.map(of_dyad, range(dyads)), 1):
            report_progress(done, dyads, "dyads")
    return out


def _points(points: Points) -> Doubles:
    """Points (n, coordinates), NaN where one touches a gap."""
    values = points.values.astype(np.float64)
    if points.embedded:
        return values
    return np.stack([values[e * points.tau : e * points.tau + points.n] for e in range(points.m)], axis=1)


def _drawn(
    y: list[Doubles], at: int, n: int, surrogate: str, rng: np.random.Generator, starts: tuple[int, ...]
) -> Iterator[Doubles]:
    """What stands in for the points of y[at], n times."""
    length = len(y[at])
    if surrogate == "pairs":
        others = rng.permutation([other for other in range(len(y)) if other != at and starts[other] == starts[at]])[:n]
        yield from (y[other] for other in others.tolist())
    elif surrogate == "shuffle":
        yield from (y[at][rng.permutation(length)] for _ in range(n))
    else:
        block = length if surrogate == "shift" else min(_BLOCK * correlation_time(y[at]), -(-length // 4))
        for shift in rng.integers(0, length, n).tolist():  # where the first block begins, too
            blocks = np.array_split(np.roll(np.arange(length), shift), max(length // block, 1))
            yield y[at][np.concatenate([blocks[place] for place in rng.permutation(len(blocks))])]


def _rates(x: Doubles, y: Doubles, lags: NDArray[np.int64], radius: float, batch: RqaBatch) -> Doubles:
    """The rates (series, lags) of the points x and those of several series y (series, points, coordinates), by the
    definition in float64."""
    metric, strict = metric_named(batch.x.embedding.metric.name), batch.convention.strict
    limit = metric.limit_of(np.float64(radius))
    there = [np.logical_not(np.isnan(side).any(axis=-1)) for side in (x, y)]
    gaps = not (there[0].all() and there[1].all())
    columns = [np.ascontiguousarray(np.moveaxis(side, -1, 0)) for side in (x, y)]
    n, length = len(x), y.shape[1]
    rates = np.full((len(y), len(lags)), np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        for place, lag in enumerate(lags.tolist()):
            begin, end = max(0, -lag), min(n, length - lag)
            if end <= begin:
                continue
            later = slice(begin + lag, end + lag)
            d = metric.compared(a[begin:end] - b[:, later] for a, b in zip(*columns, strict=True))
            near = np.count_nonzero(d < limit if strict else d <= limit, axis=1)
            cells: Any = end - begin
            if gaps:
                cells = np.count_nonzero(there[0][begin:end] & there[1][:, later], axis=1)
            rates[:, place] = near / cells
    return rates
