"""Whole functions against kEDM, host array to host result, both in this run and in turn.

usage: python bench/compare_kedm.py [--device NAME] [--shapes 154x1600,1000x1000] [--cases E3,mixed,edim] [--repeat 3]
       [--ours-only] [--out FILE]

Prints a table for people and appends a JSON line per case to FILE. A ratio is kEDM's median over ours.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version

import numpy as np
from workloads import coupled_maps, mixed_dimensions

import pyedmcl
from pyedmcl.device.select import select

EVERY_CORE = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()


def clock(function: Callable[[], object], cores: set[int]) -> float:
    """Seconds of a call on the given cores: importing kedm pins the calling thread to one core, which is right for its
    own thread team and would leave any other library half the machine.
    """
    gc.collect()
    if cores:
        os.sched_setaffinity(0, cores)
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def peer_version() -> str:
    for name in ("kedm", "kedm-cuda13x", "kedm-cuda12x"):
        try:
            return f"{name} {version(name)}"
        except PackageNotFoundError:
            continue
    return "kedm ?"


def cases(x: np.ndarray, device: str | None) -> dict[str, tuple[Callable[[], object], Callable[[], object]]]:
    """Case -> (ours, theirs)."""
    try:
        import kedm
    except ImportError:
        kedm = None
    n = x.shape[1]
    mixed, first = mixed_dimensions(n), np.ascontiguousarray(x[:, 0])
    return {
        "E3": (lambda: pyedmcl.xmap(x, E=3, device=device), lambda: kedm.xmap(x, [3] * n)),
        "mixed": (lambda: pyedmcl.xmap(x, E=mixed, device=device), lambda: kedm.xmap(x, mixed)),
        "edim": (lambda: pyedmcl.embed_dimension(first, device=device), lambda: kedm.edim(first)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device")
    parser.add_argument("--shapes", default="154x1600,1000x1000,82x4000")
    parser.add_argument("--cases", default="E3,mixed,edim")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--ours-only", action="store_true")
    parser.add_argument("--out")
    options = parser.parse_args()
    info = select(options.device).device
    pyedmcl.embed_dimension(coupled_maps(1, 300)[:, 0], E_max=2, device=options.device)  # our threads see all cores
    their_cores = EVERY_CORE
    if not options.ours_only:
        import kedm

        kedm.xmap(coupled_maps(8, 300), [3] * 8)
        their_cores = os.sched_getaffinity(0) if EVERY_CORE else set()
    peer = "-" if options.ours_only else peer_version()
    print(f"{info.name} ({info.runtime}, driver {info.driver}) against {peer}")
    print(f"{'shape':>12} {'case':>6} {'ours s':>10} {'kEDM s':>10} {'ratio':>7}")
    for shape in options.shapes.split(","):
        n, length = map(int, shape.split("x"))
        x = coupled_maps(n, length)
        for case, (ours, theirs) in cases(x, options.device).items():
            if case not in options.cases.split(","):
                continue
            clock(ours, EVERY_CORE)  # compile and warm up
            mine, other = [], []
            for _ in range(options.repeat):
                mine.append(clock(ours, EVERY_CORE))
                if not options.ours_only:
                    other.append(clock(theirs, their_cores))
            own = statistics.median(mine)
            record = {"shape": shape, "case": case, "device": info.name, "runtime": info.runtime, "driver": info.driver,
                      "version": pyedmcl.__version__, "ours_s": own, "ours_all": mine, "peer": peer}  # fmt: skip
            line = f"{shape:>12} {case:>6} {own:10.4f}"
            if other:
                peers = statistics.median(other)
                record |= {"peer_s": peers, "peer_all": other, "ratio": peers / own}
                line += f" {peers:10.4f} {peers / own:6.1f}x"
            print(line, flush=True)
            if options.out:
                with open(options.out, "a") as file:
                    file.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()
