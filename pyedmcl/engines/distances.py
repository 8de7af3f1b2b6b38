"""All distances between two ranges of delay-embedded rows, as a dense block on the host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..codegen.build import build
from ..device.memory import budget
from ..errors import DeviceMemoryError, InputError
from ..kernels import spec
from ..launch.pacing import Pacer
from ..tuning.parameters import parameters
from .skill import check_dtype

if TYPE_CHECKING:
    from ..device.executor import Buffer, Executor

Floats = NDArray[np.floating[Any]]

METRICS = ("euclidean", "manhattan", "maximum")
_BLOCK_BYTES_MOST = 256 << 20
# Work-groups along the second axis of a launch: NVIDIA refuses more.
_GROUPS_MOST = 65535


def distance_block(
    executor: Executor,
    query: ArrayLike,
    library: ArrayLike,
    *,
    E: int,
    tau: int = 1,
    metric: str = "euclidean",
    dtype: str = "float32",
    rows: tuple[int, int] | None = None,
    columns: tuple[int, int] | None = None,
) -> Floats:
    """Distances between rows of ``query`` and rows of ``library`` in their delay embeddings.

    Row i has the coordinates ``x[i - e*tau]`` for e = 0 .. E-1. Differences are rounded to ``dtype`` and accumulated in
    the order of e, squares by a fused multiply-add: bit for bit what the neighbour search computes.

    Parameters
    ----------
    executor : Executor
    query, library : array_like of shape (n,), (m,)
        Rounded to ``dtype``; a value that is not finite is a gap.
    E, tau : int
        Embedding dimension and lag, at least 1.
    metric : str
        "euclidean" (the **squared** distance), "manhattan" or "maximum".
    dtype : str
        "float32" or "float64".
    rows, columns : (int, int), optional
        Ranges [begin, end) of query rows and library rows; all when left out.

    Returns
    -------
    ndarray of ``dtype``, shape (rows, columns)
        NaN where a row is not embedded: it comes before (E-1)*tau or touches a gap. inf where a square overflows.

    Raises
    ------
    InputError
        A parameter or a range cannot be used.
    DeviceMemoryError
        The device has no room for a few rows of the block.
    MissingExtraError
        This combination of values has no shipped text, and loopy is not installed.
    """
    if metric not in METRICS:
        raise InputError(f"metric = {metric!r} is not supported; choose one of {', '.join(METRICS)}")
    for name, value in (("E", E), ("tau", tau)):
        if int(value) != value or value < 1:
            raise InputError(f"{name} = {value!r}: a whole number from 1 on is needed")
    check_dtype(executor, dtype)
    E, tau = int(E), int(tau)
    x, y = _series("query", query, dtype), _series("library", library, dtype)
    row_begin, row_end = _range("rows", rows, len(x))
    column_begin, column_end = _range("columns", columns, len(y))
    out = np.empty((row_end - row_begin, column_end - column_begin), dtype)
    if out.size == 0:
        return out
    kernel_spec = spec("distances")
    values: dict[str, Any] = {"E": E, "tau": tau, "metric": metric, "dtype": dtype}
    values |= parameters(kernel_spec, values, executor.info).parameters
    halo = (E - 1) * tau
    # A tile of query rows is computed whole, so the query is read a little past its end.
    padded = _padded(x, halo, values["rows"]), _padded(y, halo, 0)
    _fill(executor, kernel_spec, values, *padded, out, row_begin, column_begin)
    out[~_embedded(x, E, tau)[row_begin:row_end]] = np.nan
    out[:, ~_embedded(y, E, tau)[column_begin:column_end]] = np.nan
    return out


def _series(name: str, given: ArrayLike, dtype: str) -> Floats:
    try:
        with np.errstate(over="ignore"):
            values: Floats = np.asarray(given).astype(dtype, copy=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} holds something that is no number: {error}") from error
    if values.ndim != 1:
        raise InputError(f"{name} has {values.ndim} axes; a single series with one axis is needed")
    return values


def _range(name: str, given: tuple[int, int] | None, n: int) -> tuple[int, int]:
    begin, end = (0, n) if given is None else given
    if not 0 <= begin <= end <= n:
        raise InputError(f"{name} = ({begin}, {end}) does not lie in [0, {n}), the rows of the series")
    return int(begin), int(end)


def _embedded(x: Floats, E: int, tau: int) -> NDArray[np.bool_]:
    finite = np.isfinite(x)
    ok = finite.copy()
    for e in range(1, E):
        ok[e * tau :] &= finite[: max(len(x) - e * tau, 0)]
    ok[: (E - 1) * tau] = False
    return ok


def _padded(x: Floats, front: int, behind: int) -> Floats:
    """Zeros around the series and in its gaps; what is computed from them is overwritten afterwards."""
    return np.pad(np.where(np.isfinite(x), x, x.dtype.type(0)), (front, behind))


def _fill(
    executor: Executor,
    kernel_spec: Any,
    values: dict[str, Any],
    query: Floats,
    library: Floats,
    out: Floats,
    row_begin: int,
    column_begin: int,
) -> None:
    n_rows, n_columns = out.shape
    tile, wg = values["rows"], values["wg"]
    room = min(_BLOCK_BYTES_MOST, budget(executor.info).largest) // out.itemsize
    width = min(n_columns, _GROUPS_MOST * wg, room // tile)
    if width < 1:
        raise DeviceMemoryError(
            f"a block of distances needs {tile * out.itemsize:,} bytes at least; {room * out.itemsize:,} may be used "
            f"on {executor.info.name}. Raise PYEDMCL_MEMORY_LIMIT or PYEDMCL_MEMORY_FRACTION."
        )
    height = min(room // width, n_rows)
    kernel = build(executor, kernel_spec, values)
    pacer = Pacer(executor.info)
    cost = float(4 * values["E"] + 8) * width
    held: dict[str, Buffer] = {}
    try:
        held["query"], held["library"] = executor.upload(query), executor.upload(library)
        held["block"] = executor.allocate(height * width * out.itemsize)
        for left in range(0, n_columns, width):
            right = min(left + width, n_columns)
            top = 0
            while top < n_rows:
                bottom = min(top + max(min(pacer.units(cost), height) // tile * tile, 1), n_rows)
                part = out[top:bottom, left:right]
                groups = -(-(bottom - top) // tile), -(-(right - left) // wg)
                event = executor.launch(
                    kernel, (groups[0] * wg, groups[1]), (wg, 1), **held, row_begin=row_begin + top,
                    n_rows=bottom - top, column_begin=column_begin + left, n_columns=right - left,
                )  # fmt: skip
                pacer.launched(event, cost * (bottom - top))
                if part.flags.c_contiguous:
                    executor.download(held["block"], part)
                else:
                    part[...] = executor.download(held["block"], np.empty(part.shape, part.dtype))
                top = bottom
    finally:
        for buffer in held.values():
            buffer.release()
