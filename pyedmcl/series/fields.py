"""Fields: series on a grid of places (latitude and longitude, say), of which those without any value are left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError


@dataclass(frozen=True, eq=False)
class Grid:
    """Where series lie on a grid.

    Attributes
    ----------
    dims : tuple of str
        Dimensions of the grid.
    shape : tuple of int
    coords : mapping of str to ndarray
        Coordinates along those dimensions that have any.
    cells : ndarray of int (n_series,)
        Cell of each series, in the order of memory (the last dimension runs fastest).
    """

    dims: tuple[str, ...]
    shape: tuple[int, ...]
    coords: Mapping[str, NDArray[Any]]
    cells: NDArray[np.int_]

    @property
    def names(self) -> tuple[str, ...]:
        """A name for each series, such as "lat=47.5 lon=8.0"."""
        rows = zip(*(values.tolist() for values in self.columns().values()), strict=True)
        return tuple(" ".join(f"{dim}={label}" for dim, label in zip(self.dims, row, strict=True)) for row in rows)

    def columns(self) -> dict[str, NDArray[Any]]:
        """The coordinates of each series, by dimension; positions where there are none."""
        at = np.unravel_index(self.cells, self.shape)
        return {dim: np.asarray(self.coords[dim])[place] if dim in self.coords else place
                for dim, place in zip(self.dims, at, strict=True)}  # fmt: skip

    def described(self) -> dict[str, Any]:
        """As plain data, for :meth:`from_described`: cells as ranges (first, number), since most follow each other."""
        begins = np.flatnonzero(np.diff(self.cells, prepend=-2) != 1)
        return {
            "dims": list(self.dims), "shape": list(self.shape),
            "coords": {dim: _described(labels) for dim, labels in self.coords.items()},
            "cells": np.stack([self.cells[begins], np.diff(begins, append=len(self.cells))], axis=1).tolist(),
        }  # fmt: skip

    @classmethod
    def from_described(cls, record: Mapping[str, Any]) -> Grid:
        """The inverse of :meth:`described`."""
        coords = {dim: np.array(own["values"]).astype(own["dtype"]) for dim, own in record["coords"].items()}
        cells = np.concatenate([np.arange(first, first + number) for first, number in record["cells"]])
        return cls(tuple(record["dims"]), tuple(record["shape"]), coords, cells)

    def spread(self, values: NDArray[Any], axis: int) -> NDArray[Any]:
        """Values with the grid in place of an axis of series; NaN, or no text, in cells without a series."""
        moved = np.moveaxis(np.asarray(values), axis, 0)
        text = moved.dtype.kind == "U"
        kind = moved.dtype if text or moved.dtype.kind == "f" else np.dtype(np.float64)
        out = np.full((int(np.prod(self.shape)), *moved.shape[1:]), "" if text else np.nan, kind)
        out[self.cells] = moved
        on_grid = out.reshape(*self.shape, *moved.shape[1:])
        n = len(self.shape)
        return np.moveaxis(on_grid, range(n), range(axis, axis + n))


def _described(labels: NDArray[Any]) -> dict[str, Any]:
    """Type and values of a coordinate; values that are no numbers of JSON (dates, NaN) as texts."""
    if labels.dtype.kind in "iub" or (labels.dtype.kind == "f" and np.isfinite(labels).all()):
        return {"dtype": str(labels.dtype), "values": labels.tolist()}
    texts = labels.astype(str)
    return {"dtype": str(labels.dtype if labels.dtype.kind in "fMm" else texts.dtype), "values": texts.tolist()}


def on_grid(
    values: NDArray[Any], dims: tuple[str, ...], coords: Mapping[str, NDArray[Any]], what: str
) -> tuple[NDArray[Any], Grid]:
    """A field (time, ...) as series (time, n), and where they lie; cells that are gaps throughout are left out."""
    flat = values.reshape(len(values), -1)
    kept = np.arange(flat.shape[1])
    if flat.dtype.kind == "f":
        kept = np.flatnonzero(~np.isnan(flat).all(axis=0))
        if not len(kept):
            raise InputError(f"{what}: there are nothing but gaps (NaN) in all {flat.shape[1]:,} cells of the field")
    grid = Grid(dims, values.shape[1:], coords, kept)
    return flat if len(kept) == flat.shape[1] else flat[:, kept], grid


def grids_from(records: Sequence[Any] | None) -> tuple[Grid | None, Grid | None]:
    """The grids of libraries and of targets from what a manifest holds; None for what is no field."""
    library, target = (None if one is None else Grid.from_described(one) for one in records or (None, None))
    return library, target
