"""Recordings that stand one below the other: which rows belong together, and how they are kept apart.

Rows of different groups never share a state, a target or an exclusion radius. There is one mechanism for that: a
:class:`Layout` puts the rows of each group one behind the other, with gaps (NaN) between groups that are longer than
any lag, horizon or radius. All that follows knows gaps, and nothing of groups.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, warn
from .arguments import MOST_STEPS
from .columns import many, some
from .series import Series

Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Groups:
    """The group of each row.

    Attributes
    ----------
    codes : ndarray of int64 (n_steps,)
        Number of the group that a row belongs to, by first appearance.
    labels : tuple
        Label of each group.
    keys : tuple of str
        Columns or levels that the labels are from; empty where they were given.
    """

    codes: Rows
    labels: tuple[Any, ...]
    keys: tuple[str, ...] = ()

    @cached_property
    def sizes(self) -> Rows:
        """Rows of each group."""
        return np.bincount(self.codes, minlength=len(self.labels)).astype(np.int64)

    @cached_property
    def names(self) -> NDArray[Any]:
        """Labels as numbers or text; those of several columns have colons between them."""
        numbers = all(isinstance(label, (int, float)) for label in self.labels)
        return np.array(self.labels if numbers else [_text(label) for label in self.labels])

    def require(self, n_steps: int, what: str) -> None:
        """Refuse data that have another number of rows."""
        if n_steps != len(self.codes):
            raise InputError(
                f"groups has {len(self.codes):,} labels and {what} {n_steps:,} rows: one for each row is needed"
            )

    def layout(self, *, E: int, tau: int, Tp: Collection[int], exclusion_radius: int = 0) -> Layout:
        """Rows group by group with gaps between them.

        Parameters
        ----------
        E : int
            The largest embedding dimension.
        tau : int
        Tp : collection of int
            All prediction intervals.
        exclusion_radius : int

        Raises
        ------
        InputError
            No group has rows enough for a state and its target.

        Warns
        -----
        RuntimeWarning
            Some groups have too few rows, and take no part.
        """
        lost = max((E - 1) * tau + max(0, *Tp), -min(0, *Tp))
        self._tell_short(lost + 1, f"E={E}, tau={tau}, Tp={', '.join(map(str, sorted(set(Tp))))}")
        longest = int(self.sizes.max())
        radius = min(exclusion_radius, longest - 1)  # a longer one bars no more rows of a group
        # A state whose lags are tau apart cannot step over tau rows.
        gap = max(tau if E > 1 else min(tau, longest), *(abs(lag) for lag in Tp), radius, 1)
        total = len(self.codes) + gap * (len(self.labels) - 1)
        if total > MOST_STEPS:
            raise InputError(
                f"groups: {len(self.labels):,} groups with gaps of {gap:,} rows between them are {total:,} rows; at "
                f"most {MOST_STEPS:,} are supported"
            )
        order = np.argsort(self.codes, kind="stable")
        place = np.arange(len(order)) + gap * self.codes[order]
        rows = np.full(total, -1, np.int64)
        rows[place] = order
        return Layout(self, rows, gap, radius)

    def _tell_short(self, needed: int, wanted: str) -> None:
        short = np.flatnonzero(self.sizes < needed)
        if not len(short):
            return
        named = some([f"{self.names[i]} ({many(int(self.sizes[i]), 'row')})" for i in short])
        said = f"{wanted} needs {needed:,} rows of a group, and there are fewer in {named}"
        if len(short) == len(self.labels):
            raise InputError(f"groups: {said}, so that no group is left; use a smaller E or tau, or longer groups")
        warn(f"groups: {said}: they hold no state with a target")


@dataclass(frozen=True, eq=False)
class Layout:
    """Rows of groups, one group behind the other, with gaps between them.

    Attributes
    ----------
    groups : Groups
    rows : ndarray of int64 (n,)
        Row of the data at each place; -1 for a gap.
    gap : int
        Rows between two groups.
    exclusion_radius : int
        The radius that was asked for, as short as it may be without letting another row be a neighbour.
    """

    groups: Groups
    rows: Rows
    gap: int
    exclusion_radius: int

    @cached_property
    def there(self) -> Mask:
        """Places (n,) that hold a row of the data."""
        return self.rows >= 0

    @cached_property
    def order(self) -> Rows:
        """Place (n_steps,) of each row of the data."""
        return np.flatnonzero(self.there)[np.argsort(self.rows[self.there], kind="stable")]

    @cached_property
    def code(self) -> Rows:
        """Group of each place (n,); -1 for a gap."""
        return np.where(self.there, self.groups.codes[np.maximum(self.rows, 0)], -1)

    @cached_property
    def step(self) -> Rows:
        """How many rows of its group come before each place (n,)."""
        sizes = self.groups.sizes
        begins = np.concatenate([[0], np.cumsum(sizes[:-1] + self.gap)])
        return np.where(self.there, np.arange(len(self.rows)) - begins[np.maximum(self.code, 0)], -1)

    def series(self, series: Series, what: str = "data") -> Series:
        """The series with gaps between groups; InputError where they have another number of rows."""
        self.groups.require(series.n_steps, what)
        values = np.full((len(self.rows), series.n_series), np.nan, series.values.dtype)
        values[self.there] = series.values[self.rows[self.there]]
        return Series(values, series.names, grid=series.grid)

    def column(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values (n_steps,) of the rows at their places; NaN in gaps."""
        out = np.full(len(self.rows), np.nan, values.dtype)
        out[self.there] = values[self.rows[self.there]]
        return out

    def mask(self, mask: Mask) -> Mask:
        """A mask of rows as one of places; False in gaps."""
        out = np.zeros(len(self.rows), bool)
        out[self.there] = mask[self.rows[self.there]]
        return out

    def segments(self, segments: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """Ranges of rows as ranges of places: a part for each group that a range reaches."""
        parts = []
        for begin, end in segments:
            inside = np.flatnonzero((self.rows >= begin) & (self.rows < end))
            ends = np.flatnonzero(np.diff(self.code[inside])) + 1
            parts += [(int(part[0]), int(part[-1]) + 1) for part in np.split(inside, ends)]
        return sorted(parts)

    def embedded(self, places: Rows, first: int) -> Mask:
        """Which of some places hold a row with at least ``first`` rows of its group before it."""
        return np.asarray(self.step[places] >= first)


@dataclass(frozen=True, eq=False)
class Entries:
    """Which predictions a result shows, and of what.

    Attributes
    ----------
    kept : ndarray of bool, or slice
        Those of the predicted rows that are shown: of groups, none in the gaps between them.
    time : ndarray of int
        The row that is predicted; of groups, counted within the group.
    group : ndarray of numbers or text, or None
        Label of the group.
    """

    kept: Any
    time: Rows
    group: NDArray[Any] | None

    @classmethod
    def of(cls, rows: Rows, Tp: int, first: int, layout: Layout | None) -> Entries:
        """Entries of predictions made at ``rows``, the first of which has ``first`` rows before it."""
        if layout is None:
            return cls(slice(None), rows + Tp, None)
        kept = layout.embedded(rows, first)
        places = rows[kept]
        return cls(kept, layout.step[places] + Tp, layout.groups.names[layout.code[places]])


def _text(label: Any) -> str:
    return ":".join(map(_text, label)) if isinstance(label, tuple) else str(label)
