"""Which kernel renders an image, and with which parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...device.quirks import quirks_for
from ...kernels import spec
from ...tuning.parameters import adjusted, parameters

if TYPE_CHECKING:
    from ...device.info import DeviceInfo
    from ..problem import RqaProblem
    from .data import SweepData

_REGISTERS = 48  # coordinates that a work-item of a GPU may keep


@dataclass(frozen=True)
class ImageParameters:
    """The choice for one image.

    Attributes
    ----------
    given : dict
        Specialisation of ``recurrence_image``.
    parameters : dict
        Its tuned parameters.
    grade : str
        How well these are known to suit the device and the problem.
    """

    given: dict[str, Any]
    parameters: dict[str, Any]
    grade: str

    @property
    def values(self) -> dict[str, Any]:
        """Specialisation and parameters."""
        return {**self.given, **self.parameters}


def image_parameters(
    info: DeviceInfo, problem: RqaProblem, data: SweepData, *, mean: bool, largest: int
) -> ImageParameters:
    """Tuned parameters, adapted to the coordinates of a point and to the device's local memory.

    Parameters
    ----------
    info : DeviceInfo
    problem : RqaProblem
    data : SweepData
    mean : bool
        Distances are added, not cells counted.
    largest : int
        Cells of the largest pixel.
    """
    values: dict[str, Any] = {
        "m": problem.coordinates, "tau": 1 if problem.embedded else problem.tau, "metric": problem.metric,
        "dtype": data.dtype, "mode": "mean" if mean else "count", "embedded": problem.embedded, "exact": data.exact,
        "corridor": problem.inner is not None and not mean,
        "per_column": problem.column_limits is not None and not mean,
        "listed": data.exact and not info.fp64, "wide": mean or largest >= 2**32,
    }  # fmt: skip
    sizes = {"rows": problem.n_rows, "columns": problem.n_columns}
    choice = parameters(spec("recurrence_image"), values, info, sizes)
    chosen = dict(choice.parameters)
    if choice.grade == "default" and quirks_for(info).scalar_work_items:
        while chosen["vectors"] > 1 and chosen["vectors"] * values["m"] > _REGISTERS:
            chosen["vectors"] //= 2
    item = 8 if values["dtype"] == "float64" else 4
    halo = (values["m"] - 1) * values["tau"]
    rows = chosen["tile"] * values["m"] if values["embedded"] else chosen["tile"] + halo
    places = 12 * chosen["wg"] * chosen["lanes"] * chosen["vectors"]
    if chosen["staged"] and rows * item + places > quirks_for(info).local_bytes // 2:
        chosen["staged"] = 0
    why = "fewer vectors where the compiler would run out of registers, nothing staged that local memory cannot hold"
    return ImageParameters(values, dict(adjusted(choice, chosen, why)), choice.grade)
