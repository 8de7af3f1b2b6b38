"""Lines of one kind in many matrices, side by side."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

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
        """As :func:`pyedmcl.recurrence.formulas.entropy`."""
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
