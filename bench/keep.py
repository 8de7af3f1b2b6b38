"""A whole map, and the strongest pairs of it only: how long each takes, and how much memory of the host.

usage: python bench/keep.py [--device gpu] [--series 8000] [--steps 1000] [--repeat 3] [--out FILE]

Prints a line for people and appends a JSON line per rule to FILE. Calls take turns; seconds are the medians. Memory is
the peak of what NumPy and Python hold in a further call, without the series themselves.
"""

from __future__ import annotations

import functools
import statistics
import tracemalloc
from collections.abc import Callable
from typing import Any

from common import Report, clock, parser
from workloads import coupled_maps, mixed_dimensions

import pyedmcl
from pyedmcl.device.select import select

RULES = ("all", "top:50", "top:50:target", "rho>0.9")


def peak(call: Callable[[], Any]) -> int:
    """Bytes that were held at most."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def main() -> None:
    arguments = parser(__doc__, repeat=3)
    arguments.add_argument("--series", type=int, default=8000)
    arguments.add_argument("--steps", type=int, default=1000)
    options = arguments.parse_args()
    x, E = coupled_maps(options.series, options.steps), mixed_dimensions(options.series)
    info = select(options.device).device
    report = Report(info, options.out)
    calls = {rule: functools.partial(pyedmcl.xmap, x, E=E, keep=rule, device=info.id) for rule in RULES}
    results = {rule: call() for rule, call in calls.items()}  # compiles, too
    times = [{rule: clock(call) for rule, call in calls.items()} for _ in range(options.repeat)]
    for rule, call in calls.items():
        seconds, held = statistics.median(run[rule] for run in times), peak(call)
        edges = options.series**2 if rule == "all" else len(results[rule])
        report.add(
            f"{rule:14s} {seconds:8.3f} s {edges:12,} pairs, {held / 1e6:8.1f} MB", keep=rule, series=options.series,
            steps=options.steps, seconds=seconds, edges=edges, peak_bytes=held,
        )  # fmt: skip


if __name__ == "__main__":
    main()
