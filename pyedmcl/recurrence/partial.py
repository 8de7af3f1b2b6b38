"""Counts of some rows of a recurrence matrix, and their recombination: associative, in any order."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .cells import identity_lines
from .counts import Counts, Histogram, trimmed

#: Fields of a segment, as ``clkernels/segment_join.clh`` has them.
FIELDS = 5
FIRST_START, FIRST_END, LAST_START, LAST_END, COUNT = range(FIELDS)
DIAGONAL, BLACK, WHITE = range(3)
KINDS = ("diagonals", "rows", "columns")

Segments = NDArray[np.int32]  # (FIELDS, lines)


@dataclass(frozen=True, eq=False)
class Partial:
    """What rows ``begin`` to ``end`` of a matrix contribute; for one radius.

    Attributes
    ----------
    begin, end : int
        Rows, half open.
    diagonals, rows, columns : ndarray of int32 (5, lines held)
        Per line the first black run [start, end), the last one, and the number of black cells; a first start of -1
        where there is none. ``rows`` has no lines unless the matrix is symmetric: below its diagonal column i goes on
        as row i, so that only cells above the diagonal are looked at.
    histograms : ndarray of int64 (3, longest + 1)
        Diagonal lines, black verticals and white verticals that lie between the first and the last run of their line;
        up to the longest of these.
    lines : ndarray of int64 (3, 2)
        Of diagonals, rows and columns: the first line that is held, and how many lines the matrix has. These rows have
        no cells of the others. All are held where nothing is given.
    """

    begin: int
    end: int
    diagonals: Segments
    rows: Segments
    columns: Segments
    histograms: NDArray[np.int64]
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
    parts : sequence of Partial
    theiler, k_first : int
        Diagonals with |offset| < theiler count no lines; ``k_first`` is the offset of the first diagonal.

    Raises
    ------
    ValueError
        Parts overlap or leave rows out.
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
