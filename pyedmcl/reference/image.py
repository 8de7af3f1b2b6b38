"""Oracle of recurrence plots as images: the whole matrix in memory, then added up pixel by pixel."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .rqa import NORMS, compared, points_of, recurrence_matrix


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
    """Recurrent cells of each pixel; ``limit`` and ``inner`` are in the unit of :func:`.rqa.compared`."""
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
