"""Which tuned parameters a launch uses, and how good that knowledge is.

The place where an autotuner's database will be asked; today every answer comes from the defaults of the device class.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
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


_forced: ContextVar[Mapping[str, Mapping[str, Any]] | None] = ContextVar("forced", default=None)


@contextlib.contextmanager
def using(**kernels: Mapping[str, Any]) -> Iterator[None]:
    """Within the block, kernels named here take these parameters (others stay as chosen), with grade "forced".

    How a tuner tries a configuration: whole functions then run with it, through the same launches as ever.

    Parameters
    ----------
    **kernels : mapping
        Kernel name to some or all of its tuned parameters.
    """
    token = _forced.set({**(_forced.get() or {}), **kernels})
    try:
        yield
    finally:
        _forced.reset(token)


def parameters(
    spec: KernelSpec, specialisation: Mapping[str, Any], info: DeviceInfo, sizes: Mapping[str, int] | None = None
) -> Choice:
    """Parameters for a kernel, its specialisation, a device and the size of the problem.

    Parameters
    ----------
    spec : KernelSpec
    specialisation : mapping
        What the kernel's source is specialised by, as far as it is known.
    info : DeviceInfo
    sizes : mapping, optional
        What the best parameters may depend on beside the source, such as rows and libraries.

    Returns
    -------
    Choice
    """
    forced = (_forced.get() or {}).get(spec.name)
    chosen = _defaults(spec, specialisation, info)
    if forced:
        return Choice({**chosen, **forced}, "forced")
    return Choice(chosen, "default")


def _defaults(spec: KernelSpec, specialisation: Mapping[str, Any], info: DeviceInfo) -> dict[str, Any]:
    """Safe parameters of the device's class, adapted to the specialisation.

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
    return chosen
