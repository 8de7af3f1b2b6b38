"""Recurrence quantification against PyRQA, host array to all measures, both in this run and in turn.

usage: python bench/compare_pyrqa.py [--device NAME] [--sizes 20000] [--ours-only 50000,100000] [--variants NAME,...]
       [--peer-edges 10000] [--repeat 3] [--image 1000000x2000] [--edges 1000,2000,...] [--edge-size N] [--out FILE]

The series is weather_like(N), m = 5, tau = 3, Euclidean, radius 0.7, Theiler window 1. PyRQA runs on the same device,
its default and its variants at each edge, once where a run takes more than --peer-limit seconds. A ratio is its median
over ours.
--edges times our own tile edges at one size. Prints a table for people and appends a JSON line per case to FILE.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np
from workloads import weather_like

import pyedmcl
from pyedmcl.device.select import select
from pyedmcl.device.session import open_device

POINTS = {"m": 5, "tau": 3, "radius": 0.7}
MODES = {"float32": {"exact": False}, "exact": {"exact": True}}
CHECKED = {"RR": "recurrence_rate", "DET": "determinism", "LAM": "laminarity", "L": "average_diagonal_line"}


def clock(function: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of a call, and what it returned."""
    gc.collect()
    start = time.perf_counter()
    found = function()
    return time.perf_counter() - start, found


def timed(function: Callable[[], Any], repeat: int) -> tuple[list[float], Any]:
    """Seconds of each call after one that compiles, and what the last returned."""
    clock(function)
    runs = [clock(function) for _ in range(repeat)]
    return [seconds for seconds, _ in runs], runs[-1][1]


def variants() -> dict[str, Any]:
    """PyRQA's default (None) and its three fastest variants."""
    from pyrqa.variants.rqa.radius import column_no_overlap_no_materialisation as no_overlap
    from pyrqa.variants.rqa.radius import column_overlap_materialisation_bit_no_recycling as bit
    from pyrqa.variants.rqa.radius import column_overlap_no_materialisation as overlap

    return {
        "default": None,
        "no_overlap": no_overlap.ColumnNoOverlapNoMaterialisation,
        "overlap": overlap.ColumnOverlapNoMaterialisation,
        "bit": bit.ColumnOverlapMaterialisationBitNoRecycling,
    }


def peer_runner(x: np.ndarray, edge: int, variant: Any, platform: int, number: int) -> Callable[[], Any]:
    """A whole run of PyRQA."""
    from pyrqa.analysis_type import Classic
    from pyrqa.computation import RQAComputation
    from pyrqa.metric import EuclideanMetric
    from pyrqa.neighbourhood import FixedRadius
    from pyrqa.opencl import OpenCL
    from pyrqa.settings import Settings
    from pyrqa.time_series import TimeSeries

    series = TimeSeries(x, embedding_dimension=POINTS["m"], time_delay=POINTS["tau"], dtype=np.float32)
    settings = Settings(series, analysis_type=Classic, neighbourhood=FixedRadius(POINTS["radius"]),
                        similarity_measure=EuclideanMetric, theiler_corrector=1)  # fmt: skip
    more = {} if variant is None else {"variants": (variant,), "variants_kwargs": {"optimisations_enabled": True}}

    def run() -> Any:
        opencl = OpenCL(platform_id=platform, device_ids=(number,))
        return RQAComputation.create(settings, edge_length=edge, opencl=opencl, **more).run()

    return run


class Report:
    """Lines for people and for files."""

    def __init__(self, info: Any, out: str | None) -> None:
        self.base = {"device": info.name, "runtime": info.runtime, "driver": info.driver}
        self.base["version"] = pyedmcl.__version__
        self.out = out

    def add(self, text: str, **record: Any) -> None:
        print(text, flush=True)
        if self.out:
            with open(self.out, "a") as file:
                file.write(json.dumps({**record, **self.base}) + "\n")


def ours(x: np.ndarray, device: str | None, repeat: int, **more: Any) -> tuple[list[float], Any]:
    def run() -> Any:
        found = pyedmcl.rqa(x, device=device, **POINTS, **more)
        found.to_dict()  # measures follow from counts when they are asked for
        return found

    return timed(run, repeat)


def compare(report: Report, n: int, options: argparse.Namespace, ids: tuple[int, int] | None) -> None:
    """One size: our modes, then PyRQA's variants; ratios of the default and of the best one."""
    x = weather_like(n)
    mine = {}
    for mode, more in MODES.items():
        seconds, found = ours(x, options.device, options.repeat, **more)
        mine[mode] = statistics.median(seconds)
        measures = {short: float(found[short]) for short in CHECKED}
        rate = n * n / mine[mode] / 1e9
        text = f"{n:>9,} {'pyedmcl ' + mode:<24} {mine[mode]:10.4f} s {rate:9.1f} Gcell/s"
        report.add(text, case="rqa", N=n, who="pyedmcl", mode=mode, seconds=mine[mode], all=seconds, gcells_per_s=rate,
                   **measures)  # fmt: skip
    if ids is None:
        return
    best: dict[str, float] = {}
    wanted = options.variants.split(",") if options.variants else list(variants())
    for edge in map(int, options.peer_edges.split(",")):
        for name in wanted:
            run = peer_runner(x, edge, variants()[name], *ids)
            first, found = clock(run)  # compiles
            if first > options.peer_limit:
                seconds = [first]
            else:
                timings = [clock(run) for _ in range(options.repeat)]
                seconds, found = [t for t, _ in timings], timings[-1][1]
            taken = statistics.median(seconds)
            best[name] = min(best.get(name, taken), taken)
            theirs = {short: float(getattr(found, long)) for short, long in CHECKED.items()}
            rate = n * n / taken / 1e9
            ratios = {f"ratio_{mode}": taken / own for mode, own in mine.items()}
            shown = ", ".join(f"{ratio:.1f}x {mode}" for (mode, ratio) in zip(mine, ratios.values(), strict=True))
            report.add(f"{n:>9,} {f'PyRQA {name} {edge}':<24} {taken:10.4f} s {rate:9.1f} Gcell/s  {shown}", case="rqa",
                       N=n, who=f"PyRQA {version('PyRQA')}", variant=name, edge=edge, seconds=taken, all=seconds,
                       gcells_per_s=rate, **ratios, **theirs)  # fmt: skip
    fastest = min(best, key=lambda name: best[name])
    for mode, own in mine.items():
        summary = {"best": fastest, "ratio_best": best[fastest] / own}
        text = f"{n:>9,} {mode}: best of PyRQA ({fastest}) / ours = {best[fastest] / own:.1f}"
        if "default" in best:
            summary["ratio_default"] = best["default"] / own
            text += f", its default / ours = {best['default'] / own:.1f}"
        report.add(text, case="ratio", N=n, mode=mode, **summary)


def place(info: Any) -> tuple[int, int] | None:
    """Platform and device number of our device as PyRQA counts them; None, with a remark, where it cannot run."""
    try:
        import pyrqa  # noqa: F401
    except ImportError:
        print("PyRQA is not installed (pip install PyRQA): our side alone", file=sys.stderr)
        return None
    import pyopencl

    for number, platform in enumerate(pyopencl.get_platforms()):
        for index, device in enumerate(platform.get_devices()):
            if device.name.strip() == info.name and device.driver_version == info.driver:
                return number, index
    print(f"PyRQA does not see {info.name}: our side alone", file=sys.stderr)
    return None


def draw(report: Report, n: int, pixels: int, options: argparse.Namespace) -> None:
    """Images of one size."""
    x = weather_like(n)
    common = {"m": POINTS["m"], "tau": POINTS["tau"], "pixels": pixels, "device": options.device}
    cases = {
        "recurrence_plot": lambda: pyedmcl.recurrence_plot(x, radius=POINTS["radius"], **common),
        "distance_plot": lambda: pyedmcl.distance_plot(x, **common),
    }
    for case, function in cases.items():
        seconds, _ = timed(function, options.repeat)
        own = statistics.median(seconds)
        report.add(f"{n:>9,} {case} {pixels} pixels {own:10.4f} s {n * n / own / 1e9:9.1f} Gcell/s", case=case, N=n,
                   pixels=pixels, seconds=own, all=seconds)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device")
    parser.add_argument("--sizes", default="20000", help="against PyRQA; '' for none")
    parser.add_argument("--ours-only", default="", help="sizes that PyRQA is not asked for")
    parser.add_argument("--variants", default="", help="of default,no_overlap,overlap,bit; all by default")
    parser.add_argument("--peer-edges", default="10000")
    parser.add_argument("--peer-limit", type=float, default=30.0, help="a run longer than this is timed once")
    parser.add_argument("--image", default="", help="points x pixels, such as 1000000x2000")
    parser.add_argument("--edges", default="", help="tile edges of ours to time")
    parser.add_argument("--edge-size", type=int, default=100_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--out")
    options = parser.parse_args()
    info = select(options.device).device
    open_device(options.device)
    report = Report(info, options.out)
    print(f"{info.name} ({info.runtime}, driver {info.driver})")
    ids = place(info)
    for n in filter(None, options.sizes.split(",")):
        compare(report, int(n), options, ids)
    for n in filter(None, options.ours_only.split(",")):
        compare(report, int(n), options, None)
    for spec in filter(None, options.image.split(",")):
        draw(report, *map(int, spec.split("x")), options)
    for edge in filter(None, options.edges.split(",")):
        x = weather_like(options.edge_size)
        seconds, _ = ours(x, options.device, options.repeat, tile=int(edge))
        own = statistics.median(seconds)
        report.add(f"{options.edge_size:>9,} tile {edge:>7} {own:10.4f} s {len(x) ** 2 / own / 1e9:9.1f} Gcell/s",
                   case="edge", N=options.edge_size, tile=int(edge), seconds=own, all=seconds)  # fmt: skip


if __name__ == "__main__":
    main()
