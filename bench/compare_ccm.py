"""Convergent cross mapping against kEDM and pyEDM, host arrays to host result, in this run and in turn.

usage: python bench/compare_ccm.py [--device NAME] [--lengths 1000,4000] [--samples 100] [--repeat 5] [--ours-only]
       [--out FILE]

17 library sizes from 20 on, E = 3. pyEDM and we map both directions (pyEDM at L = 1,000 only), kEDM one; against it we
count half of our time.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
from collections.abc import Callable
from importlib.metadata import version

import numpy as np
from compare_kedm import EVERY_CORE, clock, peer_version
from workloads import coupled_maps

import pyedmcl
from pyedmcl.device.select import select

SERIES = {1000: 2, 4000: 82}


def sizes(length: int) -> list[int]:
    return list(range(20, length - 20, max(length // 17, 1)))


Peers = dict[str, tuple[Callable[[], object], set[int], float]]


def peers(x: np.ndarray, y: np.ndarray, samples: int, kedm_cores: set[int]) -> Peers:
    """Name -> (call, cores, directions)."""
    import kedm
    import pandas
    import pyEDM

    found: Peers = {
        peer_version(): (lambda: kedm.ccm(x, y, E=3, sample=samples, lib_sizes=sizes(len(x))), kedm_cores, 1)
    }
    if len(x) <= 1000:
        frame = pandas.DataFrame({"t": range(1, len(x) + 1), "x": x.astype(float), "y": y.astype(float)})
        given = {"columns": "x", "target": "y", "E": 3, "sample": samples, "libSizes": sizes(len(x))}
        found[f"pyEDM {version('pyEDM')}"] = (lambda: pyEDM.CCM(frame, **given), EVERY_CORE, 2)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device")
    parser.add_argument("--lengths", default="1000,4000")
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--ours-only", action="store_true")
    parser.add_argument("--out")
    options = parser.parse_args()
    info = select(options.device).device
    warm = coupled_maps(2, 300)
    pyedmcl.ccm(warm[:, 0], warm[:, 1], E=3, sample=16, device=options.device)  # our threads see all cores
    cores: set[int] = EVERY_CORE
    if not options.ours_only:
        import kedm

        kedm.xmap(coupled_maps(8, 300), [3] * 8)
        cores = os.sched_getaffinity(0) if EVERY_CORE else set()
    print(f"{info.name} ({info.runtime}, driver {info.driver}), {options.samples} samples; seconds a direction")
    for length in map(int, options.lengths.split(",")):
        table = coupled_maps(SERIES.get(length, 2), length)
        x, y = (np.ascontiguousarray(table[:, column]) for column in (0, -1))

        def ours(x: np.ndarray = x, y: np.ndarray = y) -> object:
            return pyedmcl.ccm(
                x, y, E=3, lib_sizes=sizes(len(x)), sample=options.samples, seed=1, device=options.device
            )

        others = {} if options.ours_only else peers(x, y, options.samples, cores)
        clock(ours, EVERY_CORE)
        mine: list[float] = []
        theirs: dict[str, list[float]] = {name: [] for name in others}
        for call, allowed, _ in others.values():
            clock(call, allowed)
        for _ in range(options.repeat):
            mine.append(clock(ours, EVERY_CORE))
            for name, (call, allowed, _) in others.items():
                theirs[name].append(clock(call, allowed))
        own = statistics.median(mine) / 2
        record: dict[str, object] = {"case": f"ccm {length}", "device": info.name, "runtime": info.runtime,
                                     "driver": info.driver, "version": pyedmcl.__version__, "samples": options.samples,
                                     "ours_s": own, "ours_all": mine}  # fmt: skip
        line = f"L = {length:6,}: ours {own:9.5f}"
        for name, (_, _, directions) in others.items():
            other = statistics.median(theirs[name]) / directions
            record[name] = {"seconds": other, "all": theirs[name], "ratio": other / own}
            line += f"; {name} {other:8.4f} ({other / own:.1f}x)"
        print(line, flush=True)
        if options.out:
            with open(options.out, "a") as file:
                file.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()
