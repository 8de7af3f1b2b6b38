"""Maps, recurrence and library sweeps on 1, 2, 4, ... devices of a machine, by the three ways that share work.

usage: python bench/scale_devices.py [--device gpus] [--maps 8000x3780,20000x8528] [--paper 101729x8528] [--share 0.1]
       [--points 4000000] [--pictures 1000000] [--network 60000] [--matrix 500x2000]
       [--ways devices,joined,dask] [--repeat 2] [--out FILE]

``devices``: one process with ``device=[...]``, timed from call to result after a call that compiled. ``joined``: one
process for each device, which share a folder (``join=True``), timed with all that they start. ``dask``: Dask workers,
one for each device, in a second call; ``first_s`` is the first, with their start.
``--paper`` computes a share of the libraries of a map against all of its targets. ``whole_s`` is what the whole map
would take: until each device has ended its first block (uploads, compiling), and as long for the rest as later blocks.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from common import Report, clock, parser
from workloads import coupled_maps, mixed_dimensions, weather_like

import pyedmcl
from pyedmcl.crossmap.pairs import pairs_arguments
from pyedmcl.crossmap.problem import XmapProblem
from pyedmcl.device.info import DeviceInfo
from pyedmcl.device.select import select_several
from pyedmcl.jobs.blocks import Block, BlockResult, cut
from pyedmcl.jobs.runner import ArraySink
from pyedmcl.states.arguments import runner_on

_PAPER_BLOCK = 128  # libraries

_WORKER = """
import sys, numpy as np, pyedmcl
path, device, out = sys.argv[1:]
x = np.load(path, mmap_mode="r")
E = [1 + (i * 7919) % 20 for i in range(x.shape[1])]
pyedmcl.xmap(x, E=E, device=device, out=out, join=True)
"""


def shape(text: str) -> tuple[int, int]:
    series, steps = text.split("x")
    return int(series), int(steps)


def counts_of(n: int) -> list[int]:
    """1, 2, 4, ... and n."""
    return sorted({*(1 << p for p in range(n.bit_length())), n} & set(range(1, n + 1)))


def many_series(n_series: int, n_steps: int) -> np.ndarray:
    """Coupled maps; beyond 10,000 the same ones with noise of their own (n_steps, n_series)."""
    some = coupled_maps(min(n_series, 10_000), n_steps)
    rng, parts = np.random.default_rng(0), [some]
    for begin in range(some.shape[1], n_series, some.shape[1]):
        part = some[:, : n_series - begin]
        parts.append(part + 0.05 * rng.standard_normal(part.shape, np.float32))
    return np.concatenate(parts, axis=1)


def calls(options: Namespace) -> Iterator[tuple[str, Callable[[Any], Any]]]:
    """Case, and what is called with devices."""
    for text in filter(None, options.maps.split(",")):
        x = many_series(*shape(text))
        E = mixed_dimensions(x.shape[1])
        yield f"xmap {text} mixed", lambda device, x=x, E=E: pyedmcl.xmap(x, E=E, device=device)
    if options.points:
        series = weather_like(options.points)
        yield f"rqa {options.points}", lambda device: pyedmcl.rqa(series, m=5, tau=3, radius=0.7, device=device)
    if options.pictures:
        long = weather_like(options.pictures)
        yield f"recurrence_plot {options.pictures}", partial(_drawn, pyedmcl.recurrence_plot, long, radius=0.7)
        yield f"distance_plot {options.pictures}", partial(_drawn, pyedmcl.distance_plot, long)
    if options.network:
        points = weather_like(options.network)
        yield f"recurrence_network {options.network}", partial(_drawn, pyedmcl.recurrence_network, points, radius=0.7)
    if options.matrix:
        y = many_series(*shape(options.matrix))
        yield f"ccm_matrix {options.matrix}", lambda device: pyedmcl.ccm_matrix(y, E=3, seed=1, device=device)


def _drawn(function: Callable[..., Any], x: np.ndarray, device: Any, **more: Any) -> Any:
    return function(x, m=5, tau=3, device=device, **more)


def on_devices(options: Namespace, infos: list[DeviceInfo], report: Report) -> None:
    """One process, several devices."""
    for case, call in calls(options):
        alone = 0.0
        for n in counts_of(len(infos)):
            ids = [info.id for info in infos[:n]]
            call(ids)
            seconds = statistics.median(clock(partial(call, ids)) for _ in range(options.repeat))
            alone = alone or seconds
            tell(report, "devices", case, n, seconds, alone)


class _TimedSink(ArraySink):
    """Notes when each block ended."""

    def __init__(self, blocks: list[Block], layers: list[np.ndarray]) -> None:
        super().__init__(blocks, layers)
        self.ends: list[float] = []

    def write(self, block: Block, result: BlockResult) -> None:
        super().write(block, result)
        self.ends.append(time.perf_counter())


def paper(options: Namespace, infos: list[DeviceInfo], report: Report) -> None:
    """A share of the libraries of a map that is too large for a benchmark."""
    n_series, n_steps = shape(options.paper)
    x = many_series(n_series, n_steps)
    fields = pairs_arguments(x, E=mixed_dimensions(n_series), tau=1, Tp=0, exclusion_radius=0, knn=None, E_max=20,
                             columns=None, neighbors="exact", recall=0.95, dtype="float32")  # fmt: skip
    problem = XmapProblem(**fields, block_rows=_PAPER_BLOCK)
    alone = 0.0
    for n in counts_of(len(infos)):
        share = options.share * n / len(infos)  # so that each run takes about as long
        rows = max(round(share * n_series) // _PAPER_BLOCK, 2 * n) * _PAPER_BLOCK
        runner = runner_on([info.id for info in infos[:n]], "float32")
        rho = np.empty((rows, n_series), np.float32)
        sink = _TimedSink(cut(rows, _PAPER_BLOCK), [rho])
        begun = time.perf_counter()
        runner.run(problem, sink)
        whole = time.perf_counter() - begun
        done = sink.ends
        steady = (done[-1] - done[n - 1]) / (len(done) - n)  # seconds a block, once each device has ended its first
        seconds = done[n - 1] - begun + steady * (n_series / _PAPER_BLOCK - n)
        alone = alone or seconds
        tell(report, "devices", f"xmap {options.paper} mixed", n, seconds, alone, libraries=rows, measured_s=whole,
             whole_s=seconds)  # fmt: skip
        del rho, sink


def joined(options: Namespace, infos: list[DeviceInfo], report: Report) -> None:
    """A process for each device, which share a folder."""
    text = options.maps.split(",")[0]
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/x.npy", many_series(*shape(text)))
        alone = 0.0
        for n in counts_of(len(infos)):
            command = [sys.executable, "-c", _WORKER, f"{folder}/x.npy"]
            begun = time.perf_counter()
            running = [subprocess.Popen([*command, info.id, f"{folder}/{n}.zarr"]) for info in infos[:n]]
            if any([process.wait() for process in running]):
                raise SystemExit("a joined process failed")
            seconds = time.perf_counter() - begun
            alone = alone or seconds
            tell(report, "joined", f"xmap {text} mixed", n, seconds, alone)


@contextmanager
def dask_workers(infos: list[DeviceInfo]) -> Iterator[Any]:
    """A client of as many workers of one thread as there are devices."""
    from distributed import Client, LocalCluster

    limit = str(10**10)
    with LocalCluster(n_workers=0, dashboard_address=None) as cluster, Client(cluster) as client:
        workers = []
        for rank, _ in enumerate(infos):
            environment = {**os.environ, "SLURM_LOCALID": str(rank), "PYEDMCL_MEMORY_LIMIT": limit}
            options = ["--nthreads", "1", "--no-dashboard", "--no-nanny"]
            command = [sys.executable, "-m", "distributed.cli.dask_worker", cluster.scheduler_address, *options]
            workers.append(subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL))
        try:
            yield client
        finally:
            for worker in workers:
                worker.terminate()
                worker.wait()


def by_dask(options: Namespace, infos: list[DeviceInfo], report: Report) -> None:
    """Dask workers, one for each device: "gpu:local", or the first devices' kind where there are no GPUs."""
    text, alone = options.maps.split(",")[0], 0.0
    x = many_series(*shape(text))
    E, device = mixed_dimensions(x.shape[1]), "gpu:local" if infos[0].kind == "gpu" else infos[0].id
    for n in counts_of(len(infos)):
        with dask_workers(infos[:n]) as client:
            begun = time.perf_counter()
            client.wait_for_workers(n, timeout=60)
            pyedmcl.xmap(x, E=E, device=device, client=client)
            first = time.perf_counter() - begun
            seconds = clock(partial(pyedmcl.xmap, x, E=E, device=device, client=client))
        alone = alone or seconds
        tell(report, "dask", f"xmap {text} mixed", n, seconds, alone, first_s=first)


def tell(report: Report, way: str, case: str, n: int, seconds: float, alone: float, **more: float) -> None:
    ratio = alone / seconds
    report.add(
        f"{way:8s} {case:28s} {n} devices {seconds:9.3f} s, {ratio:5.2f}x ({ratio / n:.0%} efficiency)",
        way=way, case=case, devices=n, seconds=seconds, ratio=ratio, host_bytes=_host_bytes(), **more,
    )  # fmt: skip


def _host_bytes() -> int:
    """The most memory that this process has held so far."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM")), 0)


def main() -> None:
    arguments = parser(__doc__, repeat=2)
    arguments.set_defaults(device="gpus")
    arguments.add_argument("--maps", default="8000x3780,20000x8528", help="the first is for joined and dask")
    arguments.add_argument("--paper", default="101729x8528")
    arguments.add_argument("--share", type=float, default=0.1, help="of the paper's libraries, on all devices; 0: none")
    arguments.add_argument("--points", type=int, default=4_000_000, help="0: no recurrence")
    arguments.add_argument("--pictures", type=int, default=1_000_000, help="points of plots; 0: none")
    arguments.add_argument("--network", type=int, default=60_000, help="points of a recurrence network; 0: none")
    arguments.add_argument("--matrix", default="500x2000")
    arguments.add_argument("--ways", default="devices,joined,dask")
    options = arguments.parse_args()
    infos = [choice.device for choice in select_several(options.device)]
    report = Report(infos[0], options.out)
    print(f"{len(infos)} devices: {', '.join(info.name for info in infos)}")
    ways = options.ways.split(",")
    if "devices" in ways:
        on_devices(options, infos, report)
        if options.share:
            paper(options, infos, report)
    if "joined" in ways:
        joined(options, infos, report)
    if "dask" in ways:
        by_dask(options, infos, report)


if __name__ == "__main__":
    main()
