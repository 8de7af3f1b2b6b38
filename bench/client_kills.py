"""A map by the workers of a Dask cluster, one of which is killed every few seconds: is it that of one process?

usage: python bench/client_kills.py [--device intel-cpu] [--workers 2] [--every 5] [--kills 60 --minutes 20]
                                    [--series 2000] [--steps 1000] [--out FILE]

The same map is computed again and again, in memory and into a store, until the given number
of workers was killed by SIGKILL or the minutes are over. Each must have the bits of one that this process computed
alone. Appends a JSON line to FILE.
"""

from __future__ import annotations

import os
import random
import signal
import tempfile
import threading
import time
from argparse import Namespace
from typing import Any

import numpy as np
from common import Report, parser
from workloads import coupled_maps

import pyedmcl
from pyedmcl.device.select import open_device


class Killer(threading.Thread):
    """Kills one of a cluster's workers every few seconds until it is stopped."""

    def __init__(self, client: Any, options: Namespace) -> None:
        super().__init__(daemon=True)
        self._client, self._options = client, options
        self._random = random.Random(0)
        self.stopped, self.kills = threading.Event(), 0

    def run(self) -> None:
        while self.kills < self._options.kills and not self.stopped.wait(self._options.every):
            nannies = list(self._client.cluster.workers.values())
            pids = [nanny.pid for nanny in nannies if nanny.pid]
            if pids:
                os.kill(self._random.choice(pids), signal.SIGKILL)
                self.kills += 1


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--workers", type=int, default=2)
    arguments.add_argument("--every", type=float, default=5.0, help="seconds")
    arguments.add_argument("--kills", type=int, default=60)
    arguments.add_argument("--minutes", type=float, default=20.0)
    arguments.add_argument("--series", type=int, default=2000)
    arguments.add_argument("--steps", type=int, default=1000)
    options = arguments.parse_args()
    import dask
    from distributed import Client, LocalCluster

    # Dask gives a worker up that is not there so long after it was lost: it may have been killed again by then.
    dask.config.set({"distributed.deploy.lost-worker-timeout": "2 hours"})
    info = open_device(options.device).info
    x = coupled_maps(options.series, options.steps)
    call: dict[str, Any] = {"E": 3, "device": info.id}
    wanted = pyedmcl.xmap(x, **call).rho
    maps, differ, begun = 0, 0, time.monotonic()
    with (
        LocalCluster(n_workers=options.workers, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
        tempfile.TemporaryDirectory() as folder,
    ):
        killer = Killer(client, options)
        killer.start()
        while killer.kills < options.kills and time.monotonic() - begun < 60 * options.minutes:
            out = f"{folder}/{maps}.zarr" if maps % 2 else None
            found = pyedmcl.xmap(x, client=client, out=out, **call).rho
            maps, differ = maps + 1, differ + (not np.array_equal(np.asarray(found), wanted))
        killer.stopped.set()
        killer.join()
    seconds = time.monotonic() - begun
    Report(info, options.out).add(
        f"{killer.kills} workers were killed in {seconds:.0f} s; {maps} maps, {differ} of which differ",
        kills=killer.kills, seconds=seconds, maps=maps, differ=differ, workers=options.workers, every_s=options.every,
        series=options.series, steps=options.steps,
    )  # fmt: skip


if __name__ == "__main__":
    main()
