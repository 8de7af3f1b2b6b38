"""What some rows of a recurrence matrix contribute, found one line at a time; cells and problems to try it on."""

from __future__ import annotations

import itertools

import numpy as np

from pyedmcl.launch.progress import reporting
from pyedmcl.recurrence.counts import Partial
from pyedmcl.recurrence.problem import RqaProblem
from pyedmcl.recurrence.sweep import TileSweep


def reports_of(work):
    """What ``work`` returns, and what it reported on its way."""
    seen = []
    return reporting(lambda progress: work())(progress=lambda *report: seen.append(report)), seen


def count_rows(executor, problem, x, y, rows, *, tile=None):
    """What some rows contribute, for each radius."""
    sweep = TileSweep(executor, problem, x, y, tile)
    try:
        return sweep.run(*rows)
    finally:
        sweep.release()


def runs(line, position):
    """Runs [start, end) of a line whose first cell is at ``position``."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], line.astype(np.int8), [0]]))) + position
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def partial_of(cells, begin, end, *, symmetric, theiler):
    """The oracle of a sweep over rows ``begin`` to ``end``."""
    n, m = cells.shape
    histograms = np.zeros((3, max(n, m) + 1), np.int64)

    def known(lines, black, white):
        out = np.zeros((5, len(lines)), np.int32)
        out[0] = -1
        for at, (line, position, counted) in enumerate(lines):
            found = runs(line, position)
            if not found:
                continue
            out[:, at] = *found[0], *found[-1], line.sum()
            if counted:
                for a, b in found[1:-1]:
                    histograms[black, b - a] += 1
                for (_, a), (b, _) in itertools.pairwise(found):
                    if white is not None:
                        histograms[white, b - a] += 1
        return out

    diagonals = []
    for k in range(0 if symmetric else 1 - n, m):
        first, last = max(begin, -k), max(min(end, m - k), max(begin, -k))
        i = np.arange(first, last)
        diagonals.append((cells[i, i + k], first, abs(k) >= theiler))
    above = cells & (np.arange(m)[None, :] > np.arange(n)[:, None]) if symmetric else cells
    columns = [(above[begin:end, j], begin, True) for j in range(m)]
    rows = [(np.zeros(0, bool), 0, True)]
    if symmetric:
        rows = [(cells[i, i:] if begin <= i < end else np.zeros(0, bool), i, True) for i in range(n)]
    return Partial(begin, end, known(diagonals, 0, None), known(rows, 1, 2), known(columns, 1, 2), histograms)


def differences(a, b):
    """Names of the arrays in which two parts differ; positions of lines without a cell count for nothing."""
    differ = []
    for name in ("diagonals", "rows", "columns"):
        one, other = (np.where(p.segments(name)[0] >= 0, p.segments(name), -1) for p in (a, b))
        if not np.array_equal(one, other):
            differ.append(name)
    # Lengths 0 are never read.
    return differ + ([] if np.array_equal(a.counts()[:, 1:], b.counts()[:, 1:]) else ["histograms"])


def problem_of(n, m=None, *, radius=0.5, theiler=1, everywhere=False, **more):
    """Single values compared in float64."""
    settings = {"m": 1, "tau": 1, "metric": "maximum", "dtype": "float32", "exact": True, "inner": None,
                "strict": True, **more}  # fmt: skip
    return RqaProblem(
        **settings, radii=(radius,), theiler=theiler, theiler_everywhere=everywhere, n_rows=n,
        n_columns=n if m is None else m, symmetric=m is None,
    )  # fmt: skip


def series(n, seed):
    """A walk on few values: runs of all kinds, many distances equal."""
    return np.cumsum(np.random.default_rng(seed).integers(-1, 2, n)) / 4


def cells_of(problem, x, y=None):
    """The matrix of :func:`problem_of` and :func:`series`."""
    d = np.abs(x[:, None] - (x if y is None else y)[None, :])
    cells = d < problem.radii[0] if problem.strict else d <= problem.radii[0]
    if problem.theiler_everywhere:
        i, j = np.indices(cells.shape)
        cells &= np.abs(i - j) >= problem.theiler
    return cells
