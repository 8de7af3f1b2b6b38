"""What planning with all local memory of a device gains over planning with what its driver reports.

usage: python bench/local_memory.py [--device NAME] [--cases knn,rqa,image,smap,lookup] [--bytes N,M] [--repeat 5]
       [--shrink 1] [--out FILE]

Hopper's driver reports 48 KiB, and a work-group may have 227 (pyedmcl/device/quirks.py). Each call runs with either as
the one limit, in turn: which tiles and stages fit follows from it. "default" parameters and those that a job would be
given ("shipped") are shown, since wisdom may have settled what the limit would decide. Results must be the same bits; a
line says so. Without a database of its own; needs nothing but the package.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import tempfile
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import numpy as np
from common import Report, clock, parser
from workloads import coupled_maps, weather_like

import pyedmcl
from pyedmcl.device import quirks
from pyedmcl.device.select import select
from pyedmcl.tuning.parameters import source


@contextlib.contextmanager
def local_memory(nbytes: int) -> Iterator[None]:
    """Within the block, every plan is made for so much local memory."""
    row = quirks.Row(lambda info: True, {"local_bytes": nbytes}, "what a benchmark asks for")
    with mock.patch.object(quirks, "TABLE", (*quirks.TABLE, row)):
        quirks.quirks_for.cache_clear()
        source.ask_anew()
        try:
            yield
        finally:
            quirks.quirks_for.cache_clear()
            source.ask_anew()


def calls(device: str | None, shrink: int) -> Iterator[tuple[str, str, Callable[[str], Any]]]:
    """(case, problem, function of ``tune=``); the first of each case is one that the limit does not bear upon."""
    noise = np.random.default_rng(0).standard_normal((1 << 17) // shrink).astype(np.float32)
    for E, tau, dtype in ((20, 1, "float32"), (20, 100, "float32"), (20, 300, "float32"), (10, 100, "float64")):

        def knn(tune: str, E: int = E, tau: int = tau, dtype: str = dtype) -> Any:
            x = noise if dtype == "float32" else noise[: len(noise) // 2].astype(float)
            return pyedmcl.knn(x, E=E, tau=tau, neighbors="exhaustive", dtype=dtype, device=device, tune=tune)

        yield "knn", f"E={E}, tau={tau}, {dtype}", knn
    weather = weather_like(100_000 // shrink)
    for m, tau in ((5, 3), (20, 150), (20, 500)):

        def rqa(tune: str, m: int = m, tau: int = tau) -> Any:
            return pyedmcl.rqa(weather, m=m, tau=tau, radius=0.7 * m**0.5, device=device, tune=tune)

        yield "rqa", f"m={m}, tau={tau}", rqa
    features = np.random.default_rng(1).standard_normal((50_000 // shrink, 20)).astype(np.float32)
    for columns in (10, 20):

        def joined(tune: str, columns: int = columns) -> Any:
            return pyedmcl.rqa(features[:, :columns], radius=1.3 * columns**0.5, device=device, tune=tune)

        yield "rqa", f"points of {columns} values", joined
    for m, tau in ((5, 3), (20, 300)):

        def image(tune: str, m: int = m, tau: int = tau) -> Any:
            radius = 0.7 * m**0.5
            return pyedmcl.recurrence_plot(weather, m=m, tau=tau, radius=radius, pixels=500, device=device, tune=tune)

        yield "image", f"m={m}, tau={tau}", image
    series = np.ascontiguousarray(coupled_maps(1, 10_000 // shrink)[:, 0])
    for E in (3, 12, 20, 40):

        def smap(tune: str, E: int = E) -> Any:
            return pyedmcl.smap(series, E=E, theta=2.0, device=device, tune=tune)

        yield "smap", f"E={E}", smap
    for series_count, length in ((1000, 2000), (500, 8000)):
        table = coupled_maps(series_count // shrink, length // shrink)

        def xmap(tune: str, table: Any = table) -> Any:
            return pyedmcl.xmap(table, E=3, device=device, tune=tune)

        yield "lookup", f"{table.shape[1]:,} series of {table.shape[0]:,}, E=3", xmap


def bits(result: Any) -> bytes:
    """All numbers of a result, of whichever kind."""
    for name in ("indices", "predicted", "rho", "counts"):
        if isinstance(getattr(result, name, None), np.ndarray):  # the counts of a sweep are an object with arrays
            return np.ascontiguousarray(np.asarray(getattr(result, name))).tobytes()
    return repr(sorted(result.to_dict().items())).encode()


def main() -> None:
    command = parser(__doc__, repeat=5)
    command.add_argument("--cases", default="knn,rqa,image,smap,lookup")
    command.add_argument("--bytes", default="", help="limits to compare; by default what is reported, and the quirk's")
    command.add_argument("--shrink", type=int, default=1, help="divide all lengths, by 10 at most, to try the script")
    options = command.parse_args()
    os.environ["PYEDMCL_DATA_DIR"] = tempfile.mkdtemp(prefix="pyedmcl-bench-")  # empty: only what is shipped
    info = select(options.device).device
    limits = [int(n) for n in options.bytes.split(",") if n] or [info.local_bytes, quirks.quirks_for(info).local_bytes]
    if len(set(limits)) < 2:
        command.error(f"{info.name}: its driver reports all that there is, {limits[0]:,} bytes; give --bytes N,M")
    report = Report(info, options.out)
    print(f"{report.title}: local memory of {' and '.join(f'{limit:,}' for limit in limits)} bytes")
    for case, problem, function in calls(options.device, options.shrink):
        if case not in options.cases.split(","):
            continue
        for parameters, tune in (("default", "never"), ("shipped", "cached")):
            times: dict[int, list[float]] = {limit: [] for limit in limits}
            results: dict[int, bytes] = {}
            for limit in times:
                with local_memory(limit):
                    results[limit] = bits(function(tune))
            for _ in range(options.repeat):
                for limit, seconds in times.items():
                    with local_memory(limit):
                        seconds.append(clock(lambda tune=tune, function=function: function(tune)))
            medians = [statistics.median(times[limit]) for limit in limits]
            same = len(set(results.values())) == 1
            figures = " -> ".join(f"{median * 1e3:9.3f}" for median in medians)
            report.add(f"{case:>7} {problem:<32} {parameters:>8} {figures} ms {medians[0] / medians[-1]:6.3f}x"
                       f"{'' if same else '  OTHER BITS'}", case=case, problem=problem, parameters=parameters,
                       limits=limits, medians_s=medians, all_s=list(times.values()), same_bits=same)  # fmt: skip


if __name__ == "__main__":
    main()
