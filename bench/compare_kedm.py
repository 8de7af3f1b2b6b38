"""Whole functions against kEDM, host array to host result, both in this run and in turn.

usage: python bench/compare_kedm.py [--device NAME] [--shapes 154x1600,1000x1000] [--cases E3,mixed,edim] [--repeat 3]
       [--ours-only] [--out FILE]

Prints a table for people and appends a JSON line per case to FILE. A ratio is kEDM's median over ours.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import numpy as np
from common import Report, clock, compiled, parser
from peers import Peer, kedm
from workloads import coupled_maps, mixed_dimensions

import pyedmcl
from pyedmcl.device.select import select


def cases(x: np.ndarray, device: str | None) -> dict[str, tuple[Callable[[], object], Callable[[], Peer | None]]]:
    """Case -> (our call, what gives kEDM's)."""
    n = x.shape[1]
    mixed, first = mixed_dimensions(n), np.ascontiguousarray(x[:, 0])
    return {
        "E3": (lambda: pyedmcl.xmap(x, E=3, device=device), lambda: kedm("xmap", x, [3] * n)),
        "mixed": (lambda: pyedmcl.xmap(x, E=mixed, device=device), lambda: kedm("xmap", x, mixed)),
        "edim": (lambda: pyedmcl.embed_dimension(first, device=device), lambda: kedm("edim", first)),
    }


def main() -> None:
    command = parser(__doc__, repeat=3)
    command.add_argument("--shapes", default="154x1600,1000x1000,82x4000")
    command.add_argument("--cases", default="E3,mixed,edim")
    command.add_argument("--ours-only", action="store_true")
    options = command.parse_args()
    report = Report(select(options.device).device, options.out)
    warm_up = None if options.ours_only else kedm("xmap", coupled_maps(8, 300), [3] * 8)
    if warm_up is not None:
        warm_up.call()
    print(f"{report.title} against {warm_up.label if warm_up is not None else '-'}")
    print(f"{'shape':>12} {'case':>6} {'ours s':>10} {'kEDM s':>10} {'ratio':>7}")
    for shape in options.shapes.split(","):
        n, length = map(int, shape.split("x"))
        for case, (ours, peer) in cases(coupled_maps(n, length), options.device).items():
            if case not in options.cases.split(","):
                continue
            compiled(ours)
            theirs = None if options.ours_only else peer()
            mine: list[float] = []
            other: list[float] = []
            for _ in range(options.repeat):
                mine.append(clock(ours))
                if theirs is not None:
                    other.append(clock(theirs.call))
            own = statistics.median(mine)
            record: dict[str, Any] = {"shape": shape, "case": case, "ours_s": own, "ours_all": mine,
                                      "peer": theirs.label if theirs is not None else "-"}  # fmt: skip
            line = f"{shape:>12} {case:>6} {own:10.4f}"
            if other:
                peer_s = statistics.median(other)
                record |= {"peer_s": peer_s, "peer_all": other, "ratio": peer_s / own}
                line += f" {peer_s:10.4f} {peer_s / own:6.1f}x"
            report.add(line, **record)


if __name__ == "__main__":
    main()
