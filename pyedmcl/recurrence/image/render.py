"""Recurrent cells or mean distances per pixel of a recurrence plot, on a device, without the matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...codegen.build import build
from ...device.memory import budget
from ...device.quirks import quirks_for
from ...device.slots import in_order
from ...errors import DeviceMemoryError, InputError
from ...kernels import spec
from ...launch.pacing import Pacer
from ...launch.progress import told
from ...tuning.parameters import ParameterChoice, adjusted, parameters
from .data import Floats, SweepData, points_there, prepare
from .open_cells import OpenCells

if TYPE_CHECKING:
    from ...device.executor import Buffer, Executor
    from ..problem import RqaProblem

_GROUPS_MOST = 60_000  # along the second axis of a launch; NVIDIA refuses more than 65,535
_REGISTERS = 48  # coordinates that a work-item of a GPU may keep


@dataclass(frozen=True)
class Image:
    """What a device found, and how.

    Attributes
    ----------
    values : ndarray (pixel rows, pixel columns)
        Counts (int64), or mean distances (float64, NaN where a pixel has no cell without a gap).
    parameters, grade
        Tuned parameters and how well they are known.
    """

    values: NDArray[Any]
    parameters: dict[str, Any]
    grade: str


def pixel_edges(n: int, pixels: int) -> NDArray[np.int64]:
    """First cells of ``pixels`` pixels over ``n`` cells, and the end: floor(p * n / pixels)."""
    edges: NDArray[np.int64] = np.arange(pixels + 1, dtype=np.int64) * n // pixels
    return edges


def render_image(
    executor: Executor,
    problem: RqaProblem,
    x: Floats,
    y: Floats | None = None,
    *,
    pixels: tuple[int, int],
    mean: bool = False,
) -> Image:
    """The recurrence plot of a problem as an image; with ``mean`` its distances instead.

    Pixel (p, q) holds rows floor(p * n_rows / P) to floor((p + 1) * n_rows / P) - 1, and columns likewise. Memory is
    proportional to the series and to the image.

    Parameters
    ----------
    executor : Executor
    problem : RqaProblem
        With one radius, which ``mean`` ignores, and not joint.
    x, y : ndarray (n,) or (n_points, n_features)
        Series, or points where ``problem.embedded``. NaN for gaps.
    pixels : (int, int)
        Rows and columns of pixels, at most the numbers of points.
    mean : bool

    Raises
    ------
    InputError
        A radius too many, or float64 is needed where the device has none.
    DeviceMemoryError
        Image and series do not fit.
    """
    if problem.joint is not None or (not mean and problem.n_radii != 1):
        raise InputError(f"radius={problem.radii!r}: a plot has one radius and is of one pair of series")
    other = x if y is None else y
    data = prepare(problem, x, other, mean)
    if data.dtype == "float64" and not executor.info.fp64:
        raise InputError(
            f"dtype='float64': the device {executor.info.name} has no double precision; use float32, which exact=True "
            "decides in float64 on the processor where it must, or another device"
        )
    symmetric = problem.symmetric and pixels[0] == pixels[1]
    down, across = pixel_edges(problem.n_rows, pixels[0]), pixel_edges(problem.n_columns, pixels[1])
    largest = int(np.diff(down).max()) * int(np.diff(across).max())
    values: dict[str, Any] = {
        "m": problem.coordinates, "tau": 1 if problem.embedded else problem.tau, "metric": problem.metric,
        "dtype": data.dtype, "mode": "mean" if mean else "count", "embedded": problem.embedded, "exact": data.exact,
        "corridor": problem.inner is not None and not mean,
        "per_column": problem.column_limits is not None and not mean,
        "listed": data.exact and not executor.info.fp64, "wide": mean or largest >= 2**32,
    }  # fmt: skip
    choice = _parameters(executor, values, problem)
    values |= choice.parameters
    open_cells = OpenCells(problem, data, pixels, symmetric) if values["listed"] else None
    words = _launch_all(executor, problem, data, values, pixels, down, symmetric, open_cells)
    found = words[..., 0].astype(np.int64)
    if values["wide"]:
        found |= words[..., 1].astype(np.int64) << 32
    if open_cells is not None:
        found += open_cells.counts
    if symmetric:
        diagonal = found.diagonal().copy()  # what lies below it is zero as yet
        found = found + found.T
        np.fill_diagonal(found, diagonal)
    if not mean:
        return Image(found, dict(choice.parameters), choice.grade)
    there = points_there(data.rows, problem, problem.n_rows), points_there(data.columns, problem, problem.n_columns)
    sides = (np.add.reduceat(t.astype(np.float64), e[:-1]) for t, e in zip(there, (down, across), strict=True))
    cells = np.outer(*sides)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.where(cells > 0, found.astype(np.float64) / cells, np.nan) * data.unit(largest)
    return Image(means, dict(choice.parameters), choice.grade)


def _parameters(executor: Executor, values: dict[str, Any], problem: RqaProblem) -> ParameterChoice:
    """Tuned parameters, adapted to the coordinates of a point and to the device's local memory."""
    sizes = {"rows": problem.n_rows, "columns": problem.n_columns}
    choice = parameters(spec("recurrence_image"), values, executor.info, sizes)
    chosen = dict(choice.parameters)
    if choice.grade == "default" and quirks_for(executor.info).scalar_work_items:
        while chosen["vectors"] > 1 and chosen["vectors"] * values["m"] > _REGISTERS:
            chosen["vectors"] //= 2
    item = 8 if values["dtype"] == "float64" else 4
    halo = (values["m"] - 1) * values["tau"]
    rows = chosen["tile"] * values["m"] if values["embedded"] else chosen["tile"] + halo
    places = 12 * chosen["wg"] * chosen["lanes"] * chosen["vectors"]
    if chosen["staged"] and rows * item + places > quirks_for(executor.info).local_bytes // 2:
        chosen["staged"] = 0
    why = "fewer vectors where the compiler would run out of registers, nothing staged that local memory cannot hold"
    return ParameterChoice(adjusted(choice, chosen, why), choice.grade)


def _pieces(down: NDArray[np.int64], most: int) -> NDArray[np.int32]:
    """Rows cut at the edges of pixels and to at most ``most``: (pixel row, first, end, first of that pixel row)."""
    heights = np.diff(down)
    parts = -(-heights // most)
    pixel = np.repeat(np.arange(len(heights)), parts)
    part = np.arange(len(pixel)) - np.repeat(np.cumsum(parts) - parts, parts)
    begin = down[pixel] + part * most
    end = np.minimum(begin + most, down[pixel + 1])
    return np.ascontiguousarray(np.stack([pixel, begin, end, down[pixel]], axis=1), dtype=np.int32)


def _launch_all(
    executor: Executor, problem: RqaProblem, data: SweepData, values: dict[str, Any], pixels: tuple[int, int],
    down: NDArray[np.int64], symmetric: bool, open_cells: OpenCells | None,
) -> NDArray[np.uint32]:  # fmt: skip
    kernel_spec = spec("recurrence_image")
    kernel = build(executor, kernel_spec, values)
    clear = build(executor, kernel_spec, values, "clear_image")
    real = np.dtype(data.dtype).type
    width = values["wg"] * values["lanes"] * values["vectors"]
    chunks = -(-problem.n_columns // width)
    pieces = _pieces(down, values["tile"] if values["listed"] else values["piece"])
    words = 2 if values["wide"] else 1
    image = np.empty((*pixels, words), np.uint32)
    rows, columns = _side(data.rows, 0, np.inf), _side(data.columns, width, -np.inf)
    more: list[NDArray[Any]] = []
    if open_cells is not None:
        more = [np.empty((open_cells.room(chunks * width), 4), np.int32), np.zeros(1, np.uint32)]
    elif data.rows64 is not None and data.columns64 is not None:
        more = [_side(data.rows64, 0, np.inf), _side(data.columns64, width, -np.inf)]
    _check_room(executor, [rows, columns, image, pieces, *more])
    held: list[Buffer] = []
    try:
        for array in (rows, columns, pieces, image, *more):
            held.append(executor.allocate(array.nbytes) if array is image else executor.upload(array))
        executor.launch(clear, (image.size,), None, image=held[3], n=image.size)
        largest = int(np.diff(down).max()) * int(np.diff(pixel_edges(problem.n_columns, pixels[1])).max())
        # The kernel takes the limits that surely and maybe hold of the outer radius, then those of the inner one.
        if values["mode"] == "mean":
            limits, limits64 = [real(data.scale(largest))], []
        else:
            limits, limits64 = (
                [_limit(executor, limit, width, held) for limit in some]
                for some in (data.limits, data.limits64 if data.exact and not open_cells else ())
            )
        tail = [*limits, *held[4 : 4 + len(more)], *limits64]
        pacer = Pacer(executor.info)
        cost = 3.0 * values["m"] + 4 + (20 if values["mode"] == "mean" else 0)
        heights = (pieces[:, 2] - pieces[:, 1]).astype(np.int64)
        per_group = max(1, values["piece"] // max(int(heights.mean()), 1))
        at = 0
        steps = -(-heights // values["tile"])
        while at < len(pieces):
            chunk = int(pieces[at, 3]) // width if symmetric else 0
            across = (chunks - chunk) * width
            room = max(pacer.units(cost) // across, 1)
            end = at + int(np.searchsorted(np.cumsum(heights[at : at + _GROUPS_MOST * per_group]), room, side="right"))
            end = min(max(end, at + per_group), len(pieces))
            if open_cells is not None:
                end = open_cells.fitting(at, end, steps, across)
            groups = (chunks - chunk) * values["wg"], -(-(end - at) // per_group)
            head = (
                held[0], np.int32(rows.shape[1]), held[1], np.int32(columns.shape[1]), np.int32(problem.n_columns),
                held[2], np.int32(at), np.int32(end), np.int32(per_group), np.int32(chunk), np.int32(pixels[1]),
                np.int32(symmetric), held[3],
            )  # fmt: skip
            event = executor.launch(kernel, groups, (values["wg"], 1), **in_order(kernel, (*head, *tail)))
            pacer.launched(event, cost * across * float(heights[at:end].sum()))
            if open_cells is not None:
                open_cells.take(executor, held[4], held[5])
            at = end
            told(int(pieces[at - 1, 2]), problem.n_rows, "rows")
        executor.download(held[3], image)
    finally:
        for buffer in held:
            buffer.release()
    return image


def _side(values: Floats, padding: int, gap: float) -> Floats:
    """Padded and with gaps marked so that a difference to anything is infinite."""
    padded: Floats = np.pad(values, ((0, 0), (0, padding)), constant_values=gap)
    padded[np.isnan(padded)] = gap
    return np.ascontiguousarray(padded)


def _limit(executor: Executor, limit: Floats, padding: int, held: list[Buffer]) -> Any:
    """A limit as the kernel's argument: a number, or a buffer (which joins ``held``) with one for each column."""
    if not limit.ndim:
        return limit[()]
    held.append(executor.upload(np.pad(limit, (0, padding))))
    return held[-1]


def _check_room(executor: Executor, arrays: list[NDArray[Any]]) -> None:
    allowed = budget(executor.info)
    total, largest = sum(array.nbytes for array in arrays), max(array.nbytes for array in arrays)
    if total > allowed.total or largest > allowed.largest:
        raise DeviceMemoryError(
            f"the image and the series need {total:,} bytes, the largest buffer {largest:,}; on {executor.info.name} "
            f"{allowed.total:,} may be used and {allowed.largest:,} in one buffer. Use fewer pixels, or raise "
            "PYEDMCL_MEMORY_LIMIT or PYEDMCL_MEMORY_FRACTION."
        )
