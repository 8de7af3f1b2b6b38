"""Counts, lines and measures of many matrices side by side."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arguments import Convention
from .counts import TREND_BORDER, Counts, cells_of_both_sides, cells_within, moments, trimmed
from .measures import short_name

# Lines of one kind in many matrices, side by side.


Ints = NDArray[np.int64]


class LinesOfMany:
    """Lines of one kind in many matrices.

    Parameters
    ----------
    order : ndarray (matrices,)
        Matrices as their lines lie one behind the other.
    begins, ends : ndarray (matrices,)
        Where the lines of each matrix are.
    lengths, numbers : ndarray (all lengths,)
        Lengths, ascending within a matrix, and how many such lines there are.
    """

    def __init__(self, order: Ints, begins: Ints, ends: Ints, lengths: Ints, numbers: Ints) -> None:
        self.order, self.begins, self.ends, self.lengths, self.numbers = order, begins, ends, lengths, numbers

    def from_length(self, least: int) -> LinesOfMany:
        """Those of at least ``least``."""
        if least <= 1:
            return self
        kept = self.lengths >= least
        before = _sums_before(kept)
        return LinesOfMany(self.order, before[self.begins], before[self.ends], self.lengths[kept], self.numbers[kept])

    @cached_property
    def points(self) -> Ints:
        """Cells on the lines of each matrix."""
        before = _sums_before(self.numbers * self.lengths)
        return before[self.ends] - before[self.begins]

    @cached_property
    def count(self) -> Ints:
        """Lines of each matrix."""
        before = _sums_before(self.numbers)
        return before[self.ends] - before[self.begins]

    @cached_property
    def longest(self) -> Ints:
        """Length of the longest line of each matrix; 0 where there is none."""
        return np.where(self.ends > self.begins, np.append(self.lengths, 0)[self.ends - 1], 0)

    def with_line(self, lengths: Ints) -> LinesOfMany:
        """With another line in each matrix, which is longer than all there are."""
        places = np.empty(len(self.order), np.int64)
        places[self.order] = np.arange(len(self.order))
        at = self.ends[self.order]
        return LinesOfMany(
            self.order, self.begins + places, self.ends + places + 1,
            np.insert(self.lengths, at, lengths[self.order]), np.insert(self.numbers, at, 1),
        )  # fmt: skip

    def joined(self, other: LinesOfMany, width: int, cells: int = 1 << 18) -> LinesOfMany:
        """With the lines of another kind of the same matrices; all are shorter than ``width``.

        ``cells`` numbers are looked at together, so that they stay in a cache.
        """
        step, numbers, lengths = max(cells // width, 1), [], []
        begins, ends, done = np.empty_like(self.begins), np.empty_like(self.ends), 0
        for first in range(0, len(self.order), step):
            mine = self.order[first : first + step]
            rows = np.arange(len(mine)) * width
            table = np.zeros((len(mine), width), np.int64)
            flat = table.reshape(-1)
            for lines in (self, other):
                here = slice(lines.begins[mine[0]], lines.ends[mine[-1]])
                at = np.repeat(rows, lines.ends[mine] - lines.begins[mine]) + lines.lengths[here]
                flat[at] += lines.numbers[here]  # a length occurs once
            places = np.flatnonzero(flat)
            many = np.count_nonzero(table, axis=1)
            numbers.append(flat[places])
            lengths.append(places - np.repeat(rows, many))
            ends[mine] = done + np.cumsum(many)
            begins[mine] = ends[mine] - many
            done += len(places)
        return LinesOfMany(self.order, begins, ends, np.concatenate(lengths), np.concatenate(numbers))

    def entropy(self) -> NDArray[np.float64]:
        """As :func:`pyedmcl.recurrence.counts.entropy`."""
        many = self.ends - self.begins
        out = np.full(len(many), np.nan)
        for width in np.unique(many[many > 0]):
            rows = np.flatnonzero(many == width)
            numbers = self.numbers[self.begins[rows][:, None] + np.arange(width)]
            p = numbers / numbers.sum(axis=1)[:, None]
            out[rows] = -(p * np.log(p)).sum(axis=1) + 0.0
        return out


def _sums_before(values: NDArray[np.integer] | NDArray[np.bool_]) -> Ints:
    """Of each place, and of the end: the sum of all values before it."""
    out = np.zeros(len(values) + 1, np.int64)
    np.cumsum(values, out=out[1:])
    return out


#: Kinds of lines in the order of the kernel: names of fields of :class:`Counts`.
KINDS = ("diagonals", "verticals", "whites", "white_borders")
_SUMS = ("points", "period_sum", "period_count", "gap_sum", "gap_count")
_KIND = 24  # a line's code is its kind, shifted left by this many bits, and its length
_LENGTH = (1 << _KIND) - 1


@dataclass(frozen=True, eq=False)
class BatchCounts:
    """Counts of many matrices.

    Attributes
    ----------
    sizes : ndarray (matrices, 2)
        Columns and rows.
    halved : bool
        Matrices are symmetric, and diagonals of one side stand for both.
    sums : ndarray of int64 (matrices, 5)
        :data:`_SUMS`, fields of :class:`Counts`.
    begins, lengths : ndarray (matrices,)
        Where the lines of a matrix begin among ``lines``, and how many lengths there are. Matrices lie one behind the
        other, in any order.
    lines : ndarray of uint32, or int64 where series are long (all lengths, 2)
        Kind and length in one number, and how many such lines there are: ascending within a matrix.
    columns, diagonals : ndarray of unsigned integers
        Recurrent cells of each column, and of each diagonal row - column: from 0 on where they are halved.
    column_begins, diagonal_begins : ndarray (matrices + 1,)
    """

    sizes: Ints
    halved: bool
    sums: Ints
    begins: Ints
    lengths: Ints
    lines: NDArray[Any]
    columns: NDArray[Any]
    diagonals: NDArray[Any]
    column_begins: Ints
    diagonal_begins: Ints

    @classmethod
    def of_device(
        cls, sizes: Ints, halved: bool, heads: NDArray[np.uint64], lines: NDArray[np.uint32],
        columns: NDArray[Any], diagonals: NDArray[Any], column_begins: Ints, diagonal_begins: Ints,
    ) -> BatchCounts:  # fmt: skip
        """From what the kernel ``recurrence_batch`` wrote: lines lie in the order in which groups ended."""
        begins = (heads[:, 0] >> np.uint64(32)).astype(np.int64)
        lengths = (heads[:, 0] & np.uint64(0xFFFFFFFF)).astype(np.int64)
        sums = heads[:, [5, 1, 2, 3, 4]].astype(np.int64)
        return cls(sizes, halved, sums, begins, lengths, lines, columns, diagonals, column_begins, diagonal_begins)

    @classmethod
    def of_counts(cls, counts: Sequence[Counts], halved: bool) -> BatchCounts:
        """From matrices that were counted one by one."""
        lines = []
        for one in counts:
            places = [np.flatnonzero(getattr(one, name)) for name in KINDS]
            codes = np.concatenate([lengths + (kind << _KIND) for kind, lengths in enumerate(places)])
            numbers = np.concatenate([getattr(one, name)[at] for name, at in zip(KINDS, places, strict=True)])
            lines.append(np.stack([codes, numbers], axis=1))
        diagonals = [one.per_diagonal[one.n_rows - 1 :] if halved else one.per_diagonal[::-1] for one in counts]
        lengths, n_columns, n_diagonals = (
            np.array([len(of) for of in every]) for every in (lines, [one.columns for one in counts], diagonals)
        )
        return cls(
            np.array([[one.n_columns, one.n_rows] for one in counts]), halved,
            np.array([[getattr(one, name) for name in _SUMS] for one in counts]), np.cumsum(lengths) - lengths, lengths,
            np.concatenate(lines), np.concatenate([one.columns for one in counts]), np.concatenate(diagonals),
            np.concatenate([[0], np.cumsum(n_columns)]), np.concatenate([[0], np.cumsum(n_diagonals)]),
        )  # fmt: skip

    @classmethod
    def joined(cls, parts: Sequence[BatchCounts]) -> BatchCounts:
        """All matrices of one part after the other."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            np.concatenate([part.sizes for part in parts]), parts[0].halved,
            np.concatenate([part.sums for part in parts]),
            _shifted([part.begins for part in parts], [len(part.lines) for part in parts]),
            np.concatenate([part.lengths for part in parts]), np.concatenate([part.lines for part in parts]),
            np.concatenate([part.columns for part in parts]), np.concatenate([part.diagonals for part in parts]),
            _ends([part.column_begins for part in parts]), _ends([part.diagonal_begins for part in parts]),
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.sizes)

    def of(self, number: int) -> Counts:
        """Counts of one matrix."""
        n_columns, n_rows = self.sizes[number].tolist()
        begin = self.begins[number]
        codes, numbers = self.lines[begin : begin + self.lengths[number]].astype(np.int64).T
        counted: dict[str, Any] = dict(zip(_SUMS, self.sums[number].tolist(), strict=True))
        for kind, name in enumerate(KINDS):
            mine = codes >> _KIND == kind
            histogram = np.zeros(max(n_columns, n_rows) + 1, np.int64)
            histogram[codes[mine] & _LENGTH] = numbers[mine]
            counted[name] = trimmed(histogram)
        columns = self.columns[self.column_begins[number] : self.column_begins[number + 1]]
        return Counts(
            n_rows=n_rows, n_columns=n_columns, columns=columns.astype(np.int64),
            per_diagonal=self._per_diagonal(number), **counted,
        )  # fmt: skip

    def _per_diagonal(self, number: int) -> Ints:
        """By offset column - row, ascending."""
        cells = self.diagonals[self.diagonal_begins[number] : self.diagonal_begins[number + 1]].astype(np.int64)
        return np.concatenate([cells[:0:-1], cells]) if self.halved else cells[::-1]

    @cached_property
    def _kinds(self) -> NDArray[np.uint8]:
        return (self.lines[:, 0] >> _KIND).astype(np.uint8)

    @cached_property
    def _order(self) -> Ints:
        """Matrices as their lines lie one behind the other; each has a line, if a white one."""
        return np.argsort(self.begins)

    def kind(self, name: str) -> LinesOfMany:
        """Lines of one kind."""
        mine = np.flatnonzero(self._kinds == KINDS.index(name))
        if self.lines.dtype == np.uint32:  # a length and a number are taken as one
            lines = self.lines.view(np.uint64).ravel()[mine].view(np.uint32).reshape(-1, 2).astype(np.int64)
        else:
            lines = self.lines[mine]
        begins, ends = (np.searchsorted(mine, at) for at in (self.begins, self.begins + self.lengths))
        return LinesOfMany(self._order, begins, ends, lines[:, 0] & _LENGTH, np.ascontiguousarray(lines[:, 1]))

    def contradiction(self) -> str | None:
        """As :meth:`Counts.contradiction`, of vertical lines."""
        held = self.kind("verticals").points
        wrong = np.flatnonzero(held != self.sums[:, 0])
        if not len(wrong):
            return None
        return (
            f"vertical lines of {int(held[wrong[0]]):,} cells in all, where {int(self.sums[wrong[0], 0]):,} cells are "
            "recurrent"
        )


def _shifted(parts: Sequence[Ints], sizes: Sequence[int]) -> Ints:
    """Places within parts as places within all of them."""
    before = np.cumsum([0, *sizes[:-1]])
    return np.concatenate([part + first for part, first in zip(parts, before, strict=True)])


def _ends(parts: Sequence[Ints]) -> Ints:
    """Begins of parts, with their end, as one such list."""
    return np.concatenate([[0], *(part[1:] for part in _split(parts))])


def _split(parts: Sequence[Ints]) -> list[Ints]:
    before = np.cumsum([0, *(int(part[-1]) for part in parts[:-1])])
    return [part + first for part, first in zip(parts, before, strict=True)]


# Measures of many matrices at once: bit for bit those of :mod:`pyedmcl.recurrence.measures` for each.
#
# Sums of integers are exact whatever their order. Sums of fractions (entropies, trends) are taken over rows of equal
# length that lie one behind the other, which NumPy sums like a single one.


Doubles = NDArray[np.float64]

_TOGETHER = 100  # matrices whose trends are computed together: what they need stays in a cache


def ratio(numerator: NDArray[Any], denominator: NDArray[Any]) -> Doubles:
    """Quotients; NaN where there is nothing to divide by."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(denominator != 0, numerator / denominator, np.nan)


class MeasuresOfMany:
    """Measures of matrices without gaps.

    Parameters
    ----------
    symmetric : bool
        Rows and columns stand for the same points.
    corridor : bool
        The main diagonal does not recur.
    """

    def __init__(
        self, counts: BatchCounts, convention: Convention, *, theiler: int, lmin: int, vmin: int, wmin: int,
        symmetric: bool, corridor: bool,
    ) -> None:  # fmt: skip
        self.counts, self.convention = counts, convention
        self.theiler, self.lmin, self.vmin, self.wmin = theiler, lmin, vmin, wmin
        self._symmetric, self._identity = symmetric, symmetric and not corridor

    @cached_property
    def _verticals(self) -> LinesOfMany:
        return self.counts.kind("verticals")

    @cached_property
    def _between(self) -> LinesOfMany:
        """White lines between two black ones."""
        return self.counts.kind("whites")

    @cached_property
    def _counted_diagonals(self) -> LinesOfMany:
        return self.counts.kind("diagonals")

    @cached_property
    def _diagonals(self) -> LinesOfMany:
        lines = self._counted_diagonals
        if self.convention.has_theiler or not self._identity:
            return lines
        return lines.with_line(self.counts.sizes[:, 0])  # the main diagonal is longer than any other line

    @cached_property
    def _whites(self) -> LinesOfMany:
        if not self.convention.white_borders:
            return self._between
        return self._between.joined(self.counts.kind("white_borders"), int(self.counts.sizes.max()) + 1)

    def _share(self, lines: LinesOfMany, least: int) -> Doubles:
        return ratio(lines.from_length(least).points, lines.points)

    def _mean(self, lines: LinesOfMany, least: int) -> Doubles:
        long_lines = lines.from_length(least)
        return ratio(long_lines.points, long_lines.count)

    def _most(self, lines: LinesOfMany, least: int) -> Ints:
        return lines.from_length(least if self.convention.longest_from_minimum else 1).longest

    def _inverse(self, lengths: Ints) -> Doubles:
        with np.errstate(divide="ignore"):
            return 1.0 / lengths

    @cached_property
    def _of_sizes(self) -> list[tuple[tuple[int, int], Ints]]:
        """(columns, rows) that occur, and the matrices of each."""
        sizes, which = np.unique(self.counts.sizes, axis=0, return_inverse=True)
        return [((int(n), int(m)), np.flatnonzero(which.ravel() == at)) for at, (n, m) in enumerate(sizes)]

    def recurrence_rate(self) -> Doubles:
        cells = np.empty(len(self.counts))
        for (n, m), mine in self._of_sizes:
            dropped = 0
            if self.convention.outside(self._symmetric):
                dropped = cells_within(np.ones(m, bool), np.ones(n, bool), self.theiler)
            cells[mine] = n * m - dropped
        return ratio(self.counts.sums[:, 0], cells)

    def determinism(self) -> Doubles:
        return self._share(self._diagonals, self.lmin)

    def average_diagonal_line(self) -> Doubles:
        return self._mean(self._diagonals, self.lmin)

    def longest_diagonal_line(self) -> Ints:
        lines = self._diagonals if self.convention.has_theiler else self._counted_diagonals
        return self._most(lines, self.lmin)

    def divergence(self) -> Doubles:
        return self._inverse(self.longest_diagonal_line())

    def entropy_diagonal_lines(self) -> Doubles:
        return self._diagonals.from_length(self.lmin).entropy()

    def laminarity(self) -> Doubles:
        return self._share(self._verticals, self.vmin)

    def trapping_time(self) -> Doubles:
        return self._mean(self._verticals, self.vmin)

    def longest_vertical_line(self) -> Ints:
        return self._most(self._verticals, self.vmin)

    def entropy_vertical_lines(self) -> Doubles:
        return self._verticals.from_length(self.vmin).entropy()

    def average_white_vertical_line(self) -> Doubles:
        return self._mean(self._whites, self.wmin)

    def longest_white_vertical_line(self) -> Ints:
        return self._most(self._whites, self.wmin)

    def divergence_white_vertical_lines(self) -> Doubles:
        return self._inverse(self.longest_white_vertical_line())

    def entropy_white_vertical_lines(self) -> Doubles:
        return self._whites.from_length(self.wmin).entropy()

    def trend(self) -> Doubles:
        out = np.full(len(self.counts), np.nan)
        for (n, m), mine in self._of_sizes:
            end = min(n, m) - TREND_BORDER
            d = np.arange(1 + self.theiler, end + 1)
            balanced = d - end / 2
            total = float((balanced * balanced).sum())
            if not len(d) or not total:
                continue
            cells = cells_of_both_sides(np.ones(m, bool), np.ones(n, bool))[self.theiler : end]
            for some in np.split(mine, range(_TOGETHER, len(mine), _TOGETHER)):
                rate = self._both_sides(some, n)[:, self.theiler : end] / cells
                slopes = balanced * (rate - rate.mean(axis=1)[:, None])
                out[some] = 1000.0 * slopes.sum(axis=1) / total
        return out

    def center_of_recurrence_mass(self) -> Doubles:
        out = np.full(len(self.counts), np.nan)
        for (n, _), mine in self._of_sizes:
            for some in np.split(mine, range(_TOGETHER, len(mine), _TOGETHER)):
                mass, cells = moments(self._both_sides(some, n), self.theiler)
                out[some] = np.divide(mass, cells, out=np.full(len(some), np.nan), where=cells > 0)
        return out

    def _both_sides(self, matrices: Ints, n_columns: int) -> Ints:
        """Recurrent cells at each distance from the main diagonal, of matrices of one size."""
        c = self.counts
        length = int(c.diagonal_begins[matrices[0] + 1] - c.diagonal_begins[matrices[0]])
        cells: Ints = c.diagonals[c.diagonal_begins[matrices][:, None] + np.arange(length)].astype(np.int64)
        if c.halved:
            cells[:, 1:] *= 2
            return cells
        middle = n_columns - 1  # of diagonals row - column
        n = min(middle + 1, length - middle)
        folded: Ints = cells[:, middle : middle + n].copy()
        folded[:, 1:] += cells[:, middle - n + 1 : middle][:, ::-1]
        return folded

    def recurrence_time_1(self) -> Doubles:
        return ratio(self.counts.sums[:, 3], self.counts.sums[:, 4])

    def recurrence_time_2(self) -> Doubles:
        return ratio(self.counts.sums[:, 1], self.counts.sums[:, 2])

    def recurrence_period_density_entropy(self) -> Doubles:
        longest = self._between.longest
        values, which = np.unique(longest, return_inverse=True)
        logarithms = np.array([math.log(value) if value > 1 else 1.0 for value in values.tolist()])[which]
        out = self._between.entropy() / logarithms
        return np.where(longest == 0, np.nan, np.where(longest == 1, 0.0, out))

    def ratio(self) -> Doubles:
        return ratio(self.determinism(), self.recurrence_rate())

    def measure(self, long_name: str) -> NDArray[Any] | None:
        """A measure of all matrices by its long name; None for one that is not known here."""
        measure: Callable[[], NDArray[Any]] | None = getattr(self, long_name, None)
        if measure is None:
            return None
        values, none = measure(), self.convention.none(short_name(long_name))
        return values if math.isnan(none) else np.where(np.isnan(values), none, values)
