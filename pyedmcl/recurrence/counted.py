"""The counts of a matrix as a convention reads them: which lines count, and denominators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .cells import Mask, cells_within, identity_lines, sum_of
from .conventions import Convention
from .counts import Counts, Histogram, trimmed
from .formulas import Lines, lines_of


@dataclass(frozen=True, eq=False, repr=False)
class CountedMatrix:
    """What measures are computed from; :class:`pyedmcl.recurrence.result.RecurrenceResult` describes the fields."""

    counts: Counts
    convention: Convention
    radius: Any
    theiler: int
    lmin: int
    vmin: int
    wmin: int
    complete: tuple[Mask, Mask]
    symmetric: bool
    provenance: Mapping[str, Any] = field(default_factory=dict)

    # Histograms as the convention counts them, indexed by length.

    @cached_property
    def diagonal_lines(self) -> Histogram:
        """Number of diagonal lines of each length (index = length)."""
        if self.convention.has_theiler:
            return self.counts.diagonals
        return sum_of(self.counts.diagonals, identity_lines(self.complete[0]) if self._identity else np.zeros(1, int))

    @cached_property
    def vertical_lines(self) -> Histogram:
        """Number of vertical lines of each length (index = length)."""
        return self.counts.verticals

    @cached_property
    def white_vertical_lines(self) -> Histogram:
        """Number of white vertical lines of each length (index = length)."""
        if not self.convention.white_borders:
            return self.counts.whites
        lines = sum_of(self.counts.whites, self.counts.white_borders)
        gaps = int(np.count_nonzero(~self.complete[1]))
        if gaps:  # the column of an incomplete point is white all over, but no line
            lines[self.counts.n_rows] -= gaps
        return trimmed(lines)

    # The same as the lengths that occur: nearly all of a long histogram is zero.

    @cached_property
    def _diagonals(self) -> Lines:
        return lines_of(self.diagonal_lines)

    @cached_property
    def _verticals(self) -> Lines:
        return lines_of(self.vertical_lines)

    @cached_property
    def _whites(self) -> Lines:
        return lines_of(self.white_vertical_lines)

    @property
    def recurrences(self) -> NDArray[np.int64]:
        """Recurrent points of each column."""
        return self.counts.columns

    @property
    def _identity(self) -> bool:
        return self.symmetric and not isinstance(self.radius, tuple)

    @cached_property
    def cells(self) -> int:
        """Denominator of the recurrence rate."""
        rows, columns = self.complete
        every = int(np.count_nonzero(rows)) * int(np.count_nonzero(columns))
        outside = self.convention.outside(self.symmetric)
        return every - cells_within(rows, columns, self.theiler) if outside else every
