"""Joined processes that are killed and started again: ``python bench/joined_kills.py``; prints a line of JSON.

Some processes fill one folder together (``join=True``). Every few seconds one of them is ended by SIGKILL and started
again, until the kills or minutes are reached. Each time a map is complete its bytes are compared with those of one
process, and the next begins. Counted are the blocks that were computed more often than once, which may be one for each
kill: that which was being computed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
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
from pyedmcl.simulate import coupled_maps

WORKER = """
import sys
from pyedmcl.jobs import store
import numpy as np
import pyedmcl
write = store.XmapStore.write
def told(self, block, rows):
    write(self, block, rows)
    print("block", block, flush=True)
store.XmapStore.write = told
data, out, device, e_max = sys.argv[1:]
pyedmcl.xmap(np.load(data), E_max=int(e_max), out=out, device=device, join=True)
print("complete", flush=True)
"""


def start(table: Path, out: Path, options: argparse.Namespace, log: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", WORKER, str(table), str(out), options.device, str(options.E_max)]
    with log.open("ab") as file:
        return subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, env=config.child_environment())


def chunks(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in (path / "rho").glob("c.*")}


def one_map(folder: Path, table: Path, expected: dict[str, bytes], options: argparse.Namespace, left: int,
            deadline: float) -> dict[str, Any]:  # fmt: skip
    """A map that is computed while processes are killed, ``left`` times at most."""
    out, log = folder / "joined.zarr", folder / "log"
    log.write_bytes(b"")
    begun, chance, kills = time.monotonic(), random.Random(), 0
    running = [start(table, out, options, log) for _ in range(options.processes)]
    next_kill = begun + options.every
    while any(process.poll() is None for process in running):
        if kills < left and time.monotonic() >= min(next_kill, deadline) and time.monotonic() < deadline:
            place = chance.randrange(len(running))
            if running[place].poll() is None:
                running[place].send_signal(signal.SIGKILL)
                running[place].wait()
                kills += 1
                running[place] = start(table, out, options, log)
            next_kill = time.monotonic() + options.every
        time.sleep(0.02)
    said = log.read_text(errors="replace").splitlines()
    written = [line for line in said if line.startswith("block ")]
    other = [line for line in said if not line.startswith(("block ", "complete", "  ")) and "Warning:" not in line]
    found = {
        "kills": kills,
        "seconds": time.monotonic() - begun,
        "blocks": len(expected),
        "twice": len(written) - len(set(written)),
        "identical": chunks(out) == expected,
        "left_over": [str(path.name) for path in out.rglob(".pyedmcl-*")],
        "failed": sum(process.returncode != 0 for process in running),
        "said": other[-5:],
    }
    shutil.rmtree(out)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="")
    parser.add_argument("--processes", type=int, default=3)
    parser.add_argument("--every", type=float, default=5.0, help="seconds between two kills")
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--series", type=int, default=1500)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--E-max", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="on the file system to be tried; a temporary one by default")
    options = parser.parse_args()
    info = open_device(options.device or None).info
    options.device = info.id
    folder = Path(tempfile.mkdtemp(prefix="joined-kills-", dir=options.folder))
    try:
        rng = np.random.default_rng(1)
        data = coupled_maps(n_series=8, n_steps=options.steps).values
        table = folder / "table.npy"
        mixed = np.repeat(data, -(-options.series // 8), axis=1)[:, : options.series]
        np.save(table, mixed + 0.1 * rng.standard_normal(mixed.shape))
        begun = time.monotonic()
        pyedmcl.xmap(np.load(table), E_max=options.E_max, out=folder / "alone.zarr", device=options.device)
        alone = time.monotonic() - begun
        expected, maps = chunks(folder / "alone.zarr"), []
        begun, kills = time.monotonic(), 0
        deadline = begun + 60 * options.minutes
        while kills < options.kills and time.monotonic() < deadline:
            maps.append(one_map(folder, table, expected, options, options.kills - kills, deadline))
            kills += maps[-1]["kills"]
            print(json.dumps(maps[-1]), file=sys.stderr, flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps({
        "name": "joined_kills", "device": info.name, "driver": info.driver, "cores": os.cpu_count(),
        "version": pyedmcl.__version__, "series": options.series, "steps": options.steps, "E_max": options.E_max,
        "processes": options.processes, "every": options.every, "seconds_alone": round(alone, 1),
        "seconds": round(time.monotonic() - begun, 1), "maps": len(maps), "kills": kills,
        "blocks": sum(one["blocks"] for one in maps), "written_twice": sum(one["twice"] for one in maps),
        "identical": all(one["identical"] for one in maps), "failed": sum(one["failed"] for one in maps),
        "left_over": sum(len(one["left_over"]) for one in maps),
        "said": [line for one in maps for line in one["said"]][:5],
    }))  # fmt: skip


if __name__ == "__main__":
    main()
