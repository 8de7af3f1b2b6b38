"""The smallest calls, of which the host's part is nearly all: microseconds from call to result.

usage: python bench/small_calls.py [--device NAME] [--repeat 200] [--commit NAME] [--out FILE]

PYTHONPATH chooses the version that is timed, which --commit names in FILE. Versions are to be run in turn, several
times: a figure is the least of the runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from common import Report, parser

import pyedmcl
from pyedmcl.device.select import open_device


def cases(device: str | None) -> dict[str, Callable[[], Any]]:
    """Name -> call."""
    rng = np.random.default_rng(1)
    short, long, table = rng.standard_normal(200), rng.standard_normal(2000), rng.standard_normal((200, 5))
    ten, longest = rng.standard_normal((200, 10)), rng.standard_normal(4000)
    return {
        "knn of 200 points, E = 2": lambda: pyedmcl.knn(short, E=2, device=device),
        "simplex of 200 points, E = 2": lambda: pyedmcl.simplex(short, E=2, device=device),
        "simplex of 2,000 points, E = 20": lambda: pyedmcl.simplex(long, E=20, device=device),
        "smap of 200 points, E = 2": lambda: pyedmcl.smap(short, E=2, theta=1.0, device=device),
        "smap of 2,000 points, E = 20": lambda: pyedmcl.smap(long, E=20, theta=2.0, device=device),
        "embed_dimension of 200 points": lambda: pyedmcl.embed_dimension(short, device=device),
        "xmap of 5 series of 200 points, E = 2": lambda: pyedmcl.xmap(table, E=2, device=device),
        "ccm of 200 points, E = 2, 10 samples": lambda: pyedmcl.ccm(
            table[:, 0], table[:, 1], E=2, sample=10, seed=1, device=device
        ),
        "knn of 1,000 points, E = 3": lambda: pyedmcl.knn(long[:1000], E=3, device=device),
        "embed_dimension of 200 points, E up to 10": lambda: pyedmcl.embed_dimension(short, E_max=10, device=device),
        "embed_dimension of 1,000 points": lambda: pyedmcl.embed_dimension(long[:1000], device=device),
        "embed_dimension of 4,000 points": lambda: pyedmcl.embed_dimension(longest, device=device),
        "embed_dimension of 10 series of 200 points, E up to 10": lambda: pyedmcl.embed_dimension(
            ten, E_max=10, device=device
        ),
        "S-map map of 10 series of 200 points, E = 3": lambda: pyedmcl.xmap(
            ten, E=3, method="smap", theta=2.0, device=device
        ),
        "rqa of 200 points, m = 2": lambda: pyedmcl.rqa(short, m=2, radius=1.0, device=device),
    }


def shortest(call: Callable[[], Any], repeat: int) -> float:
    """Seconds of the shortest of some calls, after one that compiled."""
    call()
    found = []
    for _ in range(repeat):
        begun = time.perf_counter()
        call()
        found.append(time.perf_counter() - begun)
    return min(found)


def main() -> None:
    arguments = parser(__doc__, repeat=200)
    arguments.add_argument("--commit", default="", help="the version, for FILE")
    options = arguments.parse_args()
    report = Report(open_device(options.device).info, options.out)
    for name, call in cases(options.device).items():
        seconds = shortest(call, options.repeat)
        report.add(f"{name:40s} {seconds * 1e6:8.0f} us", case=name, us=round(seconds * 1e6, 1), commit=options.commit)


if __name__ == "__main__":
    main()
