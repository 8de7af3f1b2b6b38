"""One call for many series against the loops that users write: our own function in a loop, and PyRQA in a loop.

usage: python bench/grids.py [--device NAME] [--series 10000] [--steps 500] [--loop 200] [--peer 5] [--repeat 5]
       [--out FILE]

The series are pieces of weather_like, m = 3, tau = 3, Euclidean, radius 0.7, Theiler window 1. The loops take some of
the series (--loop, --peer; 0: no loop), and their time for one is multiplied. The batch and the loop take turns; a
ratio is that of the medians. "table" is with all measures of all series. Results of the batch are compared with those
of the loop, bit by bit. Prints a line for people and appends a JSON line per case to FILE.
"""

from __future__ import annotations

import statistics
from argparse import Namespace
from typing import Any

import numpy as np
from common import Report, clock, parser
from peers import pyrqa
from workloads import weather_like

import pyedmcl
from pyedmcl.device.info import DeviceInfo
from pyedmcl.device.select import select

POINTS: dict[str, Any] = {"m": 3, "tau": 3, "radius": 0.7}


def batches(report: Report, info: DeviceInfo, options: Namespace) -> None:
    """rqa_batch against loops."""
    n, steps = options.series, options.steps
    x = weather_like(n * steps).reshape(n, steps)
    given = {**POINTS, "device": options.device}
    some = x[: options.loop]

    def together() -> Any:
        return pyedmcl.rqa_batch(x, axis=1, **given)

    def one_by_one() -> list[Any]:
        return [pyedmcl.rqa(row, **given) for row in some]

    found, alone = together(), one_by_one()  # compiles
    same = all(found[row].counts == one.counts for row, one in enumerate(alone))
    table = found.to_dict()
    wanted = [one.to_dict() for one in alone]
    same &= all(np.array_equal(table[name][: len(alone)], [one[name] for one in wanted], equal_nan=True)
                for name in (wanted[0] if wanted else ()))  # fmt: skip
    times: dict[str, list[float]] = {"batch": [], "table": [], "loop": [], "loop_table": []}
    for _ in range(options.repeat):
        times["batch"].append(clock(together))
        times["table"].append(clock(lambda: together().to_dict()))
        if alone:
            times["loop"].append(clock(one_by_one) / len(alone) * n)
            times["loop_table"].append(clock(lambda: [one.to_dict() for one in one_by_one()]) / len(alone) * n)
    median = {name: statistics.median(taken) for name, taken in times.items() if taken}
    record = {f"{name}_s": value for name, value in median.items()}
    text = f"rqa_batch {n:,} x {steps:,}: {median['batch']:.4f} s, with all measures {median['table']:.4f} s"
    if alone:
        record |= {"ratio_loop": median["loop"] / median["batch"],
                   "ratio_loop_table": median["loop_table"] / median["table"], "same_bits": bool(same)}  # fmt: skip
        text += (f"; loop of rqa {median['loop']:.2f} s, {record['ratio_loop']:.1f}x (with measures "
                 f"{record['ratio_loop_table']:.1f}x), {'the same bits' if same else 'OTHER BITS'}")  # fmt: skip
    theirs = _peer(info, x, options)
    if theirs is not None:
        record |= {"peer_s": theirs, "ratio_peer": theirs / median["table"]}
        text += f"; loop of PyRQA {theirs:.1f} s, {record['ratio_peer']:.0f}x"
    report.add(text, case="rqa_batch", series=n, steps=steps, **record, all=times)


def _peer(info: DeviceInfo, x: Any, options: Namespace) -> float | None:
    """Seconds of a loop of PyRQA over all series, from some of them; None where it is not there."""
    peers = [pyrqa(info, row, **POINTS) for row in x[: options.peer + 1]]
    if len(peers) < 2 or peers[0] is None:
        return None
    peers[0].call()  # compiles
    return statistics.median(clock(peer.call) for peer in peers[1:] if peer is not None) * len(x)


def main() -> None:
    arguments = parser(__doc__, repeat=5)
    arguments.add_argument("--series", type=int, default=10_000)
    arguments.add_argument("--steps", type=int, default=500)
    arguments.add_argument("--loop", type=int, default=200, help="series of the loop of rqa")
    arguments.add_argument("--peer", type=int, default=5, help="series of the loop of PyRQA")
    options = arguments.parse_args()
    info = select(options.device).device
    report = Report(info, options.out)
    print(report.title)
    batches(report, info, options)


if __name__ == "__main__":
    main()
