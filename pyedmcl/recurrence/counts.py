"""What is counted in a recurrence matrix: integers only, from which every measure follows."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

Histogram = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Counts:
    """Line histograms and sums of one recurrence matrix.

    Histograms are indexed by length (index 0 is always 0) and end with the longest line there is: the array of no
    lines is ``[0]``. A line is a run of recurrent cells that cannot be made longer; one that touches the border of the
    matrix counts like any other. Counts of two parts of a matrix cannot simply be added.

    Attributes
    ----------
    n_rows, n_columns : int
        Points of ``x`` and of ``y``.
    points : int
        Recurrent cells. The main diagonal counts; cells within the Theiler window do unless they are dropped
        everywhere.
    diagonals : ndarray of int64
        Diagonal lines of each length, without cells |i - j| < theiler; both triangles.
    verticals : ndarray of int64
        Black vertical runs (fixed column, rows in sequence) of each length.
    whites : ndarray of int64
        White vertical runs between two black ones.
    white_borders : ndarray of int64
        White vertical runs that touch the first or the last row; a column without recurrence is one of n_rows.
    columns : ndarray of int64 (n_columns,)
        Recurrent cells of each column.
    per_diagonal : ndarray of int64 (n_rows + n_columns - 1,)
        Recurrent cells of each offset j - i = -(n_rows - 1), ..., n_columns - 1. Cells within the Theiler window do not
        count where they are dropped everywhere.
    period_sum, period_count : int
        Over columns: first row of the last black run minus first row of the first one; black runs minus 1 (at least 0).
    gap_sum, gap_count : int
        Over columns: last minus first recurrent row; recurrent cells minus 1 (at least 0).

    Examples
    --------
    >>> import numpy as np
    >>> import pyedmcl
    >>> x = np.sin(np.arange(500) * 0.2)
    >>> counts = pyedmcl.rqa(x, m=2, tau=8, radius=0.2).counts
    >>> counts.n_rows, counts.per_diagonal.shape
    (492, (983,))
    >>> bool(counts.points == counts.verticals @ np.arange(len(counts.verticals)))  # each cell is on a vertical line
    True
    """

    n_rows: int
    n_columns: int
    points: int
    diagonals: Histogram
    verticals: Histogram
    whites: Histogram
    white_borders: Histogram
    columns: Histogram
    per_diagonal: Histogram
    period_sum: int
    period_count: int
    gap_sum: int
    gap_count: int

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Counts):
            return NotImplemented
        return all(np.array_equal(getattr(self, f.name), getattr(other, f.name)) for f in fields(self))

    def contradiction(self, line_window: int) -> str | None:
        """What cannot be, in words; None where histograms of lines sum to the cells that lie on them.

        Parameters
        ----------
        line_window : int
            Diagonals |j - i| below it hold no lines.
        """
        cells, middle = self.per_diagonal, self.n_rows - 1
        on_diagonals = int(cells.sum())
        if line_window:
            on_diagonals -= int(cells[max(middle - line_window + 1, 0) : middle + line_window].sum())
        for lines, histogram, expected in (
            ("vertical", self.verticals, self.points), ("diagonal", self.diagonals, on_diagonals),
        ):  # fmt: skip
            held = int(histogram @ np.arange(len(histogram)))
            if held != expected:
                return f"{lines} lines of {held:,} cells in all, where {expected:,} cells are recurrent"
        return None

    def differences(self, other: Counts) -> list[str]:
        """Names of the fields that differ."""
        return [f.name for f in fields(self) if not np.array_equal(getattr(self, f.name), getattr(other, f.name))]


def trimmed(histogram: NDArray[np.integer]) -> Histogram:
    """The histogram as int64 up to its longest line; ``[0]`` where there is none."""
    backwards = histogram[::-1] != 0  # histograms of long series are long, and nearly all of it is zero
    last = int(backwards.argmax()) if len(backwards) else 0
    end = len(histogram) - last if len(backwards) and backwards[last] else 1
    return np.ascontiguousarray(histogram[:end], dtype=np.int64)
