"""Data sets of the kEDM papers by their shapes, on synthetic series; "mixed" is E = 1..20 evenly.

usage: python bench/papers.py [--device NAME] [--cases genes,fly,f1,subject6,subject11] [--precision full,compact]
       [--shrink 1] [--out FILE]

Whole ``xmap`` from host array to host result, after a run that does not count. The two largest maps are measured on
blocks of libraries against **all** targets and extrapolated: preparation + libraries x (seconds of the longer block
less those of the shorter one) / (difference of their libraries). A JSON line a case goes to FILE.
"""

from __future__ import annotations

import statistics
import time
from itertools import product
from typing import Any

import numpy as np
from common import Report, clock, compiled, parser
from workloads import coupled_maps, mixed_dimensions

import pyedmcl
from pyedmcl.device.select import open_device
from pyedmcl.engines.crossmap import CrossMap, MapData
from pyedmcl.series.scaling import condition

# (series, steps, seconds of kEDM on an A100 and a V100 in the papers)
SETS = {
    "genes": ("Genes_MEF", 45_318, 96, 231.0, 344.0),
    "fly": ("Fly80XY", 82, 10_608, 10.0, 11.0),
    "f1": ("F1's length", 1_000, 29_484, None, None),
    "subject6": ("Subject6", 92_538, 3_780, 3_727.0, 5_391.0),
    "subject11": ("Subject11", 101_729, 8_528, 11_125.0, 20_517.0),
}
EXTRAPOLATED = ("subject6", "subject11")
BLOCKS = (256, 1024)


def whole(x: np.ndarray, E: Any, precision: str, device: str | None, repeat: int) -> dict[str, Any]:
    compiled(lambda: pyedmcl.xmap(x, E=E, precision=precision, device=device))
    seconds = [clock(lambda: pyedmcl.xmap(x, E=E, precision=precision, device=device)) for _ in range(repeat)]
    return {"seconds": statistics.median(seconds), "all": seconds}


def extrapolated(x: np.ndarray, dims: list[int], precision: str, device: str | None) -> dict[str, Any]:
    """Preparation and two blocks of libraries, measured; the whole, extrapolated."""
    executor = open_device(device)
    n, length = x.shape[1], x.shape[0]

    def prepare() -> CrossMap:
        data = MapData(condition(x, "float32").values, np.array(dims), compact=precision == "compact")
        mapping = CrossMap(executor, data)
        executor.finish()
        return mapping

    compiled(prepare).release()
    begun = time.perf_counter()
    mapping = prepare()
    prepared = time.perf_counter() - begun
    short, long = (min(block, n) for block in BLOCKS)
    try:
        compiled(lambda: mapping.skill(0, short))
        blocks = [statistics.median(clock(lambda b=block: mapping.skill(0, b)) for _ in range(2))
                  for block in (short, long)]  # fmt: skip
    finally:
        mapping.release()
    each = (blocks[1] - blocks[0]) / max(long - short, 1)
    neighbours = float(sum(E + 1 for E in dims))
    return {
        "prepared_s": prepared, "blocks": [short, long], "blocks_s": blocks, "seconds_per_library": each,
        "pairs_per_s": length * length / each, "lookups_per_s": neighbours * length / each,
        "seconds_extrapolated": prepared + n * each,
    }  # fmt: skip


def main() -> None:
    command = parser(__doc__, repeat=3)
    command.add_argument("--cases", default=",".join(SETS))
    command.add_argument("--shrink", type=int, default=1, help="divide the number of series, to try the script")
    command.add_argument("--precision", default="full", help="of lookups: full,compact measures both")
    options = command.parse_args()
    report = Report(open_device(options.device).info, options.out)
    for name in options.cases.split(","):
        title, n, length, a100, v100 = SETS[name]
        n = max(n // options.shrink, 2)
        x, mixed = coupled_maps(n, length), mixed_dimensions(n)
        for (case, E), precision in product((("E3", 3), ("mixed", mixed)), options.precision.split(",")):
            if name in EXTRAPOLATED:
                if case == "E3":
                    continue
                measured = extrapolated(x, mixed, precision, options.device)
            else:
                measured = whole(x, E, precision, options.device, options.repeat)
            known = {"kedm_a100_s": a100, "kedm_v100_s": v100}
            report.add(set=title, series=n, steps=length, case=case, precision=precision, **measured, **known)
        del x


if __name__ == "__main__":
    main()
