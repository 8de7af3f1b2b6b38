"""Many series as one array: where each begins, and how many points it has."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.condition import exponent_of, largest
from ..errors import InputError
from .points import NEAR_ONE, Embedding, Points, points_of
from .units import Spread, normalized, spread

Ints = NDArray[np.int64]

_LARGEST = 2.0**1020  # as in data/series.py
_ROOM = 64  # values that a device reads behind a series, without keeping what follows from them


@dataclass(frozen=True, eq=False)
class Side:
    """Points of one side of many matrices: columns (x) or rows (y).

    Attributes
    ----------
    values : ndarray (planes, values)
        Series one behind the other, in one plane where their points are made of lags; else a plane for each
        coordinate. NaN where a point touches a gap. Times ``2**-exponent`` those of the data. Behind the last series
        there may be more that are NaN.
    begins, points : ndarray (series,)
        Where each begins, and how many points it has.
    largest : ndarray (series,)
        The largest magnitude of each series of the data.
    embedding : Embedding
    spreads : Spread or None
        Fields (series, columns) of the values that are compared, in the unit of the data, where radii need them.
    exponents : ndarray of int (series,)
    """

    values: NDArray[np.float64]
    begins: Ints
    points: Ints
    largest: NDArray[np.float64]
    embedding: Embedding
    spreads: Spread | None
    exponents: Ints

    def __len__(self) -> int:
        return len(self.begins)

    def described(self) -> dict[str, Any]:
        """For provenance: the digest is that of the values that are compared, normalised if they are."""
        values = self.values[:, : int((self.begins + self.points).max()) + self.lag]
        digest = hashlib.sha256(np.ascontiguousarray(values).view(np.uint8).data).hexdigest()
        return {"file": None, "rows": int(self.points.sum()), "series": len(self), "digest": digest}

    @property
    def embedded(self) -> bool:
        """Each coordinate has a plane."""
        return len(self.values) > 1 or self.embedding.metric.prepare is not None or self.embedding.embedded

    @property
    def coordinates(self) -> int:
        return len(self.values) if self.embedded else self.embedding.m

    @property
    def lag(self) -> int:
        """Values of a series behind its last point's first coordinate."""
        return 0 if self.embedded else (self.embedding.m - 1) * self.embedding.tau

    @classmethod
    def of_points(cls, points: Points) -> Side:
        """A side of one series."""
        planes = points.values.T if points.embedded else points.values[None]
        return cls(
            np.ascontiguousarray(planes, np.float64), np.zeros(1, np.int64), np.array([points.n]),
            np.array([np.ldexp(largest(planes), points.exponent)]),
            points.embedding, None, np.array([points.exponent]),
        )  # fmt: skip

    def of(self, number: int) -> Points:
        """The points of one series."""
        begin, n = int(self.begins[number]), int(self.points[number])
        values = self.values[:, begin : begin + n + self.lag]
        present = np.logical_not(np.isnan(values).any(axis=0))
        complete = present[:n].copy()
        e = self.embedding
        if self.embedded:
            return Points(
                np.ascontiguousarray(values.T), 1, 1, True, len(values), complete, e, values.T,
                int(self.exponents[number]),
            )  # fmt: skip
        for lag in range(e.tau, self.lag + 1, e.tau):
            complete &= present[lag : lag + n]
        return Points(
            np.ascontiguousarray(values[0]), e.m, e.tau, False, e.m, complete, e, values.T, int(self.exponents[number])
        )

    def complete(self, number: int) -> NDArray[np.bool_]:
        """Which points of a series have no gap."""
        return self.of(number).complete

    def gaps(self) -> NDArray[np.bool_]:
        """Which series have a gap."""
        missing = np.flatnonzero(np.isnan(self.values).any(axis=0))
        ends = self.begins + self.points + self.lag
        touched: NDArray[np.bool_] = np.searchsorted(missing, self.begins) < np.searchsorted(missing, ends)
        return touched

    def windows(self, starts: Ints, size: int) -> Side:
        """Windows of ``size`` points as series of their own, which share their scale."""
        n = len(starts)
        return Side(
            self.values, self.begins[0] + starts, np.full(n, size), np.repeat(self.largest, n), self.embedding, None,
            np.repeat(self.exponents, n),
        )  # fmt: skip

    def piece(self, series: Ints) -> tuple[NDArray[np.float64], Ints]:
        """What a device needs of some series: their values with room to read past the last one, and where each
        begins."""
        begins, ends = self.begins[series], self.begins[series] + self.points[series] + self.lag
        room = _ROOM + self.lag
        first, last = int(begins.min()), int(ends.max())
        if last - first <= 2 * int((ends - begins).sum()):
            if len(self.values) == 1 and last + room <= self.values.shape[1]:
                return self.values[:, first : last + room], begins - first
            values = np.empty((len(self.values), last - first + room))
            values[:, : last - first] = self.values[:, first:last]
            begins = begins - first
        else:
            lengths = ends - begins
            values = np.empty((len(self.values), int(lengths.sum()) + room))
            placed = np.concatenate([[0], np.cumsum(lengths)])
            for begin, end, to in zip(begins.tolist(), ends.tolist(), placed.tolist(), strict=False):
                values[:, to : to + end - begin] = self.values[:, begin:end]
            begins = placed[:-1]
        values[:, -room:] = np.nan
        return values, begins


def side_of(series: Sequence[Any], names: Sequence[str], embedding: Embedding, *, measured: bool = False) -> Side:
    """All series of one side.

    Parameters
    ----------
    series : sequence
        Each (n,) or (n, d), as x of :func:`pyedmcl.rqa`; or a single array (series, n).
    names : sequence of str
        How messages call each.
    embedding : Embedding
    measured : bool
        Spreads are needed.

    Raises
    ------
    InputError
        As for :func:`pyedmcl.recurrence.points.points_of`, with the name of the series.
    """
    if embedding.metric.prepare is None:
        plain = _plain(series, _ROOM + (embedding.m - 1) * embedding.tau)
        if plain is not None:
            return _side_of_values(plain, _lengths(series), names, embedding, measured)
    points = [points_of(one, name, embedding) for one, name in zip(series, names, strict=True)]
    return _side_of_points(points, names, measured)


def _lengths(series: Any) -> Ints:
    if isinstance(series, np.ndarray):
        return np.full(len(series), series.shape[1])
    return np.array([len(one) for one in series])


def _plain(series: Any, room: int) -> NDArray[np.float64] | None:
    """All values of series (n,), with ``room`` NaN behind them; None where some are no such arrays."""
    one_array = isinstance(series, np.ndarray)
    if not one_array and not all(
        isinstance(one, np.ndarray) and one.ndim == 1 and one.dtype.kind in "fiu" for one in series
    ):
        return None
    n = series.size if one_array else int(_lengths(series).sum())
    out = np.empty(n + room)
    if one_array:
        out[:n].reshape(series.shape)[...] = series
    else:
        np.concatenate(series, out=out[:n], casting="unsafe")
    out[n:] = np.nan
    return out


def _side_of_values(
    values: NDArray[np.float64], lengths: Ints, names: Sequence[str], embedding: Embedding, measured: bool
) -> Side:
    lag = (embedding.m - 1) * embedding.tau
    begins = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64)

    def refuse_first(wrong: NDArray[np.bool_]) -> None:
        for number in np.flatnonzero(wrong)[:1]:  # which says what is wrong with it
            points_of(values[begins[number] : begins[number] + lengths[number]], names[number], embedding)

    refuse_first(lengths < lag + 2)
    most = np.empty(len(lengths))
    for rows, table in _tables(values, begins, lengths):
        most[rows] = _magnitudes(table)
    refuse_first(most > _LARGEST)
    fields = np.empty((4, len(lengths), 1))
    if embedding.normalize is not None or measured:
        for rows, table in _tables(values, begins, lengths):
            if embedding.normalize is not None:
                table = normalized(table, embedding.normalize)
                values[begins[rows][:, None] + np.arange(table.shape[1])] = table
                most[rows] = _magnitudes(table)
            if measured:
                fields[:, rows, 0] = spread(table)
    return Side(
        values[None], begins, lengths - lag, most, embedding, Spread(*fields) if measured else None,
        np.zeros(len(lengths), int),
    )  # fmt: skip


def _tables(values: NDArray[np.float64], begins: Ints, lengths: Ints) -> Iterator[tuple[Ints, NDArray[np.float64]]]:
    """Series of one length as rows of a matrix, and which they are."""
    for length in np.unique(lengths):
        rows = np.flatnonzero(lengths == length)
        if len(rows) == len(lengths):
            yield rows, values[: len(rows) * length].reshape(len(rows), -1)
        else:
            yield rows, values[begins[rows][:, None] + np.arange(length)]


def _magnitudes(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """The largest magnitude of each row."""
    magnitude: NDArray[np.float64] = np.fmax(np.fmax.reduce(table, axis=1), -np.fmin.reduce(table, axis=1))
    return magnitude


def _side_of_points(points: list[Points], names: Sequence[str], measured: bool) -> Side:
    for name, one in zip(names, points, strict=True):
        if one.coordinates != points[0].coordinates:
            raise InputError(
                f"{name}: its points have {one.coordinates} coordinates, and those of {names[0]} have "
                f"{points[0].coordinates}; series of one batch need the same number"
            )
    planes = [one.values.T if one.embedded else one.values[None] for one in points]
    lengths = np.array([plane.shape[1] for plane in planes])
    spreads = [spread(np.ascontiguousarray(one.given.T)) for one in points] if measured else []
    most = [largest(plane) for plane in planes]
    return Side(
        np.ascontiguousarray(np.concatenate(planes, axis=1, dtype=np.float64)),
        np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64), np.array([one.n for one in points]),
        np.array(most), points[0].embedding,
        Spread(*(np.stack(of) for of in zip(*spreads, strict=True))) if measured else None, np.zeros(len(points), int),
    )  # fmt: skip


def near_one(arithmetic: str, *sides: Side) -> tuple[Side, ...]:
    """Sides whose squares are numbers of ``arithmetic``, as :func:`pyedmcl.recurrence.points.near_one` of each pair."""
    least, most = NEAR_ONE[arithmetic]
    magnitudes = np.fmax.reduce([side.largest for side in sides])
    if not ((magnitudes > 0.5) & (magnitudes < 2.0**40)).all():  # else no exponent is beyond the limits
        magnitude_exponents = np.array([exponent_of(magnitude) for magnitude in magnitudes.tolist()])
        exponents = np.where((magnitude_exponents < least) | (magnitude_exponents > most), magnitude_exponents, 0)
    else:
        exponents = np.zeros(len(magnitudes), int)
    for side in {id(side): side for side in sides}.values():
        for number in np.flatnonzero(exponents):
            begin = side.begins[number]
            end = begin + side.points[number] + side.lag
            side.values[:, begin:end] = np.ldexp(side.values[:, begin:end], -exponents[number])
    return tuple(replace(side, exponents=exponents) for side in sides)
