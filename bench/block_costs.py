"""What it costs to hand out blocks and to keep what they give, beside computing them, in seconds of the processor.

usage: python bench/block_costs.py [--device intel-cpu] [--ways memory,store,joined,dask] [--series 5000]
                                   [--out FILE]

Blocks that compute nothing, and give a row each of a map of the given series, go through each way: into memory, into a
store, into a store that is shared, and to two Dask workers and back. Counted is the processor time of this process, in
which Dask's scheduler runs, too, and that of all processes with the workers. It hardly depends on what else the machine
does. Told is also from which processor time of a run on it is less than 5 % of it. Prints a line for each way.
"""

from __future__ import annotations

import tempfile
import time
from argparse import Namespace
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from common import Report, parser

import pyedmcl
from pyedmcl.device.select import open_device
from pyedmcl.jobs import Manifest
from pyedmcl.jobs.blocks import Block, BlockResult, cut
from pyedmcl.jobs.client import ClientRunner
from pyedmcl.jobs.runner import ArraySink, LocalRunner
from pyedmcl.jobs.sharing import sink_at
from pyedmcl.jobs.store import open_to_write


@dataclass(frozen=True)
class Nothing:
    """Rows of a map that are not computed."""

    total: int
    unit: str = "series"
    operations: float = 1.0

    def size(self, block: Block) -> int:
        return len(block)

    def open(self, executor: Any) -> Nothing:
        return self

    def block(self, block: Block, into: Any, report: Any) -> BlockResult:
        return BlockResult([np.zeros((len(block), self.total), np.float32)])

    def release(self) -> None:
        pass


def cpu_seconds(pids: list[int]) -> float:
    """Processor seconds of this process, and of others that run."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return time.process_time() + ticks / 100


def handed_out(way: str, options: Namespace, client: Any) -> None:
    """Hand all blocks out, one way."""
    executor = open_device(options.device)
    n = options.series
    problem, runner = Nothing(n), ClientRunner(client, executor.info.id) if client else None
    with ExitStack() as stack:
        if way in ("memory", "dask"):
            sink: Any = ArraySink(cut(n, 1), [np.empty((n, n), np.float32)])
        else:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "map.zarr"
            manifest = Manifest("0" * 64, [str(i) for i in range(n)], 1, {}, pyedmcl.__version__)
            begin = 0.0 if way == "joined" else None
            sink = stack.enter_context(
                sink_at(folder, "none", begin, lambda member: [open_to_write(folder, manifest, member)])
            )
        (runner or LocalRunner([executor])).run(problem, sink)


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--ways", default="memory,store,joined,dask")
    arguments.add_argument("--series", type=int, default=5000)
    options = arguments.parse_args()
    info = open_device(options.device).info
    report = Report(info, options.out)
    for way in options.ways.split(","):
        with ExitStack() as stack:
            client, pids = None, list[int]()
            if way == "dask":
                from distributed import Client, LocalCluster

                cluster = stack.enter_context(LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None))
                client = stack.enter_context(Client(cluster))
                handed_out(way, options, client)  # workers import pyedmcl
                pids = [nanny.pid for nanny in cluster.workers.values()]
            begun, own = cpu_seconds(pids), time.process_time()
            handed_out(way, options, client)
            own, spent = time.process_time() - own, cpu_seconds(pids) - begun
        n = options.series
        report.add(
            f"{way:7s} {own / n * 1e3:5.2f} ms of this process for each of {n} blocks, {spent / n * 1e3:5.2f} of all: "
            f"below 5 % where a block takes {spent / n * 20e3:5.1f} ms, and the run {spent * 20:.1f} s of a core",
            way=way, blocks=n, own_ms=round(own / n * 1e3, 3), all_ms=round(spent / n * 1e3, 3),
            least_block_ms=round(spent / n * 20e3, 2), least_run_s=round(spent * 20, 1),
        )  # fmt: skip


if __name__ == "__main__":
    main()
