"""Recurrent cells or mean distances per pixel of a recurrence plot, without the matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...jobs.blocks import Block
from ...jobs.device_results import DeviceSink
from ...jobs.runner import LocalRunner, Runner
from ...jobs.sinks import ArraySink
from ...launch.delivery import DeviceRows
from .data import Floats
from .problem import ImageProblem, image_problem

if TYPE_CHECKING:
    from ...device.executor import Executor
    from ..problem import RqaProblem


_EDGE = 256  # pixels that are mirrored together: columns of single pixels would be read one cache line at a time


@dataclass(frozen=True)
class Image:
    """What devices found, and how.

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


def rendered(runner: Runner, problem: ImageProblem, *, dtype: Any = None, into: DeviceRows | None = None) -> Image:
    """Render an image by any runner.

    Parameters
    ----------
    runner : Runner
    problem : ImageProblem
    dtype : number type, optional
        Of the values, else that of the problem.
    into : DeviceRows, optional
        Where counts or means go on the device; the image has no values then.

    Raises
    ------
    InputError
        Float64 is needed where a device has none.
    DeviceMemoryError
        Pixels and series do not fit.
    """
    down, across = problem.raster.pixels
    if into is not None:
        # In one block, since a device writes both sides of the diagonal at once.
        record = runner.run(problem, DeviceSink([Block(0, 0, down)], [into]))
        return Image(None, dict(record.parameters), record.grade)
    values = np.empty((down, across), problem.dtype if dtype is None else dtype)
    record = runner.run(problem, ArraySink(problem.blocks(runner.devices), [values]))
    if problem.raster.symmetric:
        _mirror(values)
    return Image(values, dict(record.parameters), record.grade)


def _mirror(values: NDArray[Any]) -> None:
    """Copy what is above the diagonal of a square array below it."""
    n = len(values)
    for begin in range(0, n, _EDGE):
        rows = slice(begin, min(begin + _EDGE, n))
        values[rows, :begin] = values[:begin, rows].T
        square = values[rows, rows]
        np.copyto(square, square.T, where=np.tri(len(square), k=-1, dtype=bool))


def render_image(
    executor: Executor, problem: RqaProblem, x: Floats, y: Floats | None = None, *, pixels: tuple[int, int],
    mean: bool = False,
) -> Image:  # fmt: skip
    """The image of a matrix on one device; see :func:`.problem.image_problem` for the arguments."""
    return rendered(LocalRunner([executor]), image_problem(problem, x, y, pixels=pixels, mean=mean))
