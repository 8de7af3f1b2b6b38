"""The first call of a process beside later ones: it opens the device, and compiles programs or fetches them.

A case is one process, since only its first call counts. What lies in caches decides: run it on a fresh machine, or with
empty ones (PYEDMCL_CACHE_DIR, POCL_CACHE_DIR, CUDA_CACHE_PATH), and say which by --caches.

usage: python bench/first_call.py [--device NAME] [--case mixed|auto] [--shape 2000x3780] [--caches WORDS] [--out FILE]
"""

from __future__ import annotations

import time

import numpy as np
from common import Report, clock, parser
from workloads import coupled_maps, mixed_dimensions


def main() -> None:
    command = parser(__doc__, repeat=3)
    command.add_argument("--case", choices=("mixed", "auto"), default="mixed", help="E of each target given, or found")
    command.add_argument("--shape", default="2000x3780")
    command.add_argument("--caches", default="not said", help="what was in them: a fresh machine, empty, filled")
    options = command.parse_args()
    n, length = map(int, options.shape.split("x"))
    x = np.ascontiguousarray(coupled_maps(n, length), np.float32)
    E = mixed_dimensions(n) if options.case == "mixed" else "auto"

    start, processor = time.perf_counter(), time.process_time()
    import pyedmcl

    pyedmcl.xmap(x, E=E, device=options.device)
    first, of_first = time.perf_counter() - start, time.process_time() - processor
    later = [clock(lambda: pyedmcl.xmap(x, E=E, device=options.device)) for _ in range(options.repeat)]

    from pyedmcl.device.select import select

    Report(select(options.device).device, options.out).add(
        case=options.case, shape=options.shape, caches=options.caches, first_s=first, first_processor_s=of_first,
        later_s=later,
    )  # fmt: skip


if __name__ == "__main__":
    main()
