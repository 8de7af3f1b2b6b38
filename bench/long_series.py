"""Series longer than peers take, and the device memory of an all-pairs job. One JSON line a case.

usage: python bench/long_series.py [--device NAME] [--steps 1000000] [--out FILE]
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from common import Report, compiled, parser
from workloads import coupled_maps, mixed_dimensions

import pyedmcl
from pyedmcl.device.select import open_device


def main() -> None:
    command = parser(__doc__)
    command.add_argument("--steps", type=int, default=1_000_000)
    options = command.parse_args()
    executor = open_device(options.device)
    report = Report(executor.info, options.out)

    def case(name: str, function: Callable[[], object]) -> None:
        compiled(function)
        executor.memory.peak = executor.memory.held
        start = time.perf_counter()
        function()
        report.add(case=name, seconds=time.perf_counter() - start, device_peak_bytes=executor.memory.peak)

    x = np.random.default_rng(0).standard_normal(options.steps).astype(np.float32)
    case(f"knn {options.steps} steps, E=3, k=4", lambda: pyedmcl.knn(x, E=3, device=options.device))
    y = coupled_maps(82, 10_608)
    mixed = mixed_dimensions(82)
    case("xmap 82x10608 mixed", lambda: pyedmcl.xmap(y, E=mixed, device=options.device))


if __name__ == "__main__":
    main()
