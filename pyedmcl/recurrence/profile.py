"""The lag profile of cross recurrence: how often two series are in the same state, one of them some rows later.

It is the recurrence rate of each diagonal of the cross recurrence matrix, which crqa calls the diagonal-wise recurrence
profile: where it is highest, one series leads the other by that lag.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..data.arguments import choice, integer, real, reporter
from ..errors import InputError
from ..io.fields import labelled as labelled_array
from ..io.labels import Label
from ..io.optional import need, pandas_for
from ..io.result import Result, brief
from ..jobs.function import public_function
from ..launch.progress import report_progress
from .arguments import correlation_time
from .batch import rqa_batch
from .batch_result import RqaBatch
from .categories import coded
from .common import Device, Progress
from .counts import Counts
from .metrics import metric_named
from .points import Points

Doubles = NDArray[np.float64]

SURROGATES = ("blocks", "shift", "shuffle", "pairs")
_BLOCK = 10  # times the correlation time: how long blocks are that are put in another order
_TOGETHER = 1 << 15  # points of surrogates that are compared at once: they stay in a processor's cache

@dataclass(frozen=True, eq=False, repr=False)
class LagProfile(Result):
    """Recurrence rates by lag: of a dyad, of several, or of windows.

    A positive lag compares x with y as many rows later: a peak there says that x leads and y follows.

    Attributes
    ----------
    rate : ndarray of float64 (profiles, lags)
        NaN where no pair of points without a gap is that far apart.
    lags : ndarray of int (lags,)
    labels : mapping of str to tuple
        What tells the profiles apart, a value for each.
    surrogates : ndarray of float64 (profiles, n, lags), optional
        Profiles of surrogates.
    level : float
        Share of surrogates that the band holds at each lag.
    provenance : mapping

    Examples
    --------
    >>> import numpy as np
    >>> import pyedmcl
    >>> x = np.random.default_rng(0).standard_normal(500)
    >>> y = np.roll(x, 3)  # follows three rows later
    >>> profile = pyedmcl.lag_profile(x, y, lags=10, radius=0.1, n=99, seed=1)
    >>> profile.max_lag.tolist(), profile.max_rate.round(2).tolist(), profile.p_value.tolist()
    ([3], [1.0], [0.01])
    """

    column_labels: ClassVar = {
        "lag": Label("rows", "rows by which y is later than x"),
        "rate": Label("1", "recurrent pairs of points at the lag by all such pairs"),
        "low": Label("1", "lower end of the band of surrogates"),
        "high": Label("1", "upper end of the band of surrogates"),
    }
    series_label: ClassVar = Label("", "what tells the profiles apart")

    rate: Doubles
    lags: NDArray[np.int64]
    labels: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    surrogates: Doubles | None = None
    level: float = 0.95
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.rate)

    def _facts(self) -> dict[str, str]:
        facts = {"profiles": f"{len(self):,}", "lags": f"{self.lags[0]} to {self.lags[-1]}"}
        facts |= {"max_lag": brief(self.max_lag), "max_rate": brief(self.max_rate)}
        return facts if self.surrogates is None else facts | {"p_value": brief(self.p_value)}

    @property
    def max_rate(self) -> Doubles:
        """The highest rate of each profile (maxrec of crqa)."""
        highest: Doubles = np.fmax.reduce(self.rate, axis=1)
        return highest

    @property
    def max_lag(self) -> NDArray[np.int64]:
        """The lag at which it lies (maxlag of crqa); of several the one nearest to 0."""
        nearest = np.argsort(np.abs(self.lags), kind="stable")
        rates = np.where(np.isnan(self.rate), -1.0, self.rate)[:, nearest]
        found: NDArray[np.int64] = self.lags[nearest][rates.argmax(axis=1)]
        return found

    @property
    def band(self) -> tuple[Doubles, Doubles]:
        """Lower and upper ends (profiles, lags): between them lie ``level`` of the surrogates at each lag by itself."""
        tail = (1 - self.level) / 2
        low, high = np.quantile(self._surrogates(), [tail, 1 - tail], axis=1, method="weibull")
        return low, high

    @property
    def p_value(self) -> Doubles:
        """How often the highest rate of a surrogate, at whatever lag, is as high as that of the profile: all lags are
        tested at once. (1 + such surrogates) / (1 + surrogates)."""
        highest = np.fmax.reduce(self._surrogates(), axis=2)
        reached = np.count_nonzero(highest >= self.max_rate[:, None], axis=1)
        p: Doubles = (1 + reached) / (1 + highest.shape[1])
        return p

    def mean(self) -> LagProfile:
        """The mean profile, with the mean of the first surrogates of all, of the second, ... for its band."""
        return LagProfile(
            np.nanmean(self.rate, axis=0)[None], self.lags, {},
            None if self.surrogates is None else np.nanmean(self.surrogates, axis=0)[None], self.level, self.provenance,
        )  # fmt: skip

    def to_dict(self) -> dict[str, list[Any]]:
        """Lists of labels, lags, rates and ends of the band, profile by profile."""
        times = len(self.lags)
        out = {name: [value for value in values for _ in range(times)] for name, values in self.labels.items()}
        out |= {"lag": self.lags.tolist() * len(self), "rate": self.rate.ravel().tolist()}
        if self.surrogates is not None:
            out |= {name: end.ravel().tolist() for name, end in zip(("low", "high"), self.band, strict=True)}
        return out

    def to_frame(self) -> Any:
        """A pandas DataFrame: a row for each profile and lag."""
        return pandas_for("to_frame()").DataFrame(self.to_dict())

    def to_xarray(self) -> Any:
        """An xarray.Dataset with ``rate``, ``low`` and ``high`` over (profile, lag)."""
        names = list(range(len(self)))
        arrays = {"rate": self.rate}
        if self.surrogates is not None:
            arrays |= dict(zip(("low", "high"), self.band, strict=True))
        axes = [("profile", names), ("lag", self.lags)]
        made = {name: labelled_array(values, axes, name) for name, values in arrays.items()}
        return need("xarray", "to_xarray()").Dataset(made)

    def plot(self, path: str | None = None) -> Any:
        """The profile with its band; of several profiles, their mean. Saved to ``path`` if given. Needs matplotlib."""
        from ..plot.recurrence import lag_curve

        return lag_curve(self if len(self) == 1 else self.mean(), path, several=len(self))

    def _surrogates(self) -> Doubles:
        if self.surrogates is None:
            raise InputError("n=99 or another number of surrogates is needed for a band and a p-value")
        return self.surrogates


def profile_of(
    matrices: Sequence[Any], lags: Any, labels: Mapping[str, tuple[Any, ...]], provenance: Mapping[str, Any]
) -> LagProfile:
    """The lag profiles of counted matrices, which need not be of two series.

    Parameters
    ----------
    matrices : sequence of RecurrenceResult
    lags : int, optional
        As for :func:`lag_profile`; by default as far as all matrices reach.
    """
    reach = min(min(one.counts.n_rows, one.counts.n_columns) for one in matrices) - 1
    most = reach if lags is None else integer("lags", lags, 0, "the largest lag to either side", most=reach)
    rates = np.array([_rates_of(one.counts, one, most) for one in matrices])
    return LagProfile(rates, np.arange(-most, most + 1), labels, provenance=provenance)


def _rates_of(counts: Counts, result: Any, most: int) -> Doubles:
    from .cells import cells_by_offset

    middle = counts.n_rows - 1
    place = slice(middle - most, middle + most + 1)
    cells = cells_by_offset(*result.complete)[place]
    with np.errstate(invalid="ignore", divide="ignore"):
        rates: Doubles = np.where(cells > 0, counts.per_diagonal[place] / cells, np.nan)
    # Diagonals are counted by column - row, and columns are points of x, unless the convention has them otherwise.
    return rates[::-1] if result.convention.columns == "x" else rates


@public_function
def lag_profile(
    x: Any,
    y: Any,
    *,
    lags: int | None = None,
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
    m, tau, radius, metric, convention, threshold, normalize, radius_unit, embedded, device, tune
        As for :func:`pyedmcl.rqa`, with one radius. No Theiler window is left out.
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
        Of random numbers.
    progress : callable or True, optional
        Called as ``progress(done, total, "dyads")``.

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
    reporter(progress, "dyads")
    n = integer("n", n, 0, "the number of surrogates")
    surrogate = choice("surrogate", surrogate, SURROGATES)
    level = real("level", level, "a number in (0, 1)", lambda share: 0 < share < 1)
    if seed is not None:
        seed = integer("seed", seed, 0)
    x, y = coded(radius if threshold == "fixed" else 0.5, x, y)
    single = not isinstance(x, (list, tuple, Mapping)) or np.ndim(next(iter(x), 0)) == 0
    batch = rqa_batch(
        [x] if single else x, [y] if single else y, m=m, tau=tau, radius=radius, metric=metric, theiler=0,
        convention=convention, threshold=threshold, normalize=normalize, radius_unit=radius_unit, embedded=embedded,
        errors="raise", device=device,
    )  # fmt: skip
    if batch.asked.shape[1] != 1:
        raise InputError("radius: a profile has one radius; call once for each")
    labels: Mapping[str, tuple[Any, ...]] = {} if single else batch.labels
    found = profile_of(batch, lags, labels, batch.provenance)
    if not n:
        return found
    if threshold not in ("fixed", "recurrence_rate"):
        raise InputError(f"threshold={threshold!r}: surrogates need one radius; choose 'fixed' or 'recurrence_rate'")
    drawn = _surrogate_rates(batch, found.lags, n, surrogate, seed)
    origin = {**batch.provenance, "n": n, "surrogate": surrogate, "seed": seed}
    return LagProfile(found.rate, found.lags, labels, drawn, level, origin)


def _surrogate_rates(
    batch: RqaBatch, lags: NDArray[np.int64], n: int, surrogate: str, seed: int | None
) -> Doubles:
    """Rates (dyads, n, lags) of surrogates, each dyad by random numbers of its own."""
    first = batch.convention.columns == "x"
    sides = (batch.x, batch.y) if first else (batch.y, batch.x)
    dyads = len(batch.x)
    if surrogate == "pairs" and n > dyads - 1:
        raise InputError(f"n={n}: surrogate='pairs' takes y of other dyads, and there are {dyads - 1:,} others")
    x, y = ([np.ldexp(_points(side.of(at)), side.exponents[at]) for at in range(dyads)] for side in sides)
    seeds = np.random.SeedSequence(seed).spawn(dyads)
    out = np.empty((dyads, n, len(lags)))

    def of_dyad(at: int) -> None:
        rng = np.random.default_rng(seeds[at])
        radius = float(batch.used[at, 0])
        scale = -int(batch.x.exponents[at])
        own, radius = np.ldexp(x[at], scale), float(np.ldexp(radius, scale))
        drawn = [np.ldexp(other, scale) for other in _drawn(y, at, n, surrogate, rng)]
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
    y: list[Doubles], at: int, n: int, surrogate: str, rng: np.random.Generator
) -> Iterator[Doubles]:
    """What stands in for the points of y[at], n times."""
    length = len(y[at])
    if surrogate == "pairs":
        others = rng.permutation(np.delete(np.arange(len(y)), at))[:n]
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
