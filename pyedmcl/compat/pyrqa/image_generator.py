"""Recurrence plots as image files."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ...errors import InputError, missing_extra

Path = str | os.PathLike[str]


class ImageGenerator:
    """Images of matrices whose values lie between 0 and 1."""

    @classmethod
    def generate_recurrence_plot(cls, recurrence_matrix: Any, invert: bool = True) -> Any:
        """A matrix as a PIL image, a pixel for each cell, the first row on top.

        Parameters
        ----------
        recurrence_matrix : ndarray (rows, columns)
            Between 0 and 1.
        invert : bool
            1 is black; else white.

        Raises
        ------
        InputError
            It is no such matrix.
        MissingExtraError
            Pillow is not installed.
        """
        matrix = np.asarray(recurrence_matrix)
        if matrix.ndim != 2 or not matrix.size or not (matrix.min() >= 0 and matrix.max() <= 1):
            raise InputError(
                f"recurrence_matrix: two axes and values between 0 and 1 are needed; the shape is {matrix.shape}"
                + (f", the values go from {matrix.min():g} to {matrix.max():g}" if matrix.size else "")
            )
        try:
            from PIL import Image
        except ImportError as error:
            raise missing_extra("pillow", "plot", "ImageGenerator") from error
        # In the matrix's own type: 255 of a whole number of one byte still fits.
        grey = np.floor(matrix * np.asarray(255, matrix.dtype)).astype(np.uint8)
        return Image.fromarray(255 - grey if invert else grey).convert("RGB")

    @classmethod
    def save_recurrence_plot(cls, recurrence_matrix: Any, path: Path) -> None:
        """Write a plot in which recurrent cells are black; the path's ending says which format."""
        cls.generate_recurrence_plot(recurrence_matrix).save(path)

    @classmethod
    def save_unthresholded_recurrence_plot(cls, recurrence_matrix: Any, path: Path) -> None:
        """Write a plot in which near cells are dark."""
        cls.generate_recurrence_plot(recurrence_matrix, invert=False).save(path)
