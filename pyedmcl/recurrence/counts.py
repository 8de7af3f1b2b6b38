"""Integer counts of a recurrence matrix: of some rows, of all, and as a convention reads them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arguments import Convention

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


# How many cells there are: denominators, with the gaps of the series taken into account.


Mask = NDArray[np.bool_]


def cells_within(rows: Mask, columns: Mask, theiler: int) -> int:
    """Cells (i, j) of complete points with |i - j| < theiler.

    Parameters
    ----------
    rows, columns : ndarray of bool
        Points without a gap.
    """
    if theiler == 0:
        return 0
    if rows.all() and columns.all():
        return int(_complete_cells(len(rows), len(columns), np.arange(1 - theiler, theiler)).sum())
    before = np.concatenate([[0], np.cumsum(columns, dtype=np.int64)])
    at = np.flatnonzero(rows)
    first = np.clip(at - theiler + 1, 0, len(columns))
    end = np.clip(at + theiler, 0, len(columns))
    return int((before[end] - before[first]).sum())


def cells_of_columns(rows: Mask, columns: Mask, theiler: int) -> NDArray[np.int64]:
    """Cells of complete points with |i - j| >= theiler in each column."""
    before = np.concatenate([[0], np.cumsum(rows, dtype=np.int64)])
    j = np.arange(len(columns))
    first, end = (np.clip(j + at, 0, len(rows)) for at in (1 - theiler, theiler))
    within = before[end] - before[first] if theiler else 0
    counted: NDArray[np.int64] = np.where(columns, before[-1] - within, 0)
    return counted


def cells_by_offset(rows: Mask, columns: Mask) -> NDArray[np.int64]:
    """Cells of complete points at each offset j - i = -(rows - 1), ..., columns - 1."""
    n, m = len(rows), len(columns)
    if rows.all() and columns.all():
        return _complete_cells(n, m, np.arange(-(n - 1), m))
    size = 1 << (n + m - 1).bit_length()
    spectrum = np.fft.rfft(columns.astype(np.float64), size) * np.fft.rfft(rows[::-1].astype(np.float64), size)
    return np.rint(np.fft.irfft(spectrum, size)[: n + m - 1]).astype(np.int64)


def _complete_cells(n: int, m: int, offset: NDArray[np.int64]) -> NDArray[np.int64]:
    """Cells at each offset of a matrix of n x m points without gaps."""
    cells: NDArray[np.int64] = np.minimum(n + offset, m - offset)
    np.minimum(cells, min(n, m), out=cells)
    return np.maximum(cells, 0, out=cells)


def cells_of_both_sides(rows: Mask, columns: Mask) -> NDArray[np.int64]:
    """:func:`both_sides` of :func:`cells_by_offset`."""
    n, m = len(rows), len(columns)
    if not (rows.all() and columns.all()):
        return both_sides(cells_by_offset(rows, columns), n)
    d = np.arange(min(n, m))
    cells = _complete_cells(n, m, d)
    cells[1:] += cells[1:] if n == m else _complete_cells(n, m, -d[1:])
    return cells


def both_sides(by_offset: NDArray[np.int64], n_rows: int) -> NDArray[np.int64]:
    """Sums over the offsets d and -d, d = 0, ..., min(rows, columns) - 1."""
    middle = n_rows - 1
    n = min(n_rows, len(by_offset) - middle)
    folded = by_offset[middle : middle + n].copy()
    folded[1:] += by_offset[middle - n + 1 : middle][::-1]
    return folded


def identity_lines(complete: Mask) -> Histogram:
    """Lines of the main diagonal, which gaps interrupt, as a histogram of their lengths."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], complete, [False]]).astype(np.int8)))
    return trimmed(np.bincount(edges[1::2] - edges[::2], minlength=1))


def sum_of(first: Histogram, second: Histogram) -> Histogram:
    """Two histograms of different length added."""
    total = np.zeros(max(len(first), len(second)), np.int64)
    total[: len(first)] += first
    total[: len(second)] += second
    return total


# Formulas that several measures share: from histograms of line lengths, or from counts on diagonals, to a number.
#
# Histograms h[l] hold the number of lines of length l. What has no value (a mean over no lines) is NaN.


# The diagonals nearest to the corners are a few cells long and carry no rate (Webber and Zbilut 2005).
TREND_BORDER = 10


@dataclass(frozen=True, eq=False)
class Lines:
    """Lengths that occur and how many lines have each: nearly all of a long histogram is zero."""

    lengths: NDArray[np.int64]
    numbers: NDArray[np.int64]

    def from_length(self, least: int) -> Lines:
        """Those of at least ``least``."""
        first = int(np.searchsorted(self.lengths, least))
        return Lines(self.lengths[first:], self.numbers[first:])


def lines_of(histogram: Histogram) -> Lines:
    """Lines of the lengths 1 and more."""
    lengths = np.flatnonzero(histogram[1:]) + 1
    return Lines(lengths, histogram[lengths])


def share(histogram: Histogram | Lines, least: int) -> float:
    """Points on lines of at least ``least``, divided by the points on all lines (determinism, laminarity)."""
    return ratio(points(histogram, least), points(histogram, 1))


def average(histogram: Histogram | Lines, least: int) -> float:
    """Mean length of the lines of at least ``least``."""
    return ratio(points(histogram, least), int(_from(histogram, least).numbers.sum()))


def longest(histogram: Histogram | Lines, least: int = 1) -> int:
    """Length of the longest line of at least ``least``, 0 where there is none."""
    lengths = _from(histogram, least).lengths
    return int(lengths[-1]) if len(lengths) else 0


def inverse(length: int) -> float:
    """1 / length; infinite for no line."""
    return 1.0 / length if length else math.inf


def entropy(histogram: Histogram | Lines, least: int) -> float:
    """Shannon entropy (natural logarithm) of the lengths of at least ``least``."""
    numbers = _from(histogram, least).numbers
    if not len(numbers):
        return math.nan
    p = numbers / numbers.sum()
    return float(-(p * np.log(p)).sum()) + 0.0  # never -0.0


def period_entropy(whites: Histogram | Lines) -> float:
    """Recurrence period density entropy: entropy of the recurrence times T over ln(T_max), in [0, 1].

    T are the lengths of white vertical lines between two recurrences, of any length (Little et al., BioMedical
    Engineering OnLine 6, 23, 2007). 0 where all are equal; NaN where nothing recurs twice.
    """
    whites = _from(whites, 1)
    most = longest(whites)
    if most == 0:
        return math.nan
    return entropy(whites, 1) / math.log(most) if most > 1 else 0.0


def trend(recurrent: NDArray[np.int64], cells: NDArray[np.int64], theiler: int) -> float:
    """Slope of the diagonal-wise recurrence rate over the distance from the main diagonal, times 1000.

    With RR[d] the rate of offset |j - i| = d - 1, d = 1, ..., N, and a = 1 + theiler, b = N - 10:
    ``1000 sum_{d=a}^{b} (d - b/2) (RR[d] - mean(RR)) / sum_{d=a}^{b} (d - b/2)^2``, as RecurrenceAnalysis.jl 2.1
    defines it (after Webber and Zbilut 2005). Offsets without cells are left out.

    Parameters
    ----------
    recurrent, cells : ndarray (N,)
        Recurrent cells, and all cells, at offset d - 1 to both sides together.
    theiler : int
        That many offsets are left out.
    """
    d = np.arange(1 + theiler, len(cells) - TREND_BORDER + 1)
    black, every = recurrent[theiler : theiler + len(d)], cells[theiler : theiler + len(d)]
    filled = every > 0
    if not filled.all():
        d, black, every = d[filled], black[filled], every[filled]
    if not len(d):
        return math.nan
    rate = black / every
    balanced = d - (len(cells) - TREND_BORDER) / 2
    total = float((balanced * balanced).sum())
    return 1000.0 * float((balanced * (rate - rate.mean())).sum()) / total if total else math.nan


def moments(recurrent: NDArray[np.int64], theiler: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Sums over the cells outside the main diagonal and the Theiler window: of their distances from the diagonal, as a
    share of the largest, and of the cells.

    Parameters
    ----------
    recurrent : ndarray (matrices, N)
        Recurrent cells at each distance 0, ..., N - 1, at both sides together.
    """
    first = max(theiler, 1)
    outside = recurrent[:, first:]
    distances = np.arange(first, recurrent.shape[1])
    return outside @ distances / max(recurrent.shape[1] - 1, 1), outside.sum(axis=1)


def points(histogram: Histogram | Lines, least: int) -> int:
    """Cells on lines of at least ``least``."""
    lines = _from(histogram, least)
    return int((lines.numbers * lines.lengths).sum())


def _from(histogram: Histogram | Lines, least: int) -> Lines:
    lines = histogram if isinstance(histogram, Lines) else lines_of(histogram)
    return lines.from_length(least)


def ratio(numerator: int, denominator: int) -> float:
    """Quotient of two counts; NaN where there is nothing to divide by."""
    return numerator / denominator if denominator else math.nan


# The counts of a matrix as a convention reads them: which lines count, and denominators.


@dataclass(frozen=True, eq=False, repr=False)
class CountedMatrix:
    """What measures are computed from; :class:`pyedmcl.recurrence.measures.RecurrenceResult` describes the fields."""

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


# Counts of some rows of a recurrence matrix, and their recombination: associative, in any order.


#: Fields of a segment, as ``clkernels/segment_join.clh`` has them.
FIELDS = 5
FIRST_START, FIRST_END, LAST_START, LAST_END, COUNT = range(FIELDS)
DIAGONAL, BLACK, WHITE = range(3)
KINDS = ("diagonals", "rows", "columns")

Segments = NDArray[np.int32]  # (FIELDS, lines)


@dataclass(frozen=True, eq=False)
class Partial:
    """What rows ``begin`` to ``end`` of a matrix contribute; for one radius."""

    # begin, end: Rows, half open.
    begin: int
    end: int
    # diagonals, rows, columns: ndarray of int32 (5, lines held). Per line the first black run [start, end), the last
    # one, and the number of black cells; a first start of -1 where there is none. ``rows`` has no lines unless the
    # matrix is symmetric: below its diagonal column i goes on as row i, so that only cells above the diagonal are
    # looked at.
    diagonals: Segments
    rows: Segments
    columns: Segments
    # ndarray of int64 (3, longest + 1). Diagonal lines, black verticals and white verticals that lie between the first
    # and the last run of their line; up to the longest of these.
    histograms: NDArray[np.int64]
    # ndarray of int64 (3, 2). Of diagonals, rows and columns: the first line that is held, and how many lines the
    # matrix has. These rows have no cells of the others. All are held where nothing is given.
    lines: NDArray[np.int64] = None  # type: ignore[assignment]  # see __post_init__

    def __post_init__(self) -> None:
        if self.lines is None:
            held = self.diagonals, self.rows, self.columns
            object.__setattr__(self, "lines", np.array([[0, segments.shape[1]] for segments in held]))

    def segments(self, kind: str, first: int = 0, end: int | None = None) -> Segments:
        """Lines ``first`` to ``end`` of a kind ("diagonals", "rows" or "columns"), all by default, held or not."""
        held, (at, n) = getattr(self, kind), self.lines[KINDS.index(kind)].tolist()
        end = n if end is None else end
        if (first, end) == (at, at + held.shape[1]):
            return np.asarray(held)
        out = np.zeros((FIELDS, end - first), np.int32)
        out[FIRST_START] = -1
        out[:, at - first : at - first + held.shape[1]] = held
        return out

    def counts(self) -> NDArray[np.int64]:
        """The histograms with room for the longest line that is possible; a copy."""
        out = np.zeros((3, int(self.lines[:, 1].max()) + 1), np.int64)
        out[:, : self.histograms.shape[1]] = self.histograms
        return out


def in_order(parts: Sequence[Partial]) -> list[Partial]:
    """Parts by their rows. Raises ValueError where they overlap or leave rows out."""
    ordered = sorted(parts, key=lambda part: part.begin)
    for before, part in itertools.pairwise(ordered):
        if part.begin != before.end:
            raise ValueError(f"rows {before.end} to {part.begin} of the matrix are missing or counted twice")
    return ordered


def join(parts: Sequence[Partial], theiler: int, k_first: int) -> Partial:
    """Neighbouring parts as one. The order in which they were found does not matter, nor how rows were split.

    Parameters
    ----------
    theiler, k_first : int
        Diagonals with |offset| < theiler count no lines; ``k_first`` is the offset of the first diagonal.
    """
    whole, *others = in_order(parts)
    for part in others:
        histograms = whole.counts()
        histograms[:, : part.histograms.shape[1]] += part.histograms
        lines, joined = whole.lines.copy(), {}
        for number, kind in enumerate(KINDS):
            of = [(int(p.lines[number, 0]), getattr(p, kind).shape[1]) for p in (whole, part)]
            first, end = min(at for at, _ in of), max(at + n for at, n in of)
            a, b = whole.segments(kind, first, end), part.segments(kind, first, end)
            if kind == "diagonals":
                counted = _outside(end - first, theiler, k_first + first)
                joined[kind] = join_lines(a, b, histograms[DIAGONAL], None, counted=counted)
            else:
                joined[kind] = join_lines(a, b, histograms[BLACK], histograms[WHITE])
            lines[number, 0] = first
        longest = int(np.flatnonzero(histograms.any(axis=0)).max(initial=0))
        kept = histograms[:, : longest + 1].copy()
        whole = Partial(whole.begin, part.end, histograms=kept, lines=lines, **joined)
    return whole


def join_lines(
    a: Segments, b: Segments, black: NDArray[np.int64], white: NDArray[np.int64] | None,
    counted: NDArray[np.bool_] | None = None,
) -> Segments:  # fmt: skip
    """Segments ``a`` and then ``b`` of each line; runs that become final are added to the histograms in place.

    The same algebra as in ``clkernels/segment_join.clh``.
    """
    in_a, in_b = a[FIRST_START] >= 0, b[FIRST_START] >= 0
    both = in_a & in_b
    out = np.where(in_a, a, b)
    out[COUNT] = a[COUNT] + b[COUNT]
    for last in (LAST_START, LAST_END):
        out[last] = np.where(in_b, b[last], a[last])
    seam = both & (a[LAST_END] == b[FIRST_START])
    a_single, b_single = a[FIRST_START] == a[LAST_START], b[FIRST_START] == b[LAST_START]
    out[FIRST_END] = np.where(seam & a_single, b[FIRST_END], out[FIRST_END])
    out[LAST_START] = np.where(seam & b_single, a[LAST_START], out[LAST_START])
    apart = both & ~seam
    kept = np.ones(a.shape[1], bool) if counted is None else counted
    _add(black, (b[FIRST_END] - a[LAST_START])[seam & ~a_single & ~b_single & kept])
    _add(black, (a[LAST_END] - a[LAST_START])[apart & ~a_single & kept])
    _add(black, (b[FIRST_END] - b[FIRST_START])[apart & ~b_single & kept])
    if white is not None:
        _add(white, (b[FIRST_START] - a[LAST_END])[apart])
    return out


def finish(part: Partial, *, n_rows: int, n_columns: int, symmetric: bool, theiler: int, theiler_everywhere: bool,
           identity: NDArray[np.bool_] | None) -> Counts:  # fmt: skip
    """Counts of the whole matrix.

    Parameters
    ----------
    part : Partial
        Of all rows.
    n_rows, n_columns, symmetric, theiler, theiler_everywhere
        As in :class:`pyedmcl.recurrence.problem.RqaProblem`.
    identity : ndarray of bool (n_rows,) or None
        Recurrent cells of the main diagonal of a symmetric matrix, where its lines count: once, others twice.
    """
    histograms, part_diagonals = part.counts(), part.segments("diagonals")
    k_first = 0 if symmetric else 1 - n_rows
    outside = _outside(part_diagonals.shape[1], max(theiler, 1) if symmetric else theiler, k_first)
    inner = np.flatnonzero(~outside)
    if len(inner):  # the window's offsets lie side by side
        for some in (part_diagonals[:, : inner[0]], part_diagonals[:, inner[-1] + 1 :]):
            _add_ends(histograms[DIAGONAL], some)
    else:
        _add_ends(histograms[DIAGONAL], part_diagonals)
    diagonals, per_diagonal = histograms[DIAGONAL], part_diagonals[COUNT].astype(np.int64)
    columns = part.segments("columns")
    if symmetric:
        diagonals = 2 * diagonals
        if identity is not None:
            lines = identity_lines(identity)
            diagonals[: len(lines)] += lines
        per_diagonal = np.concatenate([per_diagonal[:0:-1], per_diagonal])
        columns = join_lines(columns, part.segments("rows"), histograms[BLACK], histograms[WHITE])
    _add_ends(histograms[BLACK], columns)
    black = columns[FIRST_START] >= 0
    filled = columns if black.all() else columns[:, black]
    borders = np.zeros(n_rows + 1, np.int64)
    _add(borders, filled[FIRST_START])
    _add(borders, n_rows - filled[LAST_END])
    borders[0] = 0
    borders[n_rows] += columns.shape[1] - filled.shape[1]
    first, last, end = (int(filled[of].sum(dtype=np.int64)) for of in (FIRST_START, LAST_START, LAST_END))
    whites = trimmed(histograms[WHITE])
    counts = columns[COUNT].astype(np.int64)
    runs = trimmed(histograms[BLACK])
    return Counts(
        n_rows=n_rows,
        n_columns=n_columns,
        points=int(counts.sum()),
        diagonals=trimmed(diagonals),
        verticals=runs,
        whites=whites,
        white_borders=trimmed(borders),
        columns=counts,
        per_diagonal=per_diagonal,
        period_sum=last - first,
        period_count=int(runs.sum()) - filled.shape[1],
        gap_sum=end - first - filled.shape[1],
        gap_count=int(counts.sum()) - filled.shape[1],
    )


def _add_ends(histogram: Histogram, lines: Segments) -> None:
    """First and last runs, which joining kept back."""
    first = lines[FIRST_END] - lines[FIRST_START]
    empty = lines.shape[1] - int(np.count_nonzero(lines[FIRST_START] >= 0))
    _add(histogram, first)
    histogram[1] -= empty  # [-1, 0)
    last = lines[LAST_END] - lines[LAST_START]
    last[lines[LAST_START] == lines[FIRST_START]] = 0  # the same run
    _add(histogram, last)
    histogram[0] = 0


def _add(histogram: NDArray[np.int64], lengths: NDArray[np.integer]) -> None:
    if len(lengths):
        counts = np.bincount(lengths)
        histogram[: len(counts)] += counts


def _outside(n: int, theiler: int, k_first: int) -> NDArray[np.bool_]:
    """Diagonals that count lines."""
    offsets = np.arange(k_first, k_first + n)
    outside: NDArray[np.bool_] = np.abs(offsets) >= theiler
    return outside
