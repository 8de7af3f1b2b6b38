"""One call on one device and on several of one machine: how much faster, and whether the bits are the same.

usage: python bench/scale.py [--device gpus] [--series 8000] [--steps 3780] [--points 2000000] [--repeat 3] [--out FILE]

Prints a line for people and appends a JSON line per case to FILE. Calls on the first device and on all of them take
turns; a ratio is that of the medians. "First call" is that of a process of its own: start-up of devices, compiled or
stored programs and uploads included.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Callable
from typing import Any

import numpy as np
from common import Report, clock, compiled, parser
from workloads import coupled_maps, mixed_dimensions, weather_like

import pyedmcl
from pyedmcl.device.select import select_several

Call = Callable[[Any], Any]


def cases(options: Namespace) -> dict[str, Call]:
    """Case -> what is called with a device or a list of them; gives an array whose bits are compared."""
    made: dict[str, Call] = {}
    if options.series:
        x, E = coupled_maps(options.series, options.steps), mixed_dimensions(options.series)
        some = np.ascontiguousarray(x[:, : max(options.series // 4, 1)])
        made["xmap mixed"] = lambda device: pyedmcl.xmap(x, E=E, device=device).rho
        made["embed_dimension"] = lambda device: pyedmcl.embed_dimension(some, E_max=20, device=device).rho
    if options.points:
        series = weather_like(options.points)
        made["rqa"] = lambda device: pyedmcl.rqa(series, m=5, tau=3, radius=0.7, device=device).counts.diagonals
    return made


def first_call(options: Namespace, case: str, device: Any) -> float:
    """Seconds of the first call in a process of its own; data are made before the clock starts."""
    given = {"--case": case, "--device": json.dumps(device), "--series": options.series, "--steps": options.steps,
             "--points": options.points}  # fmt: skip
    command = [sys.executable, __file__, *(str(part) for pair in given.items() for part in pair)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1])


def compare(options: Namespace, case: str, call: Call, one: str, several: list[str]) -> dict[str, Any]:
    """The figures of a case."""
    results = [compiled(lambda: call(one)), compiled(lambda: call(several))]
    times = [(clock(lambda: call(one)), clock(lambda: call(several))) for _ in range(options.repeat)]
    alone, together = (statistics.median(part) for part in zip(*times, strict=True))
    whole_alone, whole_together = first_call(options, case, one), first_call(options, case, several)
    return {
        "case": case, "series": options.series, "steps": options.steps, "points": options.points,
        "devices": len(several), "one_s": alone, "several_s": together, "ratio": alone / together,
        "whole_one_s": whole_alone, "whole_several_s": whole_together, "whole_ratio": whole_alone / whole_together,
        "same_bits": bool(np.array_equal(*results, equal_nan=True)),
    }  # fmt: skip


def main() -> None:
    arguments = parser(__doc__, repeat=3)
    arguments.set_defaults(device="gpus")
    arguments.add_argument("--series", type=int, default=8000, help="0: no maps")
    arguments.add_argument("--steps", type=int, default=3780)
    arguments.add_argument("--points", type=int, default=2_000_000, help="0: no recurrence")
    arguments.add_argument("--case", help="print the seconds of the first call of this case alone")
    options = arguments.parse_args()
    if options.case:
        call, device = cases(options)[options.case], json.loads(options.device)
        begun = time.perf_counter()
        call(device)
        print(time.perf_counter() - begun)
        return
    infos = [choice.device for choice in select_several(options.device)]
    report = Report(infos[0], options.out)
    print(f"{len(infos)} devices: {', '.join(info.name for info in infos)}")
    for case, call in cases(options).items():
        found = compare(options, case, call, infos[0].id, [info.id for info in infos])
        text = (f"{case:16s} {found['one_s']:8.3f} -> {found['several_s']:8.3f} s, {found['ratio']:.2f}x; first call "
                f"{found['whole_one_s']:.2f} -> {found['whole_several_s']:.2f} s, {found['whole_ratio']:.2f}x; "
                f"{'the same bits' if found['same_bits'] else 'OTHER BITS'}")  # fmt: skip
        report.add(text, **found)


if __name__ == "__main__":
    main()
