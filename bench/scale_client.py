"""One process with all cores beside workers of a cluster with one core each: how much the way through `client=` costs.

usage: python bench/scale_client.py [--device intel-cpu] [--engines dask,spawned,loky] [--workers 2] [--series 5000]
                                    [--steps 500] [--repeat 3] [--out FILE]

Prints a line for each engine and way of cutting and appends it to FILE. Both take turns; a ratio is that of the least
times, above 1 where the workers are faster. "Fine" is a map of a block for each series, 5,000 by default, "coarse" the
blocks that are usual. The first call through a client, in which workers load and compile, is told apart.
"""

from __future__ import annotations

import multiprocessing
import os
from argparse import Namespace
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
from common import Report, clock, parser
from workloads import coupled_maps

import pyedmcl
from pyedmcl.crossmap import xmap as maps
from pyedmcl.device.select import open_device


def pin(cores: Any) -> None:
    """Keep this process on a core of its own, before it looks for a device."""
    os.sched_setaffinity(0, {cores.get()})


@contextmanager
def client_of(engine: str, workers: int) -> Iterator[Any]:
    """A client whose workers have a core each."""
    if engine == "dask":
        from distributed import Client, LocalCluster

        with (
            LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster,
            Client(cluster) as client,
        ):
            for core, worker in enumerate(client.nthreads()):
                client.run(os.sched_setaffinity, 0, {core}, workers=[worker])
            yield client
        return
    with multiprocessing.get_context("spawn").Manager() as manager:
        cores = manager.Queue()
        for core in range(workers):
            cores.put(core)
        if engine == "spawned":
            context = multiprocessing.get_context("spawn")
            with ProcessPoolExecutor(workers, mp_context=context, initializer=pin, initargs=(cores,)) as pool:
                yield pool
        elif engine == "loky":
            from loky import ProcessPoolExecutor as Loky

            with Loky(workers, initializer=pin, initargs=(cores,)) as pool:
                yield pool
        else:
            raise SystemExit(f"--engines {engine}: dask, spawned or loky")


@contextmanager
def blocks_of(rows: int | None) -> Iterator[None]:
    """Blocks of ``rows`` series; as is usual for None."""
    usual = maps.libraries_of_a_block
    maps.libraries_of_a_block = usual if rows is None else lambda *_: rows
    try:
        yield
    finally:
        maps.libraries_of_a_block = usual


def compare(options: Namespace, client: Any, rows: int | None) -> dict[str, Any]:
    """Times of the same map in this process and on the workers of a client."""
    x = coupled_maps(options.series, options.steps)
    device = open_device(options.device).info.id

    def call(**more: Any) -> Any:
        with blocks_of(rows):
            return pyedmcl.xmap(x, E=3, device=device, **more).rho

    call()
    first = clock(lambda: call(client=client))
    same = bool(np.array_equal(call(), call(client=client), equal_nan=True))
    times = [(clock(call), clock(lambda: call(client=client))) for _ in range(options.repeat)]
    alone, there = (min(part) for part in zip(*times, strict=True))
    return {"alone_s": alone, "client_s": there, "ratio": alone / there, "first_s": first, "same_bits": same}


def main() -> None:
    arguments = parser(__doc__, repeat=3)
    arguments.add_argument("--engines", default="dask,spawned,loky")
    arguments.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    arguments.add_argument("--series", type=int, default=5000)
    arguments.add_argument("--steps", type=int, default=500)
    options = arguments.parse_args()
    report = Report(open_device(options.device).info, options.out)
    for engine in options.engines.split(","):
        with client_of(engine, options.workers) as client:
            for cutting, rows in (("coarse", None), ("fine", 1)):
                found = compare(options, client, rows)
                text = (f"{engine:8s} {cutting:6s} {found['alone_s']:7.2f} s alone, {found['client_s']:7.2f} s by "
                        f"{options.workers} workers: {found['ratio']:.2f}x; first call {found['first_s']:.2f} s; "
                        f"{'the same bits' if found['same_bits'] else 'OTHER BITS'}")  # fmt: skip
                report.add(text, engine=engine, cutting=cutting, workers=options.workers, series=options.series,
                           steps=options.steps, **found)  # fmt: skip


if __name__ == "__main__":
    main()
