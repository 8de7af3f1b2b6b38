"""S-map against kEDM and pyEDM, host array to host result, in this run; and the error of each.

usage: python bench/compare_smap.py [--device NAME] [--cases 1600x3,4000x3,10000x20,nonlinear] [--repeat 5] [--theta 2]
       [--ours-only] [--out FILE]

A case is LENGTHxE, or "nonlinear": 15 theta at L = 1,000, E = 3, against pyEDM. Errors are the largest of
predictions against singular values in float64, over the range of the data, for some rows; of kEDM by its own definition
of the mean distance (it divides by the library's size, the row itself included).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
from collections.abc import Callable

import numpy as np
from compare_kedm import EVERY_CORE, clock, peer_version
from workloads import coupled_maps

import pyedmcl
from pyedmcl.device.select import select
from pyedmcl.reference.smap import smap_rows

SERIES = {1600: 154, 4000: 82}


def exact(x: np.ndarray, E: int, theta: float, rows: np.ndarray, own: bool) -> np.ndarray:
    """Predictions in float64; kEDM's smaller mean distance is a larger theta."""
    x = x.astype(float)
    table = np.column_stack([x[E - 1 - e : len(x) - e] for e in range(E)])
    library, at = table[:-1], np.arange(E - 1, len(x))
    m = len(library) - 1
    scale = 1.0 if own else (m + 1) / m
    return smap_rows(library, x[E:], at[:-1], table[rows - E + 1], rows, theta * scale).predicted


def smap_case(x: np.ndarray, E: int, theta: float, device: str | None) -> tuple[Callable[[], object], ...]:
    def ours() -> np.ndarray:
        return np.asarray(pyedmcl.smap(x, E=E, theta=theta, device=device).predicted)

    def theirs() -> np.ndarray:
        import kedm

        return np.asarray(kedm.smap(x, x, E=E, tau=1, Tp=1, theta=theta))

    return ours, theirs


def nonlinear_case(device: str | None) -> tuple[Callable[[], object], ...]:
    x = coupled_maps(2, 1000)[:, 0]

    def theirs() -> object:
        import pandas
        import pyEDM

        frame = pandas.DataFrame({"t": range(1, 1001), "x": x.astype(float)})
        return pyEDM.PredictNonlinear(frame, columns="x", target="x", lib="1 1000", pred="1 1000", E=3, showPlot=False)

    return lambda: pyedmcl.predict_nonlinear(x, E=3, device=device), theirs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device")
    parser.add_argument("--cases", default="1600x3,4000x3,nonlinear")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--theta", type=float, default=2.0)
    parser.add_argument("--ours-only", action="store_true")
    parser.add_argument("--out")
    options = parser.parse_args()
    info = select(options.device).device
    pyedmcl.smap(coupled_maps(1, 300)[:, 0], E=3, device=options.device)  # our threads see all cores
    their_cores = EVERY_CORE
    if not options.ours_only:
        with contextlib.suppress(ImportError):
            import kedm  # noqa: F401
        their_cores = os.sched_getaffinity(0) if EVERY_CORE else set()
    print(f"{info.name} ({info.runtime}, driver {info.driver}); theta = {options.theta:g}")
    print(f"{'case':>10} {'ours s':>10} {'peer s':>10} {'ratio':>7} {'our error':>10} {'its error':>10}")
    for case in options.cases.split(","):
        record: dict[str, object] = {"case": f"smap {case}", "device": info.name, "runtime": info.runtime,
                                     "driver": info.driver, "version": pyedmcl.__version__}  # fmt: skip
        errors: list[float] = []
        if case == "nonlinear":
            ours, theirs, peer = *nonlinear_case(options.device), "pyEDM"
            cores = EVERY_CORE
        else:
            length, E = map(int, case.split("x"))
            x = np.ascontiguousarray(coupled_maps(SERIES.get(length, 8), length)[:, 0])
            ours, theirs, peer, cores = *smap_case(x, E, options.theta, options.device), peer_version(), their_cores
            rows = np.unique(np.linspace(E - 1, length - 2, 24).astype(int))
            for own, function in ((True, ours), (False, theirs)):
                if own or not options.ours_only:
                    found = np.asarray(function())
                    # Ours begin with row E - 1; kEDM's are as many, shorter by Tp.
                    right = exact(x, E, options.theta, rows, own)
                    errors.append(float(np.abs(found[rows - E + 1] - right).max() / np.ptp(x)))
        # One after the other, not in turn: two contexts on a GPU cost each other a switch at every call.
        clock(ours, EVERY_CORE)
        mine = [clock(ours, EVERY_CORE) for _ in range(options.repeat)]
        other: list[float] = []
        if not options.ours_only:
            clock(theirs, cores)
            other = [clock(theirs, cores) for _ in range(options.repeat)]
        own_s = statistics.median(mine)
        record |= {"ours_s": own_s, "ours_all": mine, "errors": errors}
        line = f"{case:>10} {own_s:10.5f}"
        if other:
            record |= {"peer": peer, "peer_s": statistics.median(other), "peer_all": other}
            record["ratio"] = statistics.median(other) / own_s
            line += f" {statistics.median(other):10.4f} {statistics.median(other) / own_s:6.1f}x"
        print(line + "".join(f" {error:10.1e}" for error in errors), flush=True)
        if options.out:
            with open(options.out, "a") as file:
                file.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()
