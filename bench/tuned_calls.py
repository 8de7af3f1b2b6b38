"""Whole calls with default and with shipped parameters, in turn: whether what was tuned pays on other problems.

usage: python bench/tuned_calls.py [--device NAME] [--calls rqa,ccm] [--repeat 5] [--most STEPS] [--out FILE]
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator

import numpy as np
from common import Report, parser
from workloads import coupled_maps, mixed_dimensions, weather_like


def calls(device: str | None, most: int) -> Iterator[tuple[str, str, Callable[[str], object]]]:
    """(call, problem, function of ``tune=``) of at most ``most`` steps."""
    import pyedmcl

    weather = weather_like(min(most, 1_043_112))
    for n in (20_000, 100_000, 400_000, 1_043_112):
        for exact in (True, False):
            if n <= most:
                part = dict(m=5, tau=3, radius=0.7, exact=exact, device=device)
                yield "rqa", f"{n:,} points, {'exact' if exact else 'float32'}", (
                    lambda tune, n=n, part=part: pyedmcl.rqa(weather[:n], tune=tune, **part))  # fmt: skip
    for n, window, step in ((100_000, 500, 50), (100_000, 2000, 100), (20_000, 500, 500), (50_000, 5000, 500)):
        if n <= most:
            part = dict(m=5, tau=3, radius=0.7, device=device)
            yield "windowed_rqa", f"{n:,} points, windows of {window:,}, {step} apart", (
                lambda tune, n=n, window=window, step=step, part=part: pyedmcl.windowed_rqa(
                    weather[:n], window, step, tune=tune, **part))  # fmt: skip
    for n in (400, 1600, 3780, 20_000):
        if n <= most:
            x = np.ascontiguousarray(coupled_maps(1, n)[:, 0])
            yield "embed_dimension", f"{n:,} steps", (
                lambda tune, x=x: pyedmcl.embed_dimension(x, device=device, tune=tune))  # fmt: skip
    for n in (1000, 4000, 10_000):
        if n <= most:
            x, y = np.ascontiguousarray(coupled_maps(2, n).T)
            for E in (3, 10):
                part = dict(E=E, device=device)
                yield "ccm", f"{n:,} steps, E={E}", (
                    lambda tune, x=x, y=y, part=part: pyedmcl.ccm(x, y, tune=tune, **part))  # fmt: skip
            for E in (3, 6, 10, 20):
                part = dict(E=E, theta=2.0, device=device)
                yield "smap", f"{n:,} steps, E={E}", (
                    lambda tune, x=x, part=part: pyedmcl.smap(x, tune=tune, **part))  # fmt: skip
    noise = np.random.default_rng(0).standard_normal(min(most, 1 << 20)).astype(np.float32)
    for n in (1 << 16, 1 << 18, 1 << 20):
        for E in (1, 10, 20):
            if n <= most:
                part = dict(E=E, neighbors="exhaustive", device=device)
                yield "simplex", f"{n:,} steps, E={E}", (
                    lambda tune, n=n, part=part: pyedmcl.simplex(noise[:n], tune=tune, **part))  # fmt: skip
    for series, n in ((154, 1600), (500, 3780), (500, 8528), (2000, 96), (20, 20_000)):
        if n <= most:
            data = coupled_maps(series, n)
            for E in (3, mixed_dimensions(series)):
                part = dict(E=E, device=device)
                yield "xmap", f"{series:,} x {n:,}, E={'3' if np.isscalar(E) else '1..20'}", (
                    lambda tune, data=data, part=part: pyedmcl.xmap(data, tune=tune, **part))  # fmt: skip


def main() -> None:
    command = parser(__doc__, repeat=5)
    command.add_argument("--calls", default="")
    command.add_argument("--most", type=int, default=1_043_112)
    options = command.parse_args()
    os.environ["PYEDMCL_DATA_DIR"] = tempfile.mkdtemp(prefix="pyedmcl-bench-")  # empty: only what is shipped
    from pyedmcl.device.select import select

    report = Report(select(options.device).device, options.out)
    print(report.title)
    for call, problem, function in calls(options.device, options.most):
        if options.calls and call not in options.calls.split(","):
            continue
        times: dict[str, list[float]] = {"never": [], "cached": []}
        for tune in times:
            function(tune)
        for _ in range(options.repeat):
            for tune, found in times.items():
                begun = time.perf_counter()
                function(tune)
                found.append(time.perf_counter() - begun)
        default, shipped = (statistics.median(found) for found in times.values())
        figures = f"{default * 1e3:9.2f} -> {shipped * 1e3:9.2f} ms {default / shipped:5.2f}x"
        report.add(f"{call:>16} {problem:<40} {figures}", call=call, problem=problem, default_s=default,
                   shipped_s=shipped)  # fmt: skip


if __name__ == "__main__":
    main()
