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
import statistics
import sys
import time
from typing import Any

from common import Report, parser, timed
from peers import PYRQA_VARIANTS, pyrqa
from workloads import weather_like

import pyedmcl
from pyedmcl.device.info import DeviceInfo
from pyedmcl.device.select import open_device, select

POINTS: dict[str, Any] = {"m": 5, "tau": 3, "radius": 0.7}
MODES = {"float32": {"exact": False}, "exact": {"exact": True}}
CHECKED = {"RR": "recurrence_rate", "DET": "determinism", "LAM": "laminarity", "L": "average_diagonal_line"}


def ours(x: Any, options: argparse.Namespace, **more: Any) -> tuple[list[float], Any]:
    """Seconds of our runs, and a result."""

    def run() -> Any:
        result = pyedmcl.rqa(x, device=options.device, **POINTS, **more)
        result.to_dict()  # measures follow from counts when they are asked for
        return result

    return timed(run, options.repeat)


def compare(report: Report, info: DeviceInfo, n: int, options: argparse.Namespace, with_peer: bool) -> None:
    """One size: our modes, then PyRQA's variants; ratios of the default and of the best one."""
    x = weather_like(n)
    mine = {}
    for mode, more in MODES.items():
        seconds, result = ours(x, options, **more)
        mine[mode] = statistics.median(seconds)
        measures = {short: float(result[short]) for short in CHECKED}
        rate = n * n / mine[mode] / 1e9
        text = f"{n:>9,} {'pyedmcl ' + mode:<24} {mine[mode]:10.4f} s {rate:9.1f} Gcell/s"
        report.add(text, case="rqa", N=n, who="pyedmcl", mode=mode, seconds=mine[mode], all=seconds, gcells_per_s=rate,
                   **measures)  # fmt: skip
    best = peer_variants(report, info, x, mine, options) if with_peer else {}
    if not best:
        return
    fastest = min(best, key=lambda name: best[name])
    for mode, own in mine.items():
        summary = {"best": fastest, "ratio_best": best[fastest] / own}
        text = f"{n:>9,} {mode}: best of PyRQA ({fastest}) / ours = {best[fastest] / own:.1f}"
        if "default" in best:
            summary["ratio_default"] = best["default"] / own
            text += f", its default / ours = {best['default'] / own:.1f}"
        report.add(text, case="ratio", N=n, mode=mode, **summary)


def peer_variants(
    report: Report, info: DeviceInfo, x: Any, mine: dict[str, float], options: argparse.Namespace
) -> dict[str, float]:
    """Seconds of each of PyRQA's variants at its best edge; empty where PyRQA cannot run."""
    best: dict[str, float] = {}
    n = len(x)
    for edge in map(int, options.peer_edges.split(",")):
        for name in options.variants.split(",") if options.variants else PYRQA_VARIANTS:
            peer = pyrqa(info, x, **POINTS, variant=name, edge=edge)
            if peer is None:
                print(f"PyRQA is not installed, or does not see {info.name}: our side alone", file=sys.stderr)
                return {}
            begun = time.perf_counter()
            result = peer.call()  # compiles
            seconds = [time.perf_counter() - begun]
            if seconds[0] <= options.peer_limit:
                seconds, result = timed(peer.call, options.repeat)
            taken = statistics.median(seconds)
            best[name] = min(best.get(name, taken), taken)
            theirs = {short: float(getattr(result, long)) for short, long in CHECKED.items()}
            rate = n * n / taken / 1e9
            ratios = {f"ratio_{mode}": taken / own for mode, own in mine.items()}
            shown = ", ".join(f"{ratio:.1f}x {mode}" for (mode, ratio) in zip(mine, ratios.values(), strict=True))
            report.add(f"{n:>9,} {f'PyRQA {name} {edge}':<24} {taken:10.4f} s {rate:9.1f} Gcell/s  {shown}", case="rqa",
                       N=n, who=peer.label, variant=name, edge=edge, seconds=taken, all=seconds, gcells_per_s=rate,
                       **ratios, **theirs)  # fmt: skip
    return best


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
    command = parser(__doc__, repeat=3)
    command.add_argument("--sizes", default="20000", help="against PyRQA; '' for none")
    command.add_argument("--ours-only", default="", help="sizes that PyRQA is not asked for")
    command.add_argument("--variants", default="", help=f"of {','.join(PYRQA_VARIANTS)}; all by default")
    command.add_argument("--peer-edges", default="10000")
    command.add_argument("--peer-limit", type=float, default=30.0, help="a run longer than this is timed once")
    command.add_argument("--image", default="", help="points x pixels, such as 1000000x2000")
    command.add_argument("--edges", default="", help="tile edges of ours to time")
    command.add_argument("--edge-size", type=int, default=100_000)
    options = command.parse_args()
    info = select(options.device).device
    open_device(options.device)
    report = Report(info, options.out)
    print(report.title)
    for sizes, with_peer in ((options.sizes, True), (options.ours_only, False)):
        for n in filter(None, sizes.split(",")):
            compare(report, info, int(n), options, with_peer)
    for spec in filter(None, options.image.split(",")):
        draw(report, *map(int, spec.split("x")), options)
    for edge in filter(None, options.edges.split(",")):
        x = weather_like(options.edge_size)
        seconds, _ = ours(x, options, tile=int(edge))
        own = statistics.median(seconds)
        report.add(f"{options.edge_size:>9,} tile {edge:>7} {own:10.4f} s {len(x) ** 2 / own / 1e9:9.1f} Gcell/s",
                   case="edge", N=options.edge_size, tile=int(edge), seconds=own, all=seconds)  # fmt: skip


if __name__ == "__main__":
    main()
