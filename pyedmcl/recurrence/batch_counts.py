"""Counts of many matrices side by side, of which only those lengths are kept that occur in some line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .batch_lines import Ints, LinesOfMany
from .counts import Counts, trimmed

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
