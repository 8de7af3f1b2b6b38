"""One call for many series or maps against the loops that users write: our own function in a loop, and a peer's.

usage: python bench/grids.py [--device NAME] [--cases grid,rectangles,batch,windows] [--maps 154x1600] [--E-max 30]
       [--rectangles 20000x1x1000,1x20000x2000] [--series 10000] [--steps 500] [--loop 200] [--peer 5] [--repeat 5]
       [--out FILE]

grid: xmap_grid over E = 1 .. E_max for the given series and steps, against the loop of xmap and (--peer above 0) that
of kEDM's xmap, once.
windows: xmap, simplex and ccm (100 samples of three sizes) within windows, E = 3, against a call for each.
rectangles: xmap of libraries x targets of the given steps, E = 5, float32.
batch: the series are pieces of weather_like, m = 3, tau = 3, Euclidean, radius 0.7, Theiler window 1. Loops take some
of the series (--loop, --peer; 0: no loop), and their time for one is multiplied. The batch and the loop take turns; a
ratio is that of the medians. "table" is with all measures of all series. Results of the batch are compared with those
of the loop, bit by bit. Prints a line for people and appends a JSON line per case to FILE.
"""

from __future__ import annotations

import statistics
from argparse import Namespace
from collections.abc import Callable
from typing import Any

import numpy as np
from common import Report, clock, compiled, parser
from peers import kedm, pyrqa
from workloads import coupled_maps, weather_like

import pyedmcl
from pyedmcl.device.info import DeviceInfo
from pyedmcl.device.select import select

POINTS: dict[str, Any] = {"m": 3, "tau": 3, "radius": 0.7}


def grids(report: Report, info: DeviceInfo, options: Namespace) -> None:
    """xmap_grid against loops."""
    n, steps = map(int, options.maps.split("x"))
    x, dims = np.ascontiguousarray(coupled_maps(n, steps), np.float32), range(1, options.E_max + 1)

    def together() -> Any:
        return np.asarray(pyedmcl.xmap_grid(x, E=dims, device=options.device).rho)

    def one_by_one() -> Any:
        return np.array([pyedmcl.xmap(x, E=E, device=options.device).rho for E in dims])

    same = np.array_equal(compiled(together), compiled(one_by_one), equal_nan=True)
    times: dict[str, list[float]] = {"grid": [], "loop": []}
    for _ in range(options.repeat):
        times["grid"].append(clock(together))
        times["loop"].append(clock(one_by_one))
    median = {name: statistics.median(taken) for name, taken in times.items()}
    record = {f"{name}_s": value for name, value in median.items()}
    record |= {"ratio_loop": median["loop"] / median["grid"], "same_bits": bool(same)}
    bits = "the same bits" if same else "OTHER BITS"
    text = (f"xmap_grid {n:,} x {steps:,}, E = 1 .. {dims[-1]}: {median['grid']:.3f} s; loop of xmap "
            f"{median['loop']:.3f} s, {record['ratio_loop']:.2f}x, {bits}")  # fmt: skip
    peers = [kedm("xmap", x, [E] * n) for E in dims] if options.peer else []
    if peers and peers[0] is not None:
        peers[0].call()
        record["peer_s"] = sum(clock(peer.call) for peer in peers if peer is not None)
        record["ratio_peer"] = record["peer_s"] / median["grid"]
        text += f"; loop of kEDM {record['peer_s']:.2f} s, {record['ratio_peer']:.1f}x"
    report.add(text, case="xmap_grid", series=n, steps=steps, E_max=dims[-1], **record, all=times)


def rectangles(report: Report, info: DeviceInfo, options: Namespace) -> None:
    """xmap with other targets."""
    for shape in options.rectangles.split(","):
        n_libraries, n_targets, steps = map(int, shape.split("x"))
        x = weather_like((n_libraries + n_targets) * steps).reshape(-1, steps).T.astype(np.float32)
        libraries, targets = (np.ascontiguousarray(part) for part in (x[:, :n_libraries], x[:, n_libraries:]))

        def call(libraries: Any = libraries, targets: Any = targets) -> Any:
            return pyedmcl.xmap(libraries, targets=targets, E=5, device=options.device)

        call()  # compiles
        taken = [clock(call) for _ in range(options.repeat)]
        seconds = statistics.median(taken)
        report.add(f"xmap {n_libraries:,} libraries x {n_targets:,} targets of {steps:,} steps: {seconds:.4f} s",
                   case="rectangle", libraries=n_libraries, targets=n_targets, steps=steps, E=5, seconds=seconds,
                   all=taken)  # fmt: skip


def windows(report: Report, info: DeviceInfo, options: Namespace) -> None:
    """windows= of xmap, simplex and ccm against the loop over slices."""
    n, width, step, series = map(int, options.windows.split("x"))
    x = np.ascontiguousarray(coupled_maps(series, (n - 1) * step + width), np.float32)
    slices = [slice(start, start + width) for start in range(0, (n - 1) * step + 1, step)]
    sampled = {"E": 3, "lib_sizes": [50, 100, width - 10], "seed": 1, "device": options.device}
    own: dict[str, Any] = {"E": 3, "device": options.device}
    calls: dict[str, Callable[..., Any]] = {
        "xmap": lambda part, **more: pyedmcl.xmap(part, **own, **more).rho,
        "simplex": lambda part, **more: pyedmcl.simplex(part[:, 0], target=part[:, 1], **own, **more).rho,
        "ccm": lambda part, **more: pyedmcl.ccm(part[:, 0], part[:, 1], **sampled, **more).rho,
    }
    for name, call in calls.items():

        def together(call: Callable[..., Any] = call) -> Any:
            return call(x, windows=(width, step))

        def one_by_one(call: Callable[..., Any] = call) -> Any:
            return np.array([call(x[rows]) for rows in slices])

        same = np.array_equal(compiled(together), compiled(one_by_one), equal_nan=True)
        times: dict[str, list[float]] = {"windows": [], "loop": []}
        for _ in range(options.repeat):
            times["windows"].append(clock(together))
            times["loop"].append(clock(one_by_one))
        median = {kind: statistics.median(taken) for kind, taken in times.items()}
        ratio, bits = median["loop"] / median["windows"], "the same bits" if same else "OTHER BITS"
        report.add(
            f"{name}, {n:,} windows of {width} rows, step {step}, {series} series: {median['windows']:.4f} s; loop "
            f"{median['loop']:.3f} s, {ratio:.1f}x, {bits}",
            case=f"windows_{name}", windows=n, width=width, step=step, series=series, windows_s=median["windows"],
            loop_s=median["loop"], ratio_loop=ratio, same_bits=bool(same), all=times,
        )  # fmt: skip


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

    found, alone = compiled(together), compiled(one_by_one)
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
    arguments.add_argument("--cases", default="grid,rectangles,batch,windows")
    arguments.add_argument("--maps", default="154x1600", help="series x steps of the grid")
    arguments.add_argument("--E-max", type=int, default=30, help="of the grid")
    arguments.add_argument("--rectangles", default="20000x1x1000,1x20000x2000", help="libraries x targets x steps")
    arguments.add_argument("--windows", default="200x300x10x20", help="windows x rows x step x series")
    arguments.add_argument("--series", type=int, default=10_000)
    arguments.add_argument("--steps", type=int, default=500)
    arguments.add_argument("--loop", type=int, default=200, help="series of the loop of rqa")
    arguments.add_argument("--peer", type=int, default=5, help="series of the loop of PyRQA; 0: no peer")
    options = arguments.parse_args()
    info = select(options.device).device
    report = Report(info, options.out)
    print(report.title)
    cases = {"grid": grids, "rectangles": rectangles, "batch": batches, "windows": windows}
    for name in options.cases.split(","):
        cases[name](report, info, options)


if __name__ == "__main__":
    main()
