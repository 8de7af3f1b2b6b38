"""What a block of a store is as bytes: rows of a matrix, or the edges that were kept of them."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from . import zarr3
from .manifest import Manifest


def edge_dtype(rho: Any) -> np.dtype[Any]:
    """Type of an array of edges: positions of library and target, and their ``rho`` of a type."""
    return np.dtype([("library", "<i4"), ("target", "<i4"), ("rho", np.dtype(rho).newbyteorder("<"))])


class Chunks(Protocol):
    """How blocks of a store become files."""

    def name(self, block: int) -> str:
        """Name of a block's file."""

    def pack(self, content: Any, begin: int, end: int) -> tuple[memoryview, dict[str, Any]]:
        """Bytes of what the libraries ``begin`` to ``end - 1`` gave, and what the journal tells of them.

        Raises
        ------
        InputError
            Shape or type do not fit.
        """

    def size(self, entry: Mapping[str, Any]) -> int:
        """Bytes of a block with such an entry in the journal."""


def chunks_of(manifest: Manifest) -> Chunks:
    """How blocks of a store with such a manifest become files."""
    return RowChunks(manifest) if manifest.keep is None else EdgeChunks(manifest)


class RowChunks:
    """Rows of the matrix, as chunks of a Zarr array, all of one size."""

    def __init__(self, manifest: Manifest) -> None:
        self._rows, self._n, self._dtype = manifest.block_rows, manifest.shape[1], manifest.dtype

    def name(self, block: int) -> str:
        return zarr3.chunk_name(block, 0)

    def pack(self, content: Any, begin: int, end: int) -> tuple[memoryview, dict[str, Any]]:
        data = zarr3.checked_rows(content, (end - begin, self._n), self._dtype)
        return zarr3.chunk_bytes(data, self._rows, self._dtype), {}

    def size(self, entry: Mapping[str, Any]) -> int:
        return self._rows * self._n * zarr3.DTYPES[self._dtype].itemsize


class EdgeChunks:
    """Kept edges, as NPY files of one structured array each: any NumPy reads them, and their bytes follow from them."""

    def __init__(self, manifest: Manifest) -> None:
        self._dtype = edge_dtype(manifest.dtype)
        self._n = manifest.shape[1]

    def name(self, block: int) -> str:
        return zarr3.chunk_name(block) + ".npy"

    def pack(self, content: Any, begin: int, end: int) -> tuple[memoryview, dict[str, Any]]:
        edges = np.asarray(content)
        if edges.dtype != self._dtype or edges.ndim != 1:
            raise InputError(f"edges are a list of {self._dtype}, got {edges.dtype} {edges.shape}")
        held = io.BytesIO()
        np.lib.format.write_array(held, edges, (1, 0), allow_pickle=False)
        return held.getbuffer(), {"bytes": held.getbuffer().nbytes, "edges": len(edges)}

    def size(self, entry: Mapping[str, Any]) -> int:
        held = entry.get("bytes")
        return held if isinstance(held, int) else -1

    def unpack(self, data: bytes) -> NDArray[Any]:
        """Edges of a block's file, whose bytes are what was once written."""
        edges: NDArray[Any] = np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
        return edges
