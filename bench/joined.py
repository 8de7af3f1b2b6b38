"""One process with all cores beside joined processes that share them: ``python bench/joined.py``; a JSON line.

Each joined process is pinned to its share of the cores, or takes one of ``--devices`` (for GPUs). Both ways compute the
same map into a folder of their own, in processes that are started for it, and take turns; the least of several seconds
counts. ``work`` is from the first block's beginning to the last one's end, ``whole`` from the start of the processes to
the end of the last one.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import pyedmcl
from pyedmcl import config
from pyedmcl.device.select import open_device

WORKER = """
import os, sys, time
cores, device, table, out, E, join = sys.argv[1:]
if cores:
    os.sched_setaffinity(0, set(map(int, cores.split(","))))
import numpy as np
import pyedmcl
data = np.load(table)
pyedmcl.xmap(data[:, :16], E=int(E), device=device)  # programs are compiled, the device is open
print("ready", flush=True)
sys.stdin.readline()
begun = time.time()
pyedmcl.xmap(data, E=int(E), out=out, device=device, join=join == "join")
print(begun, time.time(), flush=True)
"""


def run(table: Path, out: Path, E: int, places: list[tuple[str, str]]) -> dict[str, float]:
    """Seconds of a map by as many processes as there are places (cores and device)."""
    begun = time.time()
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, cores, device, str(table), str(out), str(E),
             "join" if len(places) > 1 else "alone"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=config.child_environment(),
        )
        for cores, device in places
    ]  # fmt: skip
    for process in processes:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    times = [list(map(float, process.communicate()[0].split())) for process in processes]
    assert all(process.returncode == 0 for process in processes)
    return {"work": max(end for _, end in times) - min(first for first, _ in times),
            "whole": max(end for _, end in times) - begun}  # fmt: skip


def chunks(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in (path / "rho").glob("c.*")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="", help="of one process; of all, each on its share of the cores")
    parser.add_argument("--devices", default="", help="of the joined processes, with commas; then nothing is pinned")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--series", type=int, default=4000)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--E", type=int, default=3)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="on the file system to be tried; a temporary one by default")
    options = parser.parse_args()
    info = open_device(options.device or None).info
    cores = sorted(os.sched_getaffinity(0))
    together = [("", name) for name in options.devices.split(",")] if options.devices else [
        (",".join(map(str, cores[i :: options.processes])), info.id) for i in range(options.processes)
    ]  # fmt: skip
    folder = Path(tempfile.mkdtemp(prefix="joined-", dir=options.folder))
    found: dict[str, list[dict[str, float]]] = {"alone": [], "joined": []}
    identical = True
    try:
        rng = np.random.default_rng(1)
        np.save(folder / "table.npy", rng.standard_normal((options.steps, options.series)).cumsum(axis=0))
        for _ in range(options.repeat):
            for name, places in (("alone", [("", info.id)]), ("joined", together)):
                found[name].append(run(folder / "table.npy", folder / name, options.E, places))
            identical = identical and chunks(folder / "alone") == chunks(folder / "joined")
            for name in found:
                shutil.rmtree(folder / name)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    least: dict[str, Any] = {
        f"{name}_{kind}": round(min(one[kind] for one in times), 2)
        for name, times in found.items() for kind in ("work", "whole")
    }  # fmt: skip
    print(json.dumps({
        "name": "joined", "device": info.name, "driver": info.driver, "version": pyedmcl.__version__,
        "cores": len(cores), "processes": len(together), "devices": options.devices, "series": options.series,
        "steps": options.steps, "E": options.E, "repeat": options.repeat, **least,
        "joined_to_alone": round(least["joined_work"] / least["alone_work"], 3), "identical": identical,
    }))  # fmt: skip


if __name__ == "__main__":
    main()
