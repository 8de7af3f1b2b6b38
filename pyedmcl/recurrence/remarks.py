"""What is worth knowing of a matrix that was counted: nearly empty or full, another rate than was asked for.

Each is told once in a call, by :class:`pyedmcl.errors.RecurrenceWarning`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arguments import some
from ..errors import ConstantSeriesWarning, RecurrenceWarning, warn
from ..series.series import Series
from .measures import Measures

_FEW, _MANY = 0.001, 0.5  # shares of cells that recur: below and above, lines say little of the dynamics
_NEAR = 1.1  # times the rate that was asked for; more is told
_FAR = 100  # times the range of the middle half of the values, within which all of them lie as a rule


def tell(
    results: Sequence[Measures], threshold: str, wanted: Sequence[Any], series: Sequence[NDArray[Any]] = (),
    names: Sequence[str] = (),
) -> None:
    """Warn of matrices in which too little or too much recurs, of rates that cannot be had, and of smooth series.

    Parameters
    ----------
    wanted : sequence
        What was asked for of each: a radius, a rate, a number of neighbours.
    series : sequence of ndarray (n_steps, n_series)
        What was compared, to find values far from all others.
    names : sequence of str
        What messages call each matrix, where they are of several series.
    """
    if threshold != "neighbours" and results:
        shares, rates = (
            np.array([of(one) for one in results]) for of in (off_diagonal_rate, lambda one: one.recurrence_rate)
        )
        smooth = np.array([_smooth(one) for one in results])
        found = Found(shares, rates, smooth, [one.radius for one in results], results[0].theiler)
        _tell(found, threshold, wanted, series, names)


def tell_of_batch(batch: Any, threshold: str, names: Sequence[str]) -> None:
    """The same of an ``RqaBatch``, whose series are called ``names``."""
    if threshold == "neighbours":
        return
    counts, symmetric, width = batch.counts, batch.x is batch.y, max(batch.theiler, 1)
    cells = counts.sizes[:, 0] * counts.sizes[:, 1]
    points = counts.sums[:, 0].astype(np.int64)
    smooth = np.zeros(len(cells), bool)
    if symmetric:
        first = counts.diagonal_begins[:-1] if counts.halved else counts.diagonal_begins[:-1] + counts.sizes[:, 0] - 1
        points, cells = points - counts.diagonals[first].astype(np.int64), cells - counts.sizes[:, 0]
        length = counts.sizes[:, 0] - width
        smooth = (length > 1) & (counts.diagonals[first + width] == length) & (batch.used.ndim == 2)
    shares = (points / np.maximum(cells, 1))[batch.places]
    for row in batch.rows_with_gaps:
        shares[row] = off_diagonal_rate(batch[row])
    times = batch.asked.shape[1]
    shares[np.isin(np.arange(len(batch)) // times, list(batch.failed))] = np.nan
    radii = list(batch.used.reshape(len(batch), -1)[:, -1])
    rates = batch.measure("RR")
    found = Found(shares, rates, smooth[batch.places], radii, batch.theiler)
    _tell(found, threshold, batch.asked.reshape(len(batch), -1)[:, 0], [], Repeated(names, times))


class Repeated:
    """Names of series, by the rows of a batch."""

    def __init__(self, names: Sequence[str], times: int) -> None:
        self._names, self._times = names, times

    def __len__(self) -> int:
        return len(self._names) * self._times

    def __getitem__(self, row: int) -> str:
        return self._names[row // self._times]


class Found(NamedTuple):
    """What is looked at of each matrix."""

    # shares, rates: Recurrent cells off the main diagonal by such cells, and recurrence rates as the convention has
    # them.
    shares: NDArray[np.float64]
    rates: NDArray[np.float64]
    # All cells of the diagonal next to the Theiler window recur.
    smooth: NDArray[np.bool_]
    radii: Sequence[Any]
    theiler: int


def _tell(
    found: Found, threshold: str, wanted: Sequence[Any], series: Sequence[NDArray[Any]], names: Any
) -> None:
    if threshold == "recurrence_rate":
        tell_rates(found.rates, np.array(wanted), found.shares, found.radii, names)
    else:
        tell_shares(found.shares, found.radii, series, names)
    smooth = np.flatnonzero(found.smooth & (found.shares <= _MANY))
    if smooth.size:
        warn(
            f"{_of(smooth, names)}the diagonal next to the Theiler window of {found.theiler} recurs all along, and is "
            "the longest line (Lmax): successive points of a smooth series are nearer than the radius, whatever comes "
            "back. theiler='auto' leaves out as many diagonals as the series stays correlated", RecurrenceWarning,
        )  # fmt: skip


def tell_of_links(share: float, rate: float, radius: Any, threshold: str, wanted: Any, given: NDArray[Any]) -> None:
    """The same of a network, or of a plot, of which nothing but the share of recurrent pairs is known."""
    found = Found(np.array([share]), np.array([rate]), np.zeros(1, bool), [radius], 1)
    if threshold != "neighbours":
        _tell(found, threshold, [wanted], [given], ())


def tell_shares(
    shares: NDArray[np.float64], radii: Sequence[Any], series: Sequence[NDArray[Any]], names: Sequence[str]
) -> None:
    """Warn of shares of recurrent cells below 0.1 % or above 50 %, main diagonals left out."""
    instead = "Try threshold='recurrence_rate' with radius=0.05, or radius_unit='std' with radius=0.2"
    few, many = (np.flatnonzero(which) for which in (shares < _FEW, shares > _MANY))
    too_small = "the radius is too small for lines"
    too_large = f"The radius is too large (one in per cent is given as a share, 0.25 for 25 %). {instead}"
    if _only_equal(series, radii):
        too_small, instead = "there are hardly any lines", "Only equal ones recur; join categories that mean the same"
        too_large = "Only equal ones recur: if one that occurs often stands for nothing, make it a gap"
    if few.size:
        at = int(few[0])
        warn(
            f"{_of(few, names)}{shares[at]:.2g} of the pairs recur at radius {_radius(radii[at])}, less than 0.1 %: "
            f"{too_small}, and what follows from the few that are left says little. {instead}", RecurrenceWarning,
        )  # fmt: skip
    if many.size:
        at = int(many[0])
        warn(
            f"{_of(many, names)}{shares[at]:.4g} of the pairs recur at radius {_radius(radii[at])}, more than 50 %: "
            f"nearly all cells are on lines, whatever the dynamics are{_stray(series)}. {too_large}", RecurrenceWarning,
        )  # fmt: skip


def _only_equal(series: Sequence[NDArray[Any]], radii: Sequence[Any]) -> bool:
    """Whether only equal values recur: codes of categories, or other whole numbers."""
    nearer = all(not isinstance(radius, tuple) and radius < 1 for radius in radii)
    return bool(len(series)) and nearer and all(
        bool((np.isnan(one) | (one == np.rint(one))).all()) for one in series
    )  # fmt: skip


def tell_rates(
    rates: NDArray[np.float64], wanted: NDArray[np.float64], shares: NDArray[np.float64], radii: Sequence[Any],
    names: Sequence[str],
) -> None:  # fmt: skip
    """Warn of recurrence rates that no radius gives, since many pairs are equal or have the same distance."""
    over = np.flatnonzero(rates > _NEAR * wanted)
    if not over.size:
        return
    at = int(over[0])
    within = f", or no farther apart than {_radius(radii[at])}" if radii[at] else ""
    why = f"{100 * shares[at]:.3g} % of the pairs are equal{within}" if shares[at] else "the main diagonal has as many"
    warn(
        f"{_of(over, names)}{why}: no radius gives the recurrence rate {wanted[at]:g}, and the next one is "
        f"{rates[at]:.4g}", RecurrenceWarning,
    )  # fmt: skip


def off_diagonal_rate(result: Measures) -> float:
    """The share of recurrent cells; of one series with itself, of those off the main diagonal."""
    counts = result.counts
    rows, columns = (int(np.count_nonzero(side)) for side in result.complete)
    points, cells = counts.points, rows * columns
    if result.symmetric:
        points, cells = points - int(counts.per_diagonal[counts.n_rows - 1]), cells - rows
    return points / cells if cells else 0.0


def tell_constant_series(what: str, series: Series, lack: str) -> None:
    """Warn of series that never change, and say what therefore means nothing."""
    if series.constant:
        names = tuple(what if series.names == ("x0",) else name for name in series.constant)
        warn(f"constant series, which have no {lack}: {some(names)}", ConstantSeriesWarning)


def _smooth(result: Measures) -> bool:
    """Whether all cells of the first diagonal outside the Theiler window recur."""
    counts, width = result.counts, max(result.theiler, 1)
    if not result.symmetric or not result.complete[0].all() or isinstance(result.radius, tuple):
        return False
    cells = counts.n_rows - width
    return cells > 1 and int(counts.per_diagonal[counts.n_rows - 1 + width]) == cells


def _of(which: Any, names: Sequence[str]) -> str:
    """Which matrices, at the beginning of a sentence."""
    return f"{some(tuple(names[int(at)] for at in which))}: " if len(names) else ""


def _radius(radius: Any) -> str:
    return ", ".join(f"{part:.4g}" for part in radius) if isinstance(radius, tuple) else f"{radius:.4g}"


def _stray(series: Sequence[NDArray[Any]]) -> str:
    """A word of values far from all others, by which a scale is measured."""
    for one in series:
        for column in np.asarray(one, np.float64).T:
            present = column[~np.isnan(column)]
            if not present.size:
                continue
            low, middle_low, middle_high, high = np.quantile(present, [0, 0.25, 0.75, 1])
            if middle_high > middle_low and high - low > _FAR * (middle_high - middle_low):
                row = int(np.nanargmax(np.abs(column - np.median(present))))
                return (
                    f". Row {row} holds {column[row]:g}, and half of the values lie between {middle_low:g} and "
                    f"{middle_high:g}, as a code or a header does"
                )
    return ""
