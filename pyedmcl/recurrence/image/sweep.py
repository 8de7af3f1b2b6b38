"""The launches of an image: rows in pieces, columns in chunks, as much at once as a launch may take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...codegen.build import build
from ...device.memory import budget
from ...errors import DeviceMemoryError
from ...kernels import spec
from ...launch.delivery import Pixels
from ...launch.pacing import Pacer
from ...launch.sizes import open_size
from .data import Floats, SweepData
from .open_cells import OpenCells

if TYPE_CHECKING:
    from ...device.executor import Buffer, Executor
    from ...jobs.blocks import Block, Report
    from ..problem import RqaProblem

_GROUPS_MOST = 60_000  # along the second axis of a launch; NVIDIA refuses more than 65,535


def pixel_edges(n: int, pixels: int) -> NDArray[np.int64]:
    """First cells of ``pixels`` pixels over ``n`` cells, and the end: floor(p * n / pixels)."""
    edges: NDArray[np.int64] = np.arange(pixels + 1, dtype=np.int64) * n // pixels
    return edges


@dataclass(frozen=True, eq=False)
class Raster:
    """Which cells fall into which pixels.

    Attributes
    ----------
    n_rows, n_columns : int
        Cells.
    pixels : (int, int)
        Rows and columns of pixels.
    symmetric : bool
        Only pixels on and above the diagonal are computed.
    """

    n_rows: int
    n_columns: int
    pixels: tuple[int, int]
    symmetric: bool

    @cached_property
    def down(self) -> NDArray[np.int64]:
        """First rows of the rows of pixels, and the end."""
        return pixel_edges(self.n_rows, self.pixels[0])

    @cached_property
    def across(self) -> NDArray[np.int64]:
        """First columns of the columns of pixels, and the end."""
        return pixel_edges(self.n_columns, self.pixels[1])

    @property
    def largest(self) -> int:
        """Cells of the largest pixel."""
        return int(np.diff(self.down).max()) * int(np.diff(self.across).max())


class ImageSweep:
    """One image on one device, which keeps the series.

    Parameters
    ----------
    executor : Executor
    problem : RqaProblem
    data : SweepData
    raster : Raster
    values : mapping
        Specialisation and parameters of ``recurrence_image``.
    """

    def __init__(
        self, executor: Executor, problem: RqaProblem, data: SweepData, raster: Raster, values: dict[str, Any]
    ) -> None:
        self.executor, self.data, self.raster, self.values = executor, data, raster, values
        self._open = OpenCells(problem, data, raster.pixels[1], raster.symmetric) if values["listed"] else None
        self._kernel = build(executor, spec("recurrence_image"), values)
        self._clear = build(executor, spec("recurrence_image"), values, "clear_image")
        self._width = values["wg"] * values["lanes"] * values["vectors"]  # columns of a chunk
        self._chunks = -(-raster.n_columns // self._width)
        self._pieces = _pieces(raster.down, values["tile"] if values["listed"] else values["piece"])
        self._per_group: int = max(1, values["piece"] // max(int(_heights(self._pieces).mean()), 1))
        self._held: dict[str, Buffer] = {}
        try:
            self._upload()
        except BaseException:
            self.release()
            raise

    @property
    def listed(self) -> bool:
        """Whether cells near a limit are decided on the host."""
        return self._open is not None

    def run(self, block: Block, report: Report, deliver: Callable[[Pixels], None] | None = None) -> NDArray[np.int64]:
        """Recurrent cells, or fixed-point sums of distances, of each pixel; below the diagonal of symmetric ones, 0.

        Parameters
        ----------
        block : Block
            Rows of pixels.
        report : callable
            Is told how many rows of the matrix are done.
        deliver : callable, optional
            Gets the image on the device; what is returned is empty then.
        """
        begin, end = (int(at) for at in np.searchsorted(self._pieces[:, 0], (block.begin, block.end)))
        pieces = self._pieces[begin:end] - np.array([block.begin, 0, 0, 0], np.int32)
        words = 2 if self.values["wide"] else 1
        image = np.empty((len(block), self.raster.pixels[1], words), np.uint32)
        self._check_room(pieces, image)
        held: dict[str, Buffer] = {}
        try:
            held["image"] = self.executor.allocate(image.nbytes)
            held["pieces"] = self.executor.upload(pieces)
            self.executor.launch(self._clear, open_size(image.size), None, image=held["image"], n=image.size)
            if self._open is not None:
                self._open.begin(len(block))
            self._launch_all(pieces, held, report)
            if deliver is not None:
                deliver(Pixels(held["image"], self.raster.symmetric, words))
                return np.empty((0, 0), np.int64)
            self.executor.download(held["image"], image)
        finally:
            for buffer in held.values():
                buffer.release()
        sums = image[..., 0].astype(np.int64)
        if self.values["wide"]:
            sums |= image[..., 1].astype(np.int64) << 32
        if self._open is not None:
            sums += self._open.counts
        # The kernel leaves out pixels whose column is less than their row, which it counts from the block's first one:
        # of a later block, some that lie below the diagonal are left, with a part of their cells.
        return np.triu(sums, block.begin) if self.raster.symmetric and block.begin else sums

    def release(self) -> None:
        """Give the device memory back."""
        for buffer in self._held.values():
            buffer.release()
        self._held.clear()

    def _upload(self) -> None:
        """Put what all blocks read on the device, by the names of the kernel's arguments."""
        data, width = self.data, self._width
        arrays: dict[str, NDArray[Any]] = {
            "rows": _side(data.rows, 0, np.inf), "columns": _side(data.columns, width, -np.inf)
        }  # fmt: skip
        if self._open is not None:
            arrays["open_cells"] = np.empty((self._open.room(self._chunks * width), 4), np.int32)
            arrays["n_open"] = np.zeros(1, np.uint32)
        elif data.rows64 is not None and data.columns64 is not None:
            arrays["rows64"] = _side(data.rows64, 0, np.inf)
            arrays["columns64"] = _side(data.columns64, width, -np.inf)
        arrays |= {name: np.pad(limit, (0, width)) for name, limit in self._limits().items() if limit.ndim}
        self._sizes = [array.nbytes for array in arrays.values()]
        self._check_room()
        self._strides = {f"{side[:-1]}_stride": arrays[side].shape[1] for side in ("rows", "columns")}
        for name, array in arrays.items():
            self._held[name] = self.executor.upload(array)

    def _limits(self) -> dict[str, Floats]:
        """Limits by the names of the kernel's arguments: a number each, or one for each column."""
        if self.values["mode"] == "mean":
            return {}
        sweeps = range(2 if self.data.exact else 1)  # the two ends of a guard band
        sides = ("limit", "inner") if self.values["corridor"] else ("limit",)
        plural = "s" if self.values["per_column"] else ""
        names = [f"{side}{sweep}{plural}" for side in sides for sweep in sweeps]
        limits = dict(zip(names, self.data.limits, strict=True))
        if self.data.exact and self._open is None:
            limits |= zip([f"{side}{plural}64" for side in sides], self.data.limits64, strict=True)
        return limits

    def _launch_all(self, pieces: NDArray[np.int32], held: dict[str, Buffer], report: Report) -> None:
        """All pieces of a block, some of them at a time."""
        v, raster = self.values, self.raster
        buffers = {**self._held, **held}
        heights = _heights(pieces)
        numbers = {name: float(limit) for name, limit in self._limits().items() if not limit.ndim}
        if v["mode"] == "mean":
            numbers["scale"] = self.data.scale(raster.largest)
        pacer = Pacer(self.executor.info)
        cost = 3.0 * v["m"] + 4 + (20 if v["mode"] == "mean" else 0)
        at = 0
        while at < len(pieces):
            chunk = int(pieces[at, 3]) // self._width if raster.symmetric else 0
            columns = (self._chunks - chunk) * self._width
            end = self._end(heights, at, max(pacer.units(cost) // columns, 1), columns)
            groups = (self._chunks - chunk) * v["wg"], -(-(end - at) // self._per_group)
            event = self.executor.launch(
                self._kernel, groups, (v["wg"], 1), **buffers, **self._strides, **numbers, n_columns=raster.n_columns,
                piece_begin=at, piece_end=end, per_group=self._per_group, chunk_begin=chunk, pixels=raster.pixels[1],
                symmetric=raster.symmetric,
            )  # fmt: skip
            pacer.launched(event, cost * columns * float(heights[at:end].sum()))
            if self._open is not None:
                self._open.take(self.executor, buffers["open_cells"], buffers["n_open"])
            at = end
            report(int(pieces[at - 1, 2] - pieces[0, 1]))

    def _end(self, heights: NDArray[np.int64], at: int, rows: int, columns: int) -> int:
        """The end of the pieces of a launch that begins with piece ``at`` and takes about ``rows`` rows."""
        so_far = np.cumsum(heights[at : at + _GROUPS_MOST * self._per_group])
        end = at + int(np.searchsorted(so_far, rows, side="right"))
        end = min(max(end, at + self._per_group), len(heights))
        if self._open is None:
            return end
        steps: NDArray[np.int64] = -(-heights // self.values["tile"])
        return self._open.fitting(at, end, steps, columns)

    def _check_room(self, *more: NDArray[Any]) -> None:
        """Refuse what does not fit beside the series; ``more`` are arrays of a block."""
        allowed = budget(self.executor.info)
        sizes = [*self._sizes, *(array.nbytes for array in more)]
        if sum(sizes) > allowed.total or max(sizes) > allowed.largest:
            raise DeviceMemoryError(
                f"the image and the series need {sum(sizes):,} bytes, the largest buffer {max(sizes):,}; on "
                f"{self.executor.info.name} {allowed.total:,} may be used and {allowed.largest:,} in one buffer. Use "
                "fewer pixels, or raise PYEDMCL_MEMORY_LIMIT or PYEDMCL_MEMORY_FRACTION."
            )


def _pieces(down: NDArray[np.int64], most: int) -> NDArray[np.int32]:
    """Rows cut at the edges of pixels and to at most ``most``: (pixel row, first, end, first of that pixel row)."""
    heights = np.diff(down)
    parts = -(-heights // most)
    pixel = np.repeat(np.arange(len(heights)), parts)
    part = np.arange(len(pixel)) - np.repeat(np.cumsum(parts) - parts, parts)
    begin = down[pixel] + part * most
    end = np.minimum(begin + most, down[pixel + 1])
    return np.ascontiguousarray(np.stack([pixel, begin, end, down[pixel]], axis=1), dtype=np.int32)


def _heights(pieces: NDArray[np.int32]) -> NDArray[np.int64]:
    """Rows of each piece."""
    return (pieces[:, 2] - pieces[:, 1]).astype(np.int64)


def _side(values: Floats, padding: int, gap: float) -> Floats:
    """Padded and with gaps marked so that a difference to anything is infinite."""
    padded: Floats = np.pad(values, ((0, 0), (0, padding)), constant_values=gap)
    padded[np.isnan(padded)] = gap
    return np.ascontiguousarray(padded)
