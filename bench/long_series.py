"""Series longer than peers take, and the device memory of an all-pairs job. One JSON line a case.

usage: python bench/long_series.py [--device NAME] [--steps 1000000] [--out FILE]
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np
from workloads import coupled_maps, mixed_dimensions

import pyedmcl
from pyedmcl.device.session import open_device


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device")
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--out")
    options = parser.parse_args()
    executor = open_device(options.device)

    def case(name: str, function: object) -> None:
        function()  # type: ignore[operator]
        executor.memory.peak = executor.memory.held
        start = time.perf_counter()
        function()  # type: ignore[operator]
        record = {"case": name, "seconds": time.perf_counter() - start, "device_peak_bytes": executor.memory.peak,
                  "device": executor.info.name, "runtime": executor.info.runtime}  # fmt: skip
        print(json.dumps(record), flush=True)
        if options.out:
            with open(options.out, "a") as file:
                file.write(json.dumps(record) + "\n")

    x = np.random.default_rng(0).standard_normal(options.steps).astype(np.float32)
    case(f"knn {options.steps} steps, E=3, k=4", lambda: pyedmcl.knn(x, E=3, device=options.device))
    y = coupled_maps(82, 10_608)
    mixed = mixed_dimensions(82)
    case("xmap 82x10608 mixed", lambda: pyedmcl.xmap(y, E=mixed, device=options.device))


if __name__ == "__main__":
    main()
