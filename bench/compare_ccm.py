"""Convergent cross mapping against kEDM and pyEDM, host arrays to host result, in this run and in turn.

usage: python bench/compare_ccm.py [--device NAME] [--lengths 1000,4000] [--samples 100] [--repeat 5] [--ours-only]
       [--out FILE]

17 library sizes from 20 on, E = 3. pyEDM and we map both directions (pyEDM at L = 1,000 only), kEDM one; against it we
count half of our time.
"""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np
from common import Report, clock, parser
from peers import Peer, kedm, pyedm
from workloads import coupled_maps

import pyedmcl
from pyedmcl.device.select import select

SERIES = {1000: 2, 4000: 82}


def sizes(length: int) -> list[int]:
    return list(range(20, length - 20, max(length // 17, 1)))


def peers(x: np.ndarray, y: np.ndarray, samples: int) -> list[tuple[Peer, int]]:
    """The peers' calls, each with the number of directions that it maps."""
    found = [(kedm("ccm", x, y, E=3, sample=samples, lib_sizes=sizes(len(x))), 1)]
    if len(x) <= 1000:
        arguments = {"columns": "x", "target": "y", "E": 3, "sample": samples, "libSizes": sizes(len(x))}
        found.append((pyedm("CCM", {"x": x, "y": y}, **arguments), 2))
    return [(peer, directions) for peer, directions in found if peer is not None]


def main() -> None:
    command = parser(__doc__, repeat=5)
    command.add_argument("--lengths", default="1000,4000")
    command.add_argument("--samples", type=int, default=100)
    command.add_argument("--ours-only", action="store_true")
    options = command.parse_args()
    report = Report(select(options.device).device, options.out)
    print(f"{report.title}, {options.samples} samples; seconds a direction")
    for length in map(int, options.lengths.split(",")):
        table = coupled_maps(SERIES.get(length, 2), length)
        x, y = (np.ascontiguousarray(table[:, column]) for column in (0, -1))

        def ours(x: np.ndarray = x, y: np.ndarray = y) -> object:
            return pyedmcl.ccm(
                x, y, E=3, lib_sizes=sizes(len(x)), sample=options.samples, seed=1, device=options.device
            )

        others = [] if options.ours_only else peers(x, y, options.samples)
        for call in (ours, *(peer.call for peer, _ in others)):
            call()  # compile and warm up
        mine: list[float] = []
        theirs: dict[str, list[float]] = {peer.label: [] for peer, _ in others}
        for _ in range(options.repeat):
            mine.append(clock(ours))
            for peer, _ in others:
                theirs[peer.label].append(clock(peer.call))
        own = statistics.median(mine) / 2
        record: dict[str, Any] = {"case": f"ccm {length}", "samples": options.samples, "ours_s": own, "ours_all": mine}
        line = f"L = {length:6,}: ours {own:9.5f}"
        for peer, directions in others:
            other = statistics.median(theirs[peer.label]) / directions
            record[peer.label] = {"seconds": other, "all": theirs[peer.label], "ratio": other / own}
            line += f"; {peer.label} {other:8.4f} ({other / own:.1f}x)"
        report.add(line, **record)


if __name__ == "__main__":
    main()
