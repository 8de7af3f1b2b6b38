"""Every function on one device with one set of parameters, against the oracles; a JSON line per check.

usage: python bench/portability_run.py DEVICE PARAMETERS SIZE

PARAMETERS is one of SETS; SIZE is "full", "short" (E up to 3: for a compiler that needs minutes for more), "tiny"
for an
interpreter, or "watched" for its check of uninitialised values.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

import pyedmcl
from pyedmcl.device import opencl
from pyedmcl.device.session import open_device
from pyedmcl.engines import lookup, project, skill
from pyedmcl.neighbors import tables
from pyedmcl.reference import knn_float32_exact, knn_float64_exact, simplex_predict
from pyedmcl.reference import skill as oracle_skill
from pyedmcl.tuning.parameters import ParameterChoice, source

# What replaces the device's own default parameters, by kernel; "class" says whose defaults they start from.
_SMALL_LOOKUP = {"target_lanes": 4, "row_lanes": 4}
SETS: dict[str, dict[str, Any]] = {
    "default": {},
    "gpu": {"class": "gpu"},
    "gpu-unroll4-tile256": {"class": "gpu", "knn": {"wg": 32, "unroll": 4, "tile": 256}, "lookup": _SMALL_LOOKUP},
    "gpu-unroll16-tile512": {"class": "gpu", "knn": {"wg": 64, "unroll": 16, "tile": 512}},
    # The simulator's shadow of 16-wide vectors is wrong (halving an initialised one is reported): eight lanes then.
    "lanes8": {"knn": {"lanes": 8}, "lookup": {"lanes": 8, "vectors": 1}},
    # Groups of vectors: their last work-items lie behind all query rows.
    "lanes4-wg32": {"knn": {"lanes": 4, "wg": 32}},
}
# Oclgrind 21.10 only: what it cannot follow, with the same value for a number that is finite and positive, and for a
# comparison that its vectors do not widen to -1.
SWAPS = {
    "frexp(largest, &power);": "power = ilogb(largest) + 1;",
    "(rowv)(any_neighbour > 0)": "((realv)(any_neighbour) > (realv)(0))",
}
_KEPT: list[Any] = []
DIMS, LAGS = (1, 3, 10, 20), (1, 3)
Check = tuple[dict[str, Any], Callable[[], tuple[bool, float, int]]]


def patch(name: str, simulated: bool, watched: bool) -> None:
    """Have every launch use the parameters of a set, and work around what the simulator cannot do."""
    chosen = SETS[name]

    def parameters(spec: Any, specialisation: Any, info: Any, sizes: Any = None) -> ParameterChoice:
        seen = replace(info, kind="gpu", runtime="other") if chosen.get("class") == "gpu" else info
        choice = source.parameters(spec, specialisation, seen, sizes)
        return replace(choice, parameters={**choice.parameters, **chosen.get(spec.name, {})})

    for module in (tables, lookup, project, skill):
        module.parameters = parameters
    if not simulated:
        return
    build = opencl.OpenCLExecutor.build

    def build_swapped(self: Any, source: str, options: Any = ()) -> Any:
        for old, new in SWAPS.items():
            source = source.replace(old, new)
        # What an optimiser makes (freeze, wide vectors) stops the check of uninitialised reads.
        return build(self, source, (*options, "-cl-opt-disable") if watched else options)

    opencl.OpenCLExecutor.build = build_swapped
    if watched:
        # A larger buffer in the place of a released one keeps the shadow of the old size, and good data is reported.
        allocate = opencl.OpenCLExecutor.allocate

        def allocate_for_good(self: Any, nbytes: int) -> Any:
            _KEPT.append(allocate(self, nbytes))
            return _KEPT[-1]

        opencl.OpenCLExecutor.allocate = allocate_for_good
        opencl.OpenCLBuffer.release = lambda self: None


def noise(n: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(n).astype(np.float32)


def with_gaps(x: np.ndarray) -> np.ndarray:
    x = x.copy()
    x[[len(x) // 5, len(x) // 2]] = np.nan
    return x


@cache
def cases(n: int) -> dict[str, tuple[np.ndarray, dict[str, Any]]]:
    return {
        "self": (noise(n, 1), {"Tp": 1, "exclusion_radius": 2}),
        "cross": (noise(n, 2), {"query": with_gaps(noise(n + 13, 3))}),
        "gaps": (with_gaps(noise(n, 4)), {"Tp": 1}),
        "ties": (np.random.default_rng(5).integers(0, 4, n).astype(np.float32), {}),
    }


@cache
def oracle(dtype: str, n: int, case: str, E: int, tau: int) -> tuple[np.ndarray, np.ndarray]:
    x, options = cases(n)[case]
    search = knn_float32_exact if dtype == "float32" else knn_float64_exact
    squared, rows = search(x, E=E, tau=tau, **options)
    return np.sqrt(squared), rows


def check_knn(device: str, dtype: str, n: int, E: int, tau: int, staged: bool) -> tuple[bool, float, int]:
    good = True
    for case, (x, options) in cases(n).items():
        distances, rows = oracle(dtype, n, case, E, tau)
        result = pyedmcl.knn(x, E=E, tau=tau, dtype=dtype, device=device, **options)
        if staged and not result.provenance["parameters"]["tile"]:
            raise RuntimeError("the staged path was asked for and did not run")
        good &= np.array_equal(result.indices, rows) and np.array_equal(result.distances, distances)
    return good, 0.0, len(cases(n))


def worst(got: Any, wanted: Any) -> float:
    """Largest difference; infinite where only one side is NaN."""
    got, wanted = np.asarray(got, float), np.asarray(wanted, float)
    if got.shape != wanted.shape or not np.array_equal(np.isnan(got), np.isnan(wanted)):
        return float("inf")
    return float(np.nanmax(np.abs(got - wanted), initial=0.0))


@cache
def mapped(x: bytes, n: int, E: int, tau: int, Tp: int, target: bytes) -> tuple[np.ndarray, np.ndarray]:
    library, other = np.frombuffer(x, np.float32), np.frombuffer(target, np.float32)
    squared, rows = knn_float32_exact(library, E=E, tau=tau, Tp=Tp, target=other)
    return rows, np.sqrt(squared.astype(float))


def check_simplex(device: str, n: int, E: int, tau: int) -> tuple[bool, float, int]:
    x = noise(n, 6)
    rows, distances = mapped(x.tobytes(), n, E, tau, 1, x.tobytes())
    result = pyedmcl.simplex(x, E=E, tau=tau, Tp=1, device=device)
    begin = (E - 1) * tau
    error = worst(result.predicted, simplex_predict(rows, distances, x, 1)[0][begin:])
    error = max(error, worst(result.rho, oracle_skill(rows, distances, x, 1)))
    return error < 2e-5, error, 1


def check_embed_dimension(device: str, n: int, E_max: int, tau: int) -> tuple[bool, float, int]:
    error = 0.0
    for x in (noise(n, 7), with_gaps(noise(n, 8))):
        result = pyedmcl.embed_dimension(x, E_max=E_max, tau=tau, device=device)
        wanted = [oracle_skill(*mapped(x.tobytes(), n, E, tau, 1, x.tobytes()), x, 1) for E in range(1, E_max + 1)]
        error = max(error, worst(result.rho, wanted))
    return error < 2e-5, error, 2


def check_xmap(device: str, n: int, dims: list[int], tau: int, gaps: bool) -> tuple[bool, float, int]:
    x = np.stack([noise(n, 20 + i) for i in range(len(dims))], axis=1)
    for i in range(1, len(dims)):
        x[:, i] += 0.5 * x[:, i - 1]
    if gaps:
        x[n // 3, :] = np.nan
        if len(set(dims)) > 1:
            x[n // 2, 1] = np.nan
    columns = [np.ascontiguousarray(c) for c in x.T]
    wanted = [[oracle_skill(*mapped(a.tobytes(), n, E, tau, 0, b.tobytes()), b, 0)
               for b, E in zip(columns, dims, strict=True)] for a in columns]  # fmt: skip
    error = worst(pyedmcl.xmap(x, E=dims, tau=tau, device=device).rho, wanted)
    return error < 2e-5, error, len(dims) ** 2


def checks(device: str, name: str, size: str, fp64: bool) -> Iterator[Check]:
    """What is checked, and the function that returns (ok, largest error, comparisons)."""
    n, small = (700, 300) if size in ("full", "short") else (80, 80)
    top = {"full": 20, "short": 3}.get(size, 5)
    staged = SETS[name].get("class") == "gpu"
    for tau in LAGS:
        for E in DIMS[:2] if size == "short" else DIMS:
            for dtype in ("float32", "float64") if fp64 else ("float32",):
                yield ({"function": "knn", "E": E, "tau": tau, "dtype": dtype},
                       lambda d=dtype, E=E, tau=tau: check_knn(device, d, n, E, tau, staged))  # fmt: skip
            yield {"function": "simplex", "E": E, "tau": tau}, lambda E=E, tau=tau: check_simplex(device, small, E, tau)
        yield ({"function": "embed_dimension", "E": f"1-{top}", "tau": tau},
               lambda tau=tau, top=top: check_embed_dimension(device, small, top, tau))  # fmt: skip
        dims = [1, 3, 3] if size in ("watched", "short") else [1, 3, 10, 20, 3]
        for gaps in (False, True):
            yield ({"function": "xmap", "E": ",".join(map(str, sorted(set(dims)))), "tau": tau, "gaps": gaps},
                   lambda tau=tau, gaps=gaps, dims=dims: check_xmap(device, small, dims, tau, gaps))  # fmt: skip


def main() -> None:
    device, name, size = sys.argv[1:]
    info = open_device(device).info
    simulated = info.runtime == "oclgrind"
    patch(name, simulated, size == "watched")
    for what, check in checks(device, name, size, info.fp64 and not simulated):
        record = {"how": "executed", "runtime": info.runtime, "device": info.name, "driver": info.driver,
                  "parameters": name, "size": size, **what}  # fmt: skip
        try:
            ok, error, n = check()
            record |= {"ok": bool(ok), "largest_error": error, "comparisons": n}
        except Exception as caught:  # a kernel that does not build is a line of the table, not the end of it
            record |= {"ok": False, "reason": f"{type(caught).__name__}: {caught}"[:500]}
        print(json.dumps(record), flush=True)


if __name__ == "__main__":
    main()
