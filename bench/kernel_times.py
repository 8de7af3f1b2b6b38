"""Time of each kernel within a whole map, for one or several sets of the lookup's parameters.

usage: python bench/kernel_times.py [--device NAME] [--shape 2000x3780] [--libraries N] [--E 3] [--precision full]
                                    [--lookup JSON ...] [--out FILE]

``--lookup`` takes parameters by name, such as ``'{"row_lanes": 8, "unroll": 4}'``; without it those are used that a map
would take. ``lookup_bytes_per_s`` counts k neighbours and the observation of each prediction, from whatever memory is
nearest.
"""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from typing import Any
from unittest import mock

from common import Report, compiled, parser
from workloads import coupled_maps

import pyedmcl
from pyedmcl.device.opencl import OpenCLExecutor
from pyedmcl.device.select import select
from pyedmcl.tuning.parameters import using


def measure(x: Any, repeat: int, **options: Any) -> dict[str, float]:
    """Median seconds of each kernel's launches in a map."""
    launch, events = OpenCLExecutor.launch, []

    def noted(self: OpenCLExecutor, kernel: Any, *sizes: Any, **arguments: Any) -> Any:
        event = launch(self, kernel, *sizes, **arguments)
        events.append((kernel.name, event))
        return event

    times: dict[str, list[float]] = defaultdict(list)
    compiled(lambda: pyedmcl.xmap(x, **options))
    with mock.patch.object(OpenCLExecutor, "launch", noted):
        for _ in range(repeat):
            events.clear()
            pyedmcl.xmap(x, **options)
            sums: dict[str, float] = defaultdict(float)
            for name, event in events:
                sums[name] += event.seconds
            for name, seconds in sums.items():
                times[name].append(seconds)
    return {name: statistics.median(some) for name, some in times.items()}


def main() -> None:
    command = parser(__doc__, repeat=3)
    command.add_argument("--shape", default="2000x3780")
    command.add_argument("--E", type=int, default=3)
    command.add_argument("--libraries", type=int, help="fewer than there are targets")
    command.add_argument("--precision", default="full")
    command.add_argument("--lookup", action="append", type=json.loads)
    options = command.parse_args()
    report = Report(select(options.device).device, options.out)
    n, length = map(int, options.shape.split("x"))
    x, libraries = coupled_maps(n, length), options.libraries or n
    for parameters in options.lookup or [{}]:
        with using(lookup=parameters):
            seconds = measure(
                x[:, :libraries], options.repeat, targets=None if libraries == n else x, E=options.E,
                device=options.device, precision=options.precision,
            )  # fmt: skip
        item = 4.0 if options.precision == "full" else 2.0
        read = item * libraries * n * (length - options.E + 1) * (options.E + 2)
        report.add(shape=options.shape, libraries=libraries, E=options.E, precision=options.precision,
                   lookup=parameters, seconds=seconds,
                   lookup_bytes_per_s=read / seconds["lookup"])  # fmt: skip


if __name__ == "__main__":
    main()
