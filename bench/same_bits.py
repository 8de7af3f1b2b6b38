"""Whether skill has the same bits whatever device and parameters compute it, and what that costs.

usage: python bench/same_bits.py [--device NAME] [--cases N] [--out FILE]
       python bench/same_bits.py --compare FILE FILE ...
       python bench/same_bits.py [--device NAME] --old FOLDER [--shape 2000x3780,3 ...] [--rounds N] [--out FILE]

The first form makes up N calls (function, sizes, E, gaps, number type), the same ones on every device, computes each
with default parameters and with random ones, and writes digests of the results as JSON lines. The second compares the
lines of several devices. The third times whole maps with the package in FOLDER (a checkout of an older version) and
with this one, in processes that take turns, and reports the least seconds of each.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from common import Report, clock, parser
from digests import digest, parts
from workloads import coupled_maps, mixed_dimensions

import pyedmcl
from pyedmcl.device.info import DeviceInfo
from pyedmcl.device.quirks import quirks_for
from pyedmcl.device.select import select
from pyedmcl.errors import PyedmclError
from pyedmcl.kernels import spec
from pyedmcl.tuning.parameters import using

# Kernels whose parameters are drawn at random, all of them or some.
KERNELS: dict[str, tuple[str, ...]] = {
    "lookup": (), "predict": (), "skill": ("wg",), "ccm": (), "ccm_direct": (), "ccm_draw": (), "knn": ("lanes",),
}  # fmt: skip
SHAPES = ("2000x3780,3", "2000x3780,mixed", "8000x3780,mixed")
TRIES = 3


def series(rng: random.Random, n: int, length: int) -> np.ndarray:
    """Coupled maps as they are, coarse (so that states coincide), or with an offset; some with gaps."""
    x = coupled_maps(n, length, rng.randrange(1000)).astype(np.float64)
    kind = rng.choice(["plain", "plain", "ties", "offset", "gaps"])
    if kind == "ties":
        x = np.round(x * 20) / 20
    elif kind == "offset":
        x = 1e3 + x * 10.0 ** np.arange(-3, 3)[np.arange(n) % 6]
    elif kind == "gaps":
        for column in range(0, n, 2):
            at = rng.randrange(length - 10)
            x[at : at + rng.randrange(1, 9), column] = np.nan
    return x


def call(number: int) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
    """The function, arguments and options of a case."""
    rng = random.Random(number)
    name = rng.choice(["xmap", "xmap", "xmap", "simplex", "embed_dimension", "ccm", "ccm_matrix", "multiview"])
    length, E = rng.choice([90, 300, 517, 1000, 1800]), rng.choice([1, 2, 3, 5, 9])
    more: dict[str, Any] = {"dtype": rng.choice(["float32", "float32", "float64"])}
    if name == "xmap":
        n = rng.choice([3, 19, 40, 70])
        more |= {"E": rng.choice([E, "auto", [1 + i % 5 for i in range(n)]]), "Tp": rng.choice([0, 0, 1, -2])}
        return name, (series(rng, n, length),), more
    if name in ("simplex", "embed_dimension"):
        x = series(rng, 5, length)
        return name, (x[:, 0] if name == "simplex" else x,), more | ({"E": E} if name == "simplex" else {"E_max": 6})
    if name == "multiview":
        return name, (series(rng, 4, 300), 0), {"D": 2, "E": 2}
    options = {"E": min(E, 5), "lib_sizes": [20, 60, length // 2], "sample": 20, "seed": number}
    x = series(rng, 4, length)
    return name, ((x[:, 0], x[:, 1]) if name == "ccm" else (x,)), more | options


def drawn(rng: random.Random, info: DeviceInfo) -> dict[str, dict[str, Any]]:
    """Random parameters of each kernel that its spec allows, in work-groups that the device can run."""
    found = {}
    for name, only in KERNELS.items():
        kernel, most = spec(name), quirks_for(info).max_work_group
        while True:
            some = {t.name: rng.choice(t.values) for t in kernel.tunables if not only or t.name in only}
            group = some.get("target_lanes", 1) * some.get("row_lanes", 1) * some.get("library_lanes", 1)
            whole = {**kernel.defaults(quirks_for(info).defaults_for), **some}
            legal = only or all(constraint.holds(whole) for constraint in kernel.constraints)
            if legal and group <= most and some.get("wg", 1) <= most:
                break
        found[name] = some
    return found


def bits(number: int, device: str | None) -> str:
    """A digest of all that a case returns."""
    name, given, more = call(number)
    result = getattr(pyedmcl, name)(*given, device=device, **more)
    outputs = {part: digest(value)[:2] for part, value in parts(name, result)}
    return hashlib.sha256(json.dumps(outputs, sort_keys=True).encode()).hexdigest()[:24]


def cases(n: int, device: str | None, report: Report, info: DeviceInfo) -> int:
    """Digests of n cases; returns how many depend on parameters."""
    different = 0
    for number in range(n):
        try:
            wanted = bits(number, device)
        except PyedmclError as error:  # a device without float64, a series that is too short
            report.add(case=number, function=call(number)[0], refused=str(error)[:200])
            continue
        rng, found = random.Random(f"{number} {info.name}"), []
        for _ in range(TRIES):
            parameters = drawn(rng, info)
            try:
                with using(**parameters):
                    found.append((bits(number, device) == wanted, parameters))
            except PyedmclError:
                continue  # what this device cannot run
        bad = [parameters for same, parameters in found if not same]
        different += bool(bad)
        report.add(case=number, function=call(number)[0], digest=wanted, tried=len(found), different=bad)
    return different


def compare(files: list[Path]) -> int:
    """Print which cases have the same digests in all files; returns how many do not."""
    lines = [list(map(json.loads, file.read_text().splitlines())) for file in files]
    known = [{one["case"]: one for one in found if "case" in one} for found in lines]
    shared = sorted(case for case in known[0] if all("digest" in one.get(case, {}) for one in known))
    differ = [case for case in shared if len({one[case]["digest"] for one in known}) > 1]
    for case in differ:
        print(f"case {case}, {known[0][case]['function']}: {[one[case]['digest'] for one in known]}")
    print(f"{len(shared) - len(differ)} of {len(shared)} cases have the same bits in all {len(files)} files")
    return len(differ)


def seconds(shape: str, device: str | None, repeat: int) -> list[float]:
    """Seconds of a map of this shape, repeatedly, after one that compiles."""
    size, kind = shape.split(",")
    n, length = map(int, size.split("x"))
    x, E = coupled_maps(n, length), mixed_dimensions(n) if kind == "mixed" else int(kind)
    return [clock(lambda: pyedmcl.xmap(x, E=E, device=device)) for _ in range(repeat + 1)][1:]


def timings(shapes: list[str], options: Any) -> Iterator[dict[str, Any]]:
    """Least seconds of the old and the new package, in processes that take turns."""
    new = str(Path(pyedmcl.__file__).parents[1])
    for shape in shapes:
        least: dict[str, float] = {}
        for _ in range(options.rounds):
            for name, folder in (("old", options.old), ("new", new)):
                ask = [sys.executable, __file__, "--measure", shape, "--repeat", str(options.repeat)]
                ask += ["--device", options.device] if options.device else []
                done = subprocess.run(ask, env={**os.environ, "PYTHONPATH": folder}, stdout=subprocess.PIPE, check=True)
                found = min(json.loads(done.stdout))
                least[name] = min(found, least.get(name, found))
        yield {"shape": shape, **least, "ratio": least["new"] / least["old"]}


def main() -> None:
    command = parser(__doc__, repeat=3)
    command.add_argument("--cases", type=int, default=40)
    command.add_argument("--compare", nargs="+", type=Path, metavar="FILE")
    command.add_argument("--old", metavar="FOLDER")
    command.add_argument("--shape", action="append", metavar="NxT,E")
    command.add_argument("--rounds", type=int, default=3)
    command.add_argument("--measure", metavar="NxT,E", help="print the seconds of one shape, as --old asks for")
    options = command.parse_args()
    warnings.simplefilter("ignore")  # of constant series
    if options.compare:
        sys.exit(int(compare(options.compare) > 0))
    if options.measure:
        print(json.dumps(seconds(options.measure, options.device, options.repeat)))
        return
    info = select(options.device).device
    report = Report(info, options.out)
    if options.old:
        for found in timings(options.shape or list(SHAPES), options):
            report.add(**found)
        return
    sys.exit(int(cases(options.cases, options.device, report, info) > 0))


if __name__ == "__main__":
    main()
