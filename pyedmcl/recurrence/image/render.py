"""Recurrent cells or mean distances per pixel of a recurrence plot, on a device, without the matrix."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...device.quirks import quirks_for
from ...errors import InputError
from ...kernels import spec
from ...launch.delivery import DeviceRows, deliver_counts, deliver_means
from ...tuning.parameters import ParameterChoice, adjusted, parameters
from .data import Floats, SweepData, complete_points, prepare
from .sweep import ImageSweep, Raster

if TYPE_CHECKING:
    from ...device.executor import Executor
    from ..problem import RqaProblem

_REGISTERS = 48  # coordinates that a work-item of a GPU may keep


@dataclass(frozen=True)
class Image:
    """What a device found, and how.

    Attributes
    ----------
    values : ndarray (pixel rows, pixel columns) or None
        Counts (int64), or mean distances (float64, NaN where a pixel has no cell without a gap); None where they stay
        on the device.
    parameters, grade
        Tuned parameters and how well they are known.
    """

    values: Any
    parameters: dict[str, Any]
    grade: str


def render_image(
    executor: Executor,
    problem: RqaProblem,
    x: Floats,
    y: Floats | None = None,
    *,
    pixels: tuple[int, int],
    mean: bool = False,
    exponent: int = 0,
    into: DeviceRows | None = None,
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
    exponent : int
        Means are multiplied by this power of two, by which the data were divided.
    into : DeviceRows, optional
        Where counts or means go on the device; the image has no values then.

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
    raster = Raster(problem.n_rows, problem.n_columns, pixels, problem.symmetric and pixels[0] == pixels[1])
    values: dict[str, Any] = {
        "m": problem.coordinates, "tau": 1 if problem.embedded else problem.tau, "metric": problem.metric,
        "dtype": data.dtype, "mode": "mean" if mean else "count", "embedded": problem.embedded, "exact": data.exact,
        "corridor": problem.inner is not None and not mean,
        "per_column": problem.column_limits is not None and not mean,
        "listed": data.exact and not executor.info.fp64, "wide": mean or raster.largest >= 2**32,
    }  # fmt: skip
    deliver = None
    if into is not None:
        if values["listed"]:
            raise InputError(
                f"out=: cells that float32 cannot decide are decided on the host, since {executor.info.name} has no "
                "double precision; take exact=False, or leave out= out"
            )
        if mean:
            present, power = _present(problem, data, raster), _power(data, raster) + exponent
            deliver = partial(deliver_means, executor, into=into, present=present, exponent=power)
        else:
            deliver = partial(deliver_counts, executor, into=into)
    choice = _parameters(executor, values, problem)
    sums = ImageSweep(executor, problem, data, raster, {**values, **choice.parameters}).run(deliver)
    if sums is None:
        return Image(None, dict(choice.parameters), choice.grade)
    if raster.symmetric:
        diagonal = sums.diagonal().copy()
        sums = sums + sums.T
        np.fill_diagonal(sums, diagonal)
    image = np.ldexp(_means(sums, problem, data, raster), exponent) if mean else sums
    return Image(image, dict(choice.parameters), choice.grade)


def _present(problem: RqaProblem, data: SweepData, raster: Raster) -> list[NDArray[np.float64]]:
    """Points without a gap in each row and in each column of pixels."""
    sides = (data.rows, problem.n_rows, raster.down), (data.columns, problem.n_columns, raster.across)
    return [np.add.reduceat(complete_points(side, problem, n).astype(np.float64), edges[:-1])
            for side, n, edges in sides]  # fmt: skip


def _power(data: SweepData, raster: Raster) -> int:
    """Exponent of the distance that 1 stands for in a sum."""
    return int(np.frexp(data.unit(raster.largest))[1]) - 1


def _means(sums: NDArray[np.int64], problem: RqaProblem, data: SweepData, raster: Raster) -> NDArray[np.float64]:
    """Mean distances from their fixed-point sums; NaN where a pixel has no cell without a gap."""
    cells = np.outer(*_present(problem, data, raster))
    with np.errstate(invalid="ignore", divide="ignore"):
        means: NDArray[np.float64] = np.where(cells > 0, sums.astype(np.float64) / cells, np.nan)
    return np.ldexp(means, _power(data, raster))


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
