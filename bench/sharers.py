"""What a search gains where several work-items of a GPU share a query row, by how many do.

usage: python bench/sharers.py [--device NAME] [--sharers 1,4,8,16,32] [--repeat 12] [--out FILE]

Calls with each number of sharers take turns, whether or not it would be chosen. "same" says whether results have the
same bits, "call_ms" is the median of whole calls, and "knn_us" the least time of six that the launches of the kernel
take.
"""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np
from common import Report, clock, compiled, parser

import pyedmcl
from pyedmcl.device.select import select
from pyedmcl.search import plan, searches
from pyedmcl.simulate import coupled_maps

SIZES = list(range(50, 900, 50))
ENOUGH = 1 << 20  # work-groups for each unit: no device is busy


def choose(sharers: int) -> None:
    """Searches have ``sharers`` sharers from now on, where a library has rows for them."""
    plan.SHARERS, plan._FULL_GROUPS = sharers, ENOUGH if sharers > 1 else 0


def calls(x: np.ndarray, device: str | None) -> dict[str, Any]:
    """Name to a call that returns an array."""
    made: dict[str, Any] = {}
    shapes = ((200, 2, 3), (1000, 3, 4), (1000, 3, 96), (2000, 20, 21), (8000, 5, 6), (8000, 20, 21), (32000, 5, 6))
    for rows, E, k in shapes:
        made[f"knn {rows} E={E} k={k}"] = lambda rows=rows, E=E, k=k: pyedmcl.knn(
            x[:rows, 0], E=E, k=k, neighbors="exhaustive", device=device
        ).distances
    made["simplex 2000 E=20"] = lambda: pyedmcl.simplex(x[:2000, 0], E=20, device=device).predicted
    made["embed_dimension 2000"] = lambda: pyedmcl.embed_dimension(x[:2000, :1], device=device).rho
    made["ccm 1000 17x100"] = lambda: pyedmcl.ccm(
        x[:1000, 0], x[:1000, 1], E=3, lib_sizes=SIZES, sample=100, seed=1, device=device
    ).rho
    made["xmap 5x1000 E=5"] = lambda: pyedmcl.xmap(x[:1000, :5], E=5, device=device).rho
    return made


def main() -> None:
    command = parser(__doc__, repeat=12)
    command.add_argument("--sharers", default="1,4,8,16,32")
    options = command.parse_args()
    kinds = [int(each) for each in options.sharers.split(",")]
    report = Report(select(options.device).device, options.out)
    print(report.title)
    x = coupled_maps(n_series=6, n_steps=33000, seed=1).values.astype(np.float32)
    plain, seconds = searches.Pacer.launched, []

    def noted(self: Any, event: Any, cost: float) -> None:
        seconds.append(event.seconds)
        plain(self, event, cost)

    for name, call in calls(x, options.device).items():
        results, whole, kernel = [], {each: [] for each in kinds}, {}
        for each in kinds:
            choose(each)
            results.append(np.array(compiled(call)))
        for _ in range(options.repeat):
            for each in kinds:
                choose(each)
                whole[each].append(clock(call))
        searches.Pacer.launched = noted  # type: ignore[method-assign]
        for each in kinds:
            choose(each)
            sums = []
            for _ in range(6):
                seconds.clear()
                call()
                sums.append(sum(seconds))
            kernel[each] = round(1e6 * min(sums), 1)
        searches.Pacer.launched = plain  # type: ignore[method-assign]
        same = all(np.array_equal(results[0], each, equal_nan=True) for each in results)
        call_ms = {each: round(1e3 * statistics.median(times), 3) for each, times in whole.items()}
        report.add(case=name, same=same, knn_us=kernel, call_ms=call_ms)


if __name__ == "__main__":
    main()
