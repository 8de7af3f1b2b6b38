"""Which tuned parameters a launch uses, and how good that knowledge is.

The place where an autotuner's database will be asked; today every answer comes from the defaults of the device class.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..codegen.spec import KernelSpec
from ..device.info import DeviceInfo
from ..device.quirks import quirks_for


@dataclass(frozen=True)
class Choice:
    """Tuned parameters and their grade ("default" until something was measured)."""

    parameters: Mapping[str, Any]
    grade: str


def parameters(spec: KernelSpec, specialisation: Mapping[str, Any], info: DeviceInfo) -> Choice:
    """Parameters for a kernel, its specialisation and a device.

    float64 halves the lanes of a SIMD register, and groups respect the device's limit.
    """
    quirks = quirks_for(info)
    chosen = spec.defaults(quirks.device_class)
    if specialisation.get("dtype") == "float64" and chosen.get("lanes", 1) > 8:
        chosen["lanes"] = 8
    if chosen.get("tile"):
        # A tile is staged with the rows that its oldest lags reach back to; groups should share a unit's local memory.
        halo = (max(specialisation.get("dims", (1,))) - 1) * specialisation.get("tau", 1)
        if (chosen["tile"] + halo) * (8 if specialisation.get("dtype") == "float64" else 4) > info.local_bytes // 4:
            chosen["tile"] = 0
    if quirks.device_class == "gpu" and "unroll" in chosen:
        # Sweeps over several dimensions are long programs already; more steps at once overflow the instruction cache.
        chosen["unroll"] = 16 if len(specialisation.get("dims", ())) == 1 else 4
    if "columns" in specialisation and quirks.device_class == "cpu":
        # Narrow classes of targets: no wider vectors than they fill.
        while chosen["vectors"] > 1 and chosen["lanes"] * chosen["vectors"] // 2 >= specialisation["columns"]:
            chosen["vectors"] //= 2
        while chosen["lanes"] > 4 and chosen["lanes"] // 2 >= specialisation["columns"]:
            chosen["lanes"] //= 2
    if "wg" in chosen:
        chosen["wg"] = min(chosen["wg"], quirks.max_work_group)
    return Choice(chosen, "default")
