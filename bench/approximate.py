"""Exact or approximate: run time, recall and forecast error of every neighbour search, on three kinds of series.

After the tables of Takahashi et al., IEEE Access 2023: simplex projection of x of Lorenz' system, E = 1 and 20; and
white noise and a noisy series, where trees fail. Usage::

    python bench/approximate.py --logs 10,14,16 --data lorenz,noisy,noise --out FILE.jsonl [--device DEVICE]

A line holds seconds of the whole call (the shorter of ``--repeat``, compiled before), what ran and why, recall by the
result's own measurement, and the mean absolute percentage error over that of exact search. Exhaustive runs that would
take longer than ``--most`` seconds are extrapolated from the length before (a factor of four for each doubling) and
marked ``"extrapolated": true``; their error is that of the k-d tree, which finds the same neighbours.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from pruned import series

import pyedmcl

SEARCHES = ("exact", "kdtree", "pruned", "ivf", "hnsw", "auto")


def mape(result: Any) -> float:
    """Mean absolute percentage error over rows whose observation is not near zero."""
    there = np.isfinite(result.observed) & np.isfinite(result.predicted)
    there &= np.abs(result.observed) > 1e-3 * np.nanstd(result.observed)
    observed, predicted = result.observed[there], result.predicted[there]
    return float(100 * np.mean(np.abs((predicted - observed) / observed)))


def run(x: Any, E: int, name: str, device: str | None, repeat: int) -> tuple[float, Any]:
    best, result = np.inf, None
    for _ in range(repeat):
        begun = time.perf_counter()
        result = pyedmcl.simplex(x, E=E, neighbors=name, device=device)
        best = min(best, time.perf_counter() - begun)
    return best, result


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
    given = parser.parse_args()
    for E in map(int, given.dims.split(",")):
        before: dict[tuple[str, str], tuple[int, float]] = {}
        for log in map(int, given.logs.split(",")):
            for label, x in series(log).items():
                if label not in given.data.split(","):
                    continue
                reference = None
                for name in given.searches.split(","):
                    line: dict[str, Any] = {"data": label, "L": 1 << log, "E": E, "search": name}
                    last = before.get((label, name))
                    expected = last[1] * (4.0 if name == "exact" else 2.2) ** (log - last[0]) if last else 0.0
                    if expected > given.most:
                        if name == "exact":
                            print(json.dumps({**line, "seconds": expected, "extrapolated": True}), flush=True)
                            save(given.out, {**line, "seconds": expected, "extrapolated": True})
                        continue
                    run(x[: min(len(x), 4096)], E, name, given.device, 1)  # compile
                    seconds, result = run(x, E, name, given.device, given.repeat if expected < 5 else 1)
                    before[label, name] = (log, seconds)
                    error = mape(result)
                    reference = reference or error
                    searched = result.provenance["neighbors"]
                    line |= {"seconds": seconds, "extrapolated": False, "mape_to_exact": error / reference,
                             "device": result.provenance["device"]}  # fmt: skip
                    if searched:
                        line |= {key: searched[0][key] for key in ("used", "why", "recall", "interval", "measured")}
                    print(json.dumps(line), flush=True)
                    save(given.out, line)


def save(path: Path | None, line: dict[str, Any]) -> None:
    if path is not None:
        with path.open("a") as out:
            out.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
