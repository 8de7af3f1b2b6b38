"""Exact or approximate: run time, recall and forecast error of every neighbour search, on three kinds of series.

After the tables of Takahashi et al., IEEE Access 2023: simplex projection of x of Lorenz' system, E = 1 and 20; and
white noise and a noisy series, where trees fail. Usage::

    python bench/approximate.py --logs 10,14,16 --data lorenz,noisy,noise --out FILE.jsonl [--device DEVICE]

A line holds seconds of the whole call (the shortest of ``--repeat`` or more, of one beyond 5 s; in turns), what
ran and why, recall by the result's own measurement, and mean absolute percentage error over that of the first search.
Exhaustive runs that would take longer than ``--most`` seconds are extrapolated from the length before (a factor of four
for each doubling) and marked ``"extrapolated": true``; their error is that of the k-d tree, which finds the same
neighbours.

``--plot PICTURE --from FILE.jsonl`` draws what such a file holds, and runs nothing; needs matplotlib.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from pruned import series

import pyedmcl

SEARCHES = ("exhaustive", "kdtree", "pruned", "ivf", "hnsw", "exact")
SHORT, SHORT_RUNS = 0.25, 30  # seconds for which each search of short calls is repeated, and how often at most
KINDS = {"lorenz": "Lorenz", "noisy": "Lorenz with noise", "noise": "white noise"}
# Colours that people with any kind of sight tell apart (Okabe & Ito), and dashes for what may miss neighbours.
STYLES = {
    "exact": ("#000000", "-"), "exhaustive": ("#0072B2", "-"), "pruned": ("#D55E00", "-"), "kdtree": ("#009E73", "-"),
    "ivf": ("#CC79A7", "--"), "hnsw": ("#E69F00", "--"),
}  # fmt: skip


def mape(result: Any) -> float:
    """Mean absolute percentage error over rows whose observation is not near zero."""
    there = np.isfinite(result.observed) & np.isfinite(result.predicted)
    there &= np.abs(result.observed) > 1e-3 * np.nanstd(result.observed)
    observed, predicted = result.observed[there], result.predicted[there]
    return float(100 * np.mean(np.abs((predicted - observed) / observed)))


def call(x: Any, E: int, name: str, device: str | None) -> tuple[float, Any]:
    """Seconds of a call, and its result."""
    begun = time.perf_counter()
    result = pyedmcl.simplex(x, E=E, neighbors=name, device=device)
    return time.perf_counter() - begun, result


def in_turn(best: dict[str, float], again: Callable[[str], float], repeat: int) -> None:
    """Repeat calls in turn, so that a slow moment meets all searches; short ones more often than asked."""
    for number in range(1, SHORT_RUNS):
        short = [name for name, seconds in best.items() if number < repeat or (repeat > 1 and seconds * number < SHORT)]
        for name in short:
            best[name] = min(best[name], again(name))


def plot(path: Path, source: Path) -> None:
    """Run time over length for each kind of series and E; extrapolated times are hollow."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    lines = [json.loads(text) for text in source.read_text().splitlines()]
    dims, kinds = sorted({line["E"] for line in lines}), [k for k in KINDS if any(line["data"] == k for line in lines)]
    figure, axes = pyplot.subplots(len(dims), len(kinds), sharex=True, sharey=True, squeeze=False,
                                   figsize=(3.4 * len(kinds), 2.9 * len(dims) + 0.5))  # fmt: skip
    for (i, E), (j, kind) in itertools.product(enumerate(dims), enumerate(kinds)):
        place = axes[i][j]
        for name, (colour, style) in STYLES.items():
            some = sorted((line["L"], line["seconds"], line["extrapolated"]) for line in lines
                          if (line["data"], line["E"], line["search"]) == (kind, E, name))  # fmt: skip
            if not some:
                continue
            length, seconds, _ = zip(*some, strict=True)
            wide = name == "exact"
            # Exact, wide and pale, lies below the search that it took.
            place.plot(length, seconds, style, color=colour, label=name, linewidth=6 if wide else 1.5,
                       alpha=0.4 if wide else 1.0, zorder=1 if wide else 2)  # fmt: skip
            for hollow in (False, True):
                at = [(n, s) for n, s, g in some if g == hollow]
                if at and not wide:
                    place.plot(*zip(*at, strict=True), "o", color=colour, markersize=4, zorder=3,
                               markerfacecolor="white" if hollow else colour)  # fmt: skip
        place.set_xscale("log", base=2)
        place.set_yscale("log")
        place.grid(True, which="major", alpha=0.3)
        place.set_title(f"{KINDS[kind]}, E = {E}", fontsize=10)
        if i == len(dims) - 1:
            place.set_xlabel("length of the series")
        if j == 0:
            place.set_ylabel("seconds of the call")
    handles: dict[str, Any] = {}
    for place in axes.flat:
        handles |= dict(zip(*reversed(place.get_legend_handles_labels()), strict=True))
    figure.legend([handles[n] for n in STYLES if n in handles], [n for n in STYLES if n in handles],
                  loc="lower center", ncols=len(STYLES), frameon=False)  # fmt: skip
    devices = sorted({line["device"] for line in lines if "device" in line})
    figure.suptitle(f"Simplex projection, {', '.join(devices)}", fontsize=11)
    figure.tight_layout(rect=(0, 0.05, 1, 1))
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", default="10,14,16,18,20")
    parser.add_argument("--data", default="lorenz,noisy,noise")
    parser.add_argument("--searches", default=",".join(SEARCHES))
    parser.add_argument("--dims", default="1,20")
    parser.add_argument("--repeat", type=int, default=2, help="runs, of which the shortest counts")
    parser.add_argument("--most", type=float, default=20.0, help="seconds of an exhaustive run, else extrapolated")
    parser.add_argument("--device")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--plot", type=Path, metavar="PICTURE", help="draw the lines of --from, and run nothing")
    parser.add_argument("--from", dest="source", type=Path, help="default: bench/results/cpu-approximate.jsonl")
    given = parser.parse_args()
    if given.plot is not None:
        plot(given.plot, given.source or Path(__file__).parent / "results" / "cpu-approximate.jsonl")
        return
    for E in map(int, given.dims.split(",")):
        before: dict[tuple[str, str], tuple[int, float]] = {}
        for log in map(int, given.logs.split(",")):
            for label, x in series(log).items():
                if label not in given.data.split(","):
                    continue
                best: dict[str, float] = {}
                errors: dict[str, float] = {}
                lines: dict[str, dict[str, Any]] = {}
                for name in given.searches.split(","):
                    line: dict[str, Any] = {"data": label, "L": 1 << log, "E": E, "search": name}
                    last = before.get((label, name))
                    expected = last[1] * (4.0 if name == "exhaustive" else 2.2) ** (log - last[0]) if last else 0.0
                    if expected > given.most:
                        if name == "exhaustive":
                            save(given.out, {**line, "seconds": expected, "extrapolated": True})
                        continue
                    call(x[: min(len(x), 4096)], E, name, given.device)  # compile
                    best[name], result = call(x, E, name, given.device)
                    searched = result.provenance["neighbors"]
                    if searched:
                        line |= {key: searched[0][key] for key in ("used", "why", "recall", "interval", "measured")}
                    errors[name] = mape(result)
                    lines[name] = line | {"device": result.provenance["device"]}
                many = {name: seconds for name, seconds in best.items() if seconds < 5}
                in_turn(many, lambda name, x=x, E=E: call(x, E, name, given.device)[0], given.repeat)
                best |= many
                for name, line in lines.items():
                    before[label, name] = (log, best[name])
                    error = errors[name] / next(iter(errors.values()))
                    save(given.out, line | {"seconds": best[name], "extrapolated": False, "mape_to_exact": error})


def save(path: Path | None, line: dict[str, Any]) -> None:
    print(json.dumps(line), flush=True)
    if path is not None:
        with path.open("a") as out:
            out.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
