"""The Zarr v3 layout of a matrix kept in blocks of rows: metadata, chunk names and bytes, reading in parts.

The layout is written here and not by zarr-python: a block must be on the disk (file and name) before the journal calls
it done, which no Zarr library promises. It stays the plainest form of the standard (raw little-endian chunks, no
compression), so that every Zarr v3 reader opens it. The optional crc32c codec is left out since the standard library
has no such sum; the journal holds a SHA-256 of each chunk instead.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError

METADATA = "zarr.json"
#: Data types in use: Zarr's name -> NumPy's, byte order fixed.
DTYPES: dict[str, np.dtype[Any]] = {"float32": np.dtype("<f4"), "float64": np.dtype("<f8"), "int32": np.dtype("<i4")}


def group_metadata(attributes: dict[str, Any]) -> bytes:
    """The text of a group's ``zarr.json``."""
    return _text({"zarr_format": 3, "node_type": "group", "attributes": attributes})


def array_metadata(
    shape: tuple[int, ...],
    chunk_shape: tuple[int, ...],
    dtype: str,
    fill_value: int | str,
    dimension_names: tuple[str, ...],
    attributes: dict[str, Any] | None = None,
) -> bytes:
    """The text of an array's ``zarr.json``; ``dtype`` is a key of :data:`DTYPES`, "NaN" is a legal fill value."""
    return _text(
        {
            "zarr_format": 3,
            "node_type": "array",
            "shape": list(shape),
            "data_type": dtype,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(chunk_shape)}},
            # "." keeps all chunks of an array in one folder: one fsync makes a new name durable.
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "."}},
            "fill_value": fill_value,
            "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
            "dimension_names": list(dimension_names),
            "attributes": attributes or {},
        }
    )


def _text(document: dict[str, Any]) -> bytes:
    return json.dumps(document, indent=1, allow_nan=False).encode() + b"\n"


def chunk_name(*index: int) -> str:
    """File name of a chunk within its array's folder, e.g. ``c.3.0``."""
    return ".".join(["c", *map(str, index)])


def chunk_bytes(rows: NDArray[Any], chunk_rows: int, dtype: str) -> memoryview:
    """A chunk's bytes: ``rows`` (r x n), followed by rows of NaN up to ``chunk_rows``.

    The standard wants the last chunk as large as all others. Copies only where it must.
    """
    stored = DTYPES[dtype]
    if len(rows) == chunk_rows:
        chunk = np.ascontiguousarray(rows, dtype=stored)
    else:
        chunk = np.full((chunk_rows, rows.shape[1]), np.nan, dtype=stored)
        chunk[: len(rows)] = rows
    return chunk.reshape(-1).view(np.uint8).data


class LazyMatrix:
    """A matrix on disk that is read when indexed, block by block; never more than a block beside the result.

    Index it with rows or (rows, columns), each an int, a slice, or a one-dimensional array of ints or booleans (an
    array on one axis only). ``numpy.asarray`` reads all of it.

    Parameters
    ----------
    shape : (int, int)
    dtype : str
        Key of :data:`DTYPES`.
    block_rows : int
        Rows per block.
    read : callable
        ``read(block, first, last)`` gives rows first..last-1 of a block (numbered within it), or None where the block
        is not there: its rows are NaN then.
    """

    ndim = 2

    def __init__(
        self,
        shape: tuple[int, int],
        dtype: str,
        block_rows: int,
        read: Callable[[int, int, int], NDArray[Any] | None],
    ) -> None:
        self.shape = shape
        self.dtype = np.dtype(dtype)
        self._block_rows = block_rows
        self._read = read

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"LazyMatrix(shape={self.shape}, dtype={self.dtype})"

    def __getitem__(self, key: Any) -> Any:
        rows, columns = self._split(key)
        # The index arrays have NumPy find the meaning (negative, step, out of range) at 8 bytes per row or column.
        row_numbers = np.arange(self.shape[0])[rows]
        width = np.arange(self.shape[1])[columns]
        out = np.empty((row_numbers.size, *width.shape), dtype=self.dtype)
        flat = row_numbers.reshape(-1)
        blocks = flat // self._block_rows
        for block in np.unique(blocks):
            places = np.flatnonzero(blocks == block)
            local = flat[places] - block * self._block_rows
            first, last = int(local.min()), int(local.max()) + 1
            part = self._read(int(block), first, last)
            # Columns first: for an int or a slice that is a view, and the copy is as small as the answer.
            out[places] = np.nan if part is None else part[:, columns][local - first]
        return out[0] if row_numbers.ndim == 0 else out

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("a matrix on disk cannot be turned into an array without a copy")
        whole: NDArray[Any] = self[:]
        return whole if dtype is None else whole.astype(dtype, copy=False)

    def _split(self, key: Any) -> tuple[Any, Any]:
        parts = list(key) if isinstance(key, tuple) else [key]
        for place, part in enumerate(parts):
            if part is Ellipsis:
                parts[place : place + 1] = [slice(None)] * (3 - len(parts))
                break
        if len(parts) > 2 or any(part is None or part is Ellipsis for part in parts):
            raise IndexError(f"two axes, rows and columns, can be indexed here; got {key!r}")
        parts += [slice(None)] * (2 - len(parts))
        arrays = [np.ndim(part) for part in parts if not isinstance(part, slice)]
        if any(ndim > 1 for ndim in arrays) or arrays.count(1) > 1:
            raise IndexError("one-dimensional index arrays only, and on one axis: take the other from the result")
        return parts[0], parts[1]


def checked_rows(rows: Any, shape: tuple[int, int], dtype: str) -> NDArray[Any]:
    """``rows`` as an array of ``shape`` that may be stored as ``dtype``. Raises InputError."""
    array = np.asarray(rows)
    if array.shape != shape:
        raise InputError(f"this block has the shape {shape}, got {array.shape}")
    if array.dtype.kind != "f":
        raise InputError(f"rho is stored as {dtype}; floating point numbers are needed, got {array.dtype}")
    return array
