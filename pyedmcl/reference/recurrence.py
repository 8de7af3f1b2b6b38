"""Oracles of recurrence analysis: the whole matrix in memory, its lines one after the other, and its image."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

# Oracle of recurrence analysis: the whole matrix in memory, its lines found one after the other.


Matrix = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.floating[Any]]



class Norm(NamedTuple):
    """A metric: what a coordinate adds, how that is joined, what stands for a radius, the distance in the end, and
    the points that are compared."""

    term: Callable[[Any], Any]
    join: Callable[[Any, Any], Any]
    limit: Callable[[Any], Any]
    distance: Callable[[Any], Any]
    points: Callable[[Floats], Floats] = lambda points: points


def _unit(points: Floats) -> Floats:
    """Points of length 1; NaN for those of length 0."""
    squares = np.cumsum(points.astype(float) ** 2, axis=1)[:, -1:]
    with np.errstate(invalid="ignore"):
        units: Floats = points / np.sqrt(squares)
    return units


NORMS = {
    "euclidean": Norm(lambda d: d * d, np.add, lambda r: r * r, np.sqrt),
    "maximum": Norm(np.abs, np.maximum, lambda r: r, lambda d: d),
    "manhattan": Norm(np.abs, np.add, lambda r: r, lambda d: d),
    "cosine": Norm(lambda d: d * d, np.add, lambda r: 2 * r, lambda d: d / 2, _unit),
}


def points_of(x: npt.ArrayLike, m: int, tau: int, dtype: str = "float64", metric: str = "euclidean") -> Floats:
    """Points (x[t], x[t + tau], ..., x[t + (m-1) tau]) as rows, as a metric compares them.

    An array (n, features) with m = 1 holds points already.
    """
    values = np.asarray(x)
    if values.ndim == 1:
        n = len(values) - (m - 1) * tau
        values = np.stack([values[e * tau : e * tau + n] for e in range(m)], axis=1)
    return NORMS[metric].points(values).astype(dtype)


def compared(points: Floats, others: Floats, metric: str) -> Floats:
    """What is compared with a limit, for all pairs: sums of squares (Euclidean) or of magnitudes, or the largest one.

    Coordinates are added in ascending order, each operation rounded to the points' precision. NaN stays NaN.
    """
    norm = NORMS[metric]
    total = np.zeros((len(points), len(others)), points.dtype)
    with np.errstate(over="ignore", under="ignore"):
        for a, b in zip(points.T, others.T, strict=True):
            total = norm.join(total, norm.term(a[:, None] - b[None, :]))
    return total


def recurrence_matrix(
    distances: Floats, limit: npt.ArrayLike, *, inner: float | None = None, strict: bool = True
) -> Matrix:
    """Cells whose compared distance lies below ``limit`` (a number, or one per column) and above ``inner``."""
    limit = np.asarray(limit, np.float64)
    with np.errstate(invalid="ignore"):
        if strict:
            matrix = distances < limit
            return matrix if inner is None else matrix & (distances > inner)
        matrix = distances <= limit
        return matrix if inner is None else matrix & (distances >= inner)


def runs(line: Matrix) -> list[tuple[bool, int, int]]:
    """Runs of equal cells as (recurrent, first cell, length)."""
    lengths: list[tuple[bool, int, int]] = []
    start = 0
    for at in range(1, len(line) + 1):
        if at == len(line) or line[at] != line[start]:
            lengths.append((bool(line[start]), start, at - start))
            start = at
    return lengths


def line_counts(matrix: Matrix, *, theiler: int = 0, theiler_everywhere: bool = False) -> dict[str, Any]:
    """All integer counts of a matrix, by the names of ``pyedmcl.recurrence.counts.Counts``."""
    n_rows, n_columns = matrix.shape
    offset = np.arange(n_columns)[None, :] - np.arange(n_rows)[:, None]
    outside = matrix & (np.abs(offset) >= theiler)
    kept = outside if theiler_everywhere else matrix
    longest = max(n_rows, n_columns) + 1
    diagonals, verticals, whites, borders = (np.zeros(longest, np.int64) for _ in range(4))
    per_diagonal = np.zeros(n_rows + n_columns - 1, np.int64)
    for k in range(-(n_rows - 1), n_columns):
        per_diagonal[k + n_rows - 1] = int(np.diagonal(kept, k).sum())
        for black, _, length in runs(np.diagonal(outside, k)):
            diagonals[length] += black
    sums = dict.fromkeys(("period_sum", "period_count", "gap_sum", "gap_count"), 0)
    for column in kept.T:
        blacks = []
        for black, first, length in runs(column):
            if black:
                verticals[length] += 1
                blacks.append((first, length))
            elif first == 0 or first + length == n_rows:
                borders[length] += 1
            else:
                whites[length] += 1
        if blacks:
            sums["period_sum"] += blacks[-1][0] - blacks[0][0]
            sums["period_count"] += len(blacks) - 1
            sums["gap_sum"] += sum(blacks[-1]) - 1 - blacks[0][0]
            sums["gap_count"] += int(column.sum()) - 1
    return {
        "n_rows": n_rows,
        "n_columns": n_columns,
        "points": int(kept.sum()),
        "diagonals": _trimmed(diagonals),
        "verticals": _trimmed(verticals),
        "whites": _trimmed(whites),
        "white_borders": _trimmed(borders),
        "columns": kept.sum(axis=0).astype(np.int64),
        "per_diagonal": per_diagonal,
        **sums,
    }


def _trimmed(histogram: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    filled = np.flatnonzero(histogram)
    return histogram[: int(filled[-1]) + 1 if len(filled) else 1]


def network(matrix: Matrix, theiler: int = 1) -> dict[str, Any]:
    """Degrees, closed pairs of neighbours of each node, local clustering and transitivity of the recurrence network.

    Links are the recurrent cells with |i - j| >= max(theiler, 1); the clustering of a node of degree below 2 is 0.
    """
    n = len(matrix)
    apart = np.abs(np.arange(n)[:, None] - np.arange(n)[None, :])
    links = (matrix & (apart >= max(theiler, 1))).astype(np.int64)
    degree = links.sum(axis=1)
    closed = np.diagonal(links @ links @ links)
    pairs = degree * (degree - 1)
    local = np.divide(closed, pairs, out=np.zeros(n), where=pairs > 0)
    transitivity = closed.sum() / pairs.sum() if pairs.sum() else np.nan
    return {"degree": degree, "closed": closed, "clustering": local, "transitivity": float(transitivity)}


# Oracle of recurrence plots as images: the whole matrix in memory, then added up pixel by pixel.


def pixel_edges(n: int, pixels: int) -> npt.NDArray[np.int64]:
    """First cells of ``pixels`` pixels over ``n`` cells, and the end: floor(p * n / pixels)."""
    return np.array([p * n // pixels for p in range(pixels + 1)], np.int64)


def binned(matrix: npt.NDArray[Any], pixels: tuple[int, int]) -> npt.NDArray[Any]:
    """Sums of a matrix over the pixels of an image with ``pixels`` rows and columns of pixels."""
    down, across = (pixel_edges(n, p) for n, p in zip(matrix.shape, pixels, strict=True))
    return np.add.reduceat(np.add.reduceat(matrix, down[:-1], axis=0), across[:-1], axis=1)


def recurrence_counts(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    pixels: tuple[int, int],
    *,
    limit: npt.ArrayLike,
    m: int = 1,
    tau: int = 1,
    metric: str = "euclidean",
    dtype: str = "float64",
    inner: float | None = None,
    strict: bool = True,
) -> npt.NDArray[np.int64]:
    """Recurrent cells of each pixel; ``limit`` and ``inner`` are in the unit of :func:`compared`."""
    distances = compared(points_of(x, m, tau, dtype, metric), points_of(y, m, tau, dtype, metric), metric)
    matrix = recurrence_matrix(distances, limit, inner=inner, strict=strict)
    counts: npt.NDArray[np.int64] = binned(matrix.astype(np.int64), pixels)
    return counts


def mean_distances(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    pixels: tuple[int, int],
    *,
    m: int = 1,
    tau: int = 1,
    metric: str = "euclidean",
) -> npt.NDArray[np.float64]:
    """Mean distance of each pixel's cells without gaps, in float64; NaN where there is none."""
    rows, columns = (points_of(side, m, tau, metric=metric) for side in (x, y))
    distances = NORMS[metric].distance(compared(rows, columns, metric))
    present = np.isfinite(distances)
    with np.errstate(invalid="ignore"):
        means: npt.NDArray[np.float64] = binned(np.where(present, distances, 0.0), pixels) / binned(
            present.astype(np.float64), pixels
        )
    return means
