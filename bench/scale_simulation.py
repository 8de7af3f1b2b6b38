"""Simulate processes that share a map by a folder: how much of their time is work, and what the file system has to do.

usage: python bench/scale_simulation.py [--out FILE] [--quick]

What is simulated stands in `folder_simulation.py`. Prints a line for each setting and appends it to FILE;
`docs/design/shared-folders.md` says what follows.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict, replace

from folder_simulation import CORES, Setting, Simulation


def table(quick: bool) -> Iterator[tuple[str, Setting]]:
    """What is asked of the simulation."""
    base = Setting(workers=16, rows=1024) if quick else Setting()
    for workers in (1, 16) if quick else (1, 16, 64, 256, 1000, 4096):
        yield "workers", replace(base, workers=workers)
    if quick:
        return
    for workers in (256, 1000, 4096):
        yield "a core each", replace(base, workers=workers, slower=2 * CORES)
    for seed in range(1, 12):
        yield "seeds", replace(base, seed=seed)
    for rows in (3, 5, 10, 20):
        yield "rows", replace(base, rows=rows)
    for latency in (0.005, 0.05):
        for slower in (CORES, 2 * CORES, 20 * CORES):
            yield "latency", replace(base, latency=latency, slower=slower)
    for slower in (1.0, 10.0, 20 * CORES):
        yield "pace", replace(base, slower=slower)
    for early in (True, False):
        for lifetime in (15.0, 60.0, 240.0):
            lossy = replace(base, workers=100, lost=0.05, slower=5 * CORES, lifetime=lifetime)
            yield "lifetime", replace(lossy, early=early, again=early)
    for again in (True, False):
        yield "a worker lost", replace(base, lost=0.1, again=again)
    for workers in (256, 1000):
        yield "opens journals", replace(base, workers=workers, journals=True)
    for share in (0.01, 0.1):
        for again in (True, False):
            yield "stragglers", replace(base, stragglers=share, slower=2 * CORES, again=again)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", metavar="FILE", help="append a JSON line for each setting")
    parser.add_argument("--quick", action="store_true", help="a few small settings")
    options = parser.parse_args()
    print("question         workers rows  slower  ms lost/h lifetime | blocks   wall s  effic. doubled gone  op/s")
    for question, setting in table(options.quick):
        found = Simulation(setting).run()
        print(
            f"{question:16s} {setting.workers:7d} {setting.block_rows:4d} {setting.slower:7.0f} "
            f"{setting.latency * 1e3:3.0f} {setting.lost:6.2f} {setting.lifetime:8.0f} | "
            f"{found.blocks:6d} {found.wall:8.1f} {found.efficiency:7.3f} "
            f"{found.doubled:7d} {found.gone:4d} {found.operations:5.0f}", flush=True,
        )  # fmt: skip
        if options.out:
            with open(options.out, "a", encoding="utf-8") as file:
                record = {"question": question, **asdict(setting), "rows": setting.block_rows, **asdict(found)}
                file.write(json.dumps({name: round(v, 6) if isinstance(v, float) else v for name, v in record.items()})
                           + "\n")  # fmt: skip


if __name__ == "__main__":
    main()
