"""What recurrence quantification returns: frozen integer counts, and every measure computed from them when asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import measures
from .arguments import minimum
from .cells import Mask, both_sides, cells_of_both_sides, cells_within, identity_lines, sum_of
from .conventions import Convention
from .counts import Counts, Histogram, trimmed
from .measures import SHORT_NAMES, Lines, lines_of


@dataclass(frozen=True, eq=False, repr=False)
class RecurrenceResult:
    """Recurrence quantification of one matrix.

    Every measure is an attribute by its long and its short name (``result.determinism``, ``result.DET``) and an item
    (``result["DET"]``). A mean over no lines is NaN. Points that touch a gap belong to no cell: they are left out of
    the denominators, black lines end there, white lines run through them.

    Attributes
    ----------
    counts : Counts
        The integers that all follows from.
    convention : Convention
    radius : float or tuple
        The radius of this matrix (in the data's unit); (inner, outer) for a corridor; NaN where each point has its own.
    theiler : int
        Cells with |i - j| < theiler are left out, of what, the convention says.
    lmin, vmin, wmin : int
        Least lengths of diagonal, vertical and white vertical lines; see :meth:`with_minimum`.
    complete : tuple of two ndarrays of bool
        Which rows and which columns are points without a gap.
    symmetric : bool
        Rows and columns stand for the same points.
    provenance : mapping
    """

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

    # The same as the lengths that occur, which is little of them.

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

    # Measures

    @cached_property
    def cells(self) -> int:
        """Denominator of the recurrence rate."""
        rows, columns = self.complete
        every = int(np.count_nonzero(rows)) * int(np.count_nonzero(columns))
        outside = self.convention.rate_over == "outside" and self.symmetric
        return every - cells_within(rows, columns, self.theiler) if outside else every

    @property
    def recurrence_rate(self) -> float:
        """RR: recurrent points / cells."""
        return measures.ratio(self.counts.points, self.cells)

    @property
    def determinism(self) -> float:
        """DET: points on diagonal lines of at least lmin / points on all diagonal lines."""
        return measures.share(self._diagonals, self.lmin)

    @property
    def average_diagonal_line(self) -> float:
        """L: mean length of diagonal lines of at least lmin."""
        return measures.average(self._diagonals, self.lmin)

    @property
    def longest_diagonal_line(self) -> int:
        """Lmax: 0 where there is none."""
        least = self.lmin if self.convention.longest_from_minimum else 1
        return measures.longest(self._diagonals if self.convention.has_theiler else self.counts.diagonals, least)

    @property
    def divergence(self) -> float:
        """DIV: 1 / Lmax."""
        return measures.inverse(self.longest_diagonal_line)

    @property
    def entropy_diagonal_lines(self) -> float:
        """ENTR: Shannon entropy (nats) of the lengths of diagonal lines of at least lmin."""
        return measures.entropy(self._diagonals, self.lmin)

    @property
    def laminarity(self) -> float:
        """LAM: points on vertical lines of at least vmin / points on all vertical lines."""
        return measures.share(self._verticals, self.vmin)

    @property
    def trapping_time(self) -> float:
        """TT: mean length of vertical lines of at least vmin."""
        return measures.average(self._verticals, self.vmin)

    @property
    def longest_vertical_line(self) -> int:
        """Vmax: 0 where there is none."""
        return measures.longest(self._verticals, self.vmin if self.convention.longest_from_minimum else 1)

    @property
    def entropy_vertical_lines(self) -> float:
        """VENTR: Shannon entropy (nats) of the lengths of vertical lines of at least vmin."""
        return measures.entropy(self._verticals, self.vmin)

    @property
    def average_white_vertical_line(self) -> float:
        """W: mean length of white vertical lines of at least wmin."""
        return measures.average(self._whites, self.wmin)

    @property
    def longest_white_vertical_line(self) -> int:
        """Wmax: 0 where there is none."""
        return measures.longest(self._whites, self.wmin if self.convention.longest_from_minimum else 1)

    @property
    def divergence_white_vertical_lines(self) -> float:
        """WDIV: 1 / Wmax."""
        return measures.inverse(self.longest_white_vertical_line)

    @property
    def entropy_white_vertical_lines(self) -> float:
        """WENTR: Shannon entropy (nats) of the lengths of white vertical lines of at least wmin."""
        return measures.entropy(self._whites, self.wmin)

    @cached_property
    def trend(self) -> float:
        """TREND: slope of the recurrence rate over the distance from the main diagonal, per 1000 steps."""
        rows = self.counts.n_rows
        recurrent = both_sides(self.counts.per_diagonal, rows)
        return measures.trend(recurrent, cells_of_both_sides(*self.complete), self.theiler)

    @property
    def recurrence_time_1(self) -> float:
        """T1: mean distance of successive recurrent points in a column."""
        return measures.ratio(self.counts.gap_sum, self.counts.gap_count)

    @property
    def recurrence_time_2(self) -> float:
        """T2: mean distance of the starts of successive vertical lines (of any length) in a column."""
        return measures.ratio(self.counts.period_sum, self.counts.period_count)

    @property
    def recurrence_period_density_entropy(self) -> float:
        """RTE: normalised entropy of the lengths of white vertical lines between recurrences."""
        return measures.period_entropy(self.counts.whites)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={self[name]:.6g}" for name in ("RR", "DET", "L", "Lmax", "ENTR", "LAM", "TT"))
        size = f"{self.counts.n_rows} x {self.counts.n_columns}"
        return f"RecurrenceResult({size}, radius={self.radius!r}, convention={self.convention.name!r}, {shown})"

    def __getattr__(self, name: str) -> Any:
        if name in SHORT_NAMES:
            return getattr(self, SHORT_NAMES[name])
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *SHORT_NAMES]

    def __getitem__(self, name: str) -> Any:
        long = SHORT_NAMES.get(name, name)
        if long not in SHORT_NAMES.values():
            raise KeyError(f"no measure {name!r}; there are {', '.join(SHORT_NAMES)} and their long names")
        return getattr(self, long)

    def with_minimum(
        self, *, lmin: int | None = None, vmin: int | None = None, wmin: int | None = None
    ) -> RecurrenceResult:
        """The same matrix with other least lengths of lines; nothing is computed anew on a device.

        Parameters
        ----------
        lmin, vmin, wmin : int, optional
            At least 1; those left out stay.

        Raises
        ------
        InputError
            For anything else.
        """
        return replace(
            self,
            lmin=self.lmin if lmin is None else minimum("lmin", lmin),
            vmin=self.vmin if vmin is None else minimum("vmin", vmin),
            wmin=self.wmin if wmin is None else minimum("wmin", wmin),
        )

    def to_dict(self, *, short: bool = False) -> dict[str, Any]:
        """All measures as plain numbers, by their long (or ``short``) names."""
        return {s if short else long: getattr(self, long) for s, long in SHORT_NAMES.items()}

    def to_frame(self) -> Any:
        """A pandas DataFrame: one row, a column per measure."""
        from .table import RecurrenceTable

        return RecurrenceTable((self,), "radius", (self.radius,)).to_frame()

    def plot(self, path: str | None = None) -> Any:
        """Histograms of the lines; saved to ``path`` if given. Needs matplotlib."""
        from ..plot.recurrence import line_histograms

        return line_histograms(self, path)
