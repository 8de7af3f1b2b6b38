"""Calls of portability_calls.py on one device, against the oracles; a JSON line for each.

usage: python bench/portability_run.py DEVICE PARAMETERS SIZE < TASKS

PARAMETERS is one of SETS; SIZE is "usual", "tiny" for an interpreter, or "watched" for its check of uninitialised
values. TASKS is a JSON list of [call, E, tau, number type].
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from dataclasses import replace
from typing import Any

import numpy as np
from portability_calls import CALLS
from portability_place import NotThereError, Place

import pyedmcl.tuning.parameters
from pyedmcl.device import opencl
from pyedmcl.device.executor import Executor
from pyedmcl.device.quirks import quirks_for
from pyedmcl.device.select import open_device
from pyedmcl.errors import BuildError
from pyedmcl.kernels.build import noting
from pyedmcl.tuner.problem import require
from pyedmcl.tuning import defaults
from pyedmcl.tuning.parameters import ParameterChoice, source

# What replaces the device's own default parameters, by kernel; "class" says whose defaults they start from, "most" how
# wide a vector is at most.
_SMALL_LOOKUP = {"target_lanes": 4, "row_lanes": 4}
SETS: dict[str, dict[str, Any]] = {
    "default": {},
    "gpu": {"class": "gpu"},
    "gpu-unroll4-tile256": {"class": "gpu", "knn": {"wg": 32, "unroll": 4, "tile": 256}, "lookup": _SMALL_LOOKUP},
    "gpu-unroll16-tile512": {"class": "gpu", "knn": {"wg": 64, "unroll": 16, "tile": 512}},
    # The simulator's shadow of 16-wide vectors is wrong (halving an initialised one is reported): eight lanes then.
    "lanes8": {"most": 8, "lookup": {"lanes": 8, "vectors": 1}, "ccm_draw": {"lanes": 1, "wg": 16}},
    # Groups of vectors: their last work-items lie behind all query rows.
    "lanes4-wg32": {"knn": {"lanes": 4, "wg": 32}},
}
# Names of parameters that are the width of a vector.
_WIDTHS = ("lanes", "width", "wide", "target_lanes")
# Oclgrind 21.10 only: what it cannot follow, with the same value for a number that is finite and positive, for a
# comparison that its vectors do not widen to -1, and for bits that were never written and are masked.
SWAPS = {
    "frexp(largest, &power);": "power = ilogb(largest) + 1;",
    "(rowv)(any_neighbour > 0)": "((realv)(any_neighbour) > (realv)(0))",
    "const uint v = cells_at(row, start + p) & here;":
        "uint v = 0; for (int b = 0; b < 32 && here >> b & 1u; ++b)"
        " v |= (row[(start + p + b) >> 5] >> ((start + p + b) & 31) & 1u) << b;",
    # Its shadow of rotated vectors of 16 is wrong: the block is transposed bit by bit.
    "static void transpose_block(uint16* upper, uint16* lower) {":
        "static void transpose_block(uint16* upper, uint16* lower) { uint from[32], to[32] = {0};"
        " vstore16(*upper, 0, from); vstore16(*lower, 1, from);"
        " for (int r = 0; r < 32; ++r) for (int c = 0; c < 32; ++c) to[c] |= (from[r] >> c & 1u) << r;"
        " *upper = vload16(0, to); *lower = vload16(1, to); return;",
}  # fmt: skip
_KEPT: list[Any] = []


def patch(name: str, simulated: bool, watched: bool) -> None:
    """Have every launch use the parameters of a set, and work around what the simulator cannot do."""
    chosen, ask = SETS[name], source.parameters

    def parameters(spec: Any, specialisation: Any, info: Any, sizes: Any = None) -> ParameterChoice:
        choice = ask(spec, specialisation, info, sizes)
        if chosen.get("class") == "gpu":
            gpu = ask(spec, specialisation, replace(info, kind="gpu", runtime="other"), sizes)
            asked = spec, gpu.parameters, specialisation, info, quirks_for(info).max_work_group, sizes
            # A processor may rule out what suits a GPU: its own parameters stay then.
            choice = choice if defaults.unfit(*asked) else gpu
        most = chosen.get("most", 0)
        wide = {
            tunable.name: most
            for tunable in spec.tunables
            if tunable.name in _WIDTHS and most in tunable.values and choice.parameters[tunable.name] > most > 0
        }
        return replace(choice, parameters={**choice.parameters, **wide, **chosen.get(spec.name, {})})

    # Engines import the function by its name; those that are imported later find it in its own module.
    for module in [*sys.modules.values(), pyedmcl.tuning.parameters]:
        if chosen and module.__name__.startswith("pyedmcl.") and getattr(module, "parameters", None) == ask:
            setattr(module, "parameters", parameters)  # noqa: B010
    if not simulated:
        return
    build = opencl.OpenCLExecutor.build

    def build_swapped(self: Any, source: str, options: Any = ()) -> Any:
        for old, new in SWAPS.items():
            source = source.replace(old, new)
        # What an optimiser makes (freeze, fshl, wide vectors) is unknown to it, or comes out wrong.
        return build(self, source, (*options, "-cl-opt-disable"))

    opencl.OpenCLExecutor.build = build_swapped  # type: ignore[method-assign]
    if watched:
        # A larger buffer in the place of a released one keeps the shadow of the old size, and good data is reported.
        allocate = opencl.OpenCLExecutor.allocate

        def allocate_for_good(self: Any, nbytes: int) -> Any:
            _KEPT.append(allocate(self, nbytes))
            return _KEPT[-1]

        opencl.OpenCLExecutor.allocate = allocate_for_good  # type: ignore[method-assign]
        opencl.OpenCLBuffer.release = lambda self: None  # type: ignore[method-assign]


def compared(name: str, place: Place) -> tuple[str, list[str]]:
    """The first digits of a digest of all that a call gives, and the kernels that it built.

    Raises
    ------
    WrongAnswerError
        The oracle says something else.
    NotThereError
        There is no such call.
    """
    if place.dtype == "float64" and not place.executor.info.fp64:
        raise NotThereError("no float64 on this device")
    digest = hashlib.sha256()
    with noting() as noted:
        for what, got, expected in CALLS[name].make(place):
            require(what, got, expected)
            answer = np.asarray(got)
            answer = np.where(answer == 0, np.zeros((), answer.dtype), answer)  # a zero has two signs
            digest.update(np.where(answer != answer, np.full((), np.nan), answer).tobytes())
    built = sorted({spec.name for spec, _ in noted})
    lacking = sorted(set(CALLS[name].kernels) - set(built))
    if lacking:
        raise RuntimeError(f"{', '.join(lacking)} did not run")
    return digest.hexdigest()[:12], built


def record(executor: Executor, chosen: str, size: str, task: list[Any]) -> dict[str, Any]:
    """How a task ended, with the set of parameters that was chosen."""
    name, E, tau, dtype = task
    begun = time.perf_counter()
    try:
        bits, _ = compared(name, Place(executor, E, tau, dtype, size != "usual"))
        ended: dict[str, Any] = {"ended": "passed", "bits": bits}
    except NotThereError as caught:
        ended = {"ended": "not there", "reason": str(caught)}
    except Exception as caught:  # a kernel that does not build is a cell of the table, not the end of it
        ended = {"ended": "failed", "reason": f"{type(caught).__name__}: {caught}"[:500]}
        if "double precision" in str(caught) and not executor.info.fp64:
            ended = {"ended": "not there", "reason": "no float64 on this device"}
        # Where a constraint rules a set out only after the engine has chosen the rest, there is no log of a compiler.
        if chosen != "default" and isinstance(caught, BuildError) and not caught.log:
            ended = {"ended": "not there", "reason": str(caught).partition(" ({")[0]}
    return {"call": name, "E": E, "tau": tau, "dtype": dtype, **ended, "seconds": round(time.perf_counter() - begun, 2)}


def main() -> None:
    device, name, size = sys.argv[1:]
    tasks = json.load(sys.stdin)
    executor = open_device(device)
    info = executor.info
    patch(name, info.runtime == "oclgrind", size == "watched")
    for task in tasks:
        print(json.dumps(record(executor, name, size, task)), flush=True)


if __name__ == "__main__":
    main()
