"""S-map against kEDM and pyEDM, host array to host result, in this run; and the error of each.

usage: python bench/compare_smap.py [--device NAME] [--cases 1600x3,4000x3,10000x20,nonlinear] [--repeat 5] [--theta 2]
       [--ours-only] [--out FILE]

A case is LENGTHxE, or "nonlinear": 15 theta at L = 1,000, E = 3, against pyEDM. Errors are the largest of
predictions against singular values in float64, over the range of the data, for some rows; of kEDM by its own definition
of the mean distance (it divides by the library's size, the row itself included).
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import numpy as np
from common import Report, clock, parser
from peers import Peer, kedm, pyedm
from workloads import coupled_maps

import pyedmcl
from pyedmcl.device.select import select
from pyedmcl.reference.edm import smap_rows

SERIES = {1600: 154, 4000: 82}


def exact(x: np.ndarray, E: int, theta: float, rows: np.ndarray, own: bool) -> np.ndarray:
    """Predictions in float64; kEDM's smaller mean distance is a larger theta."""
    x = x.astype(float)
    table = np.column_stack([x[E - 1 - e : len(x) - e] for e in range(E)])
    library, at = table[:-1], np.arange(E - 1, len(x))
    m = len(library) - 1
    scale = 1.0 if own else (m + 1) / m
    return smap_rows(library, x[E:], at[:-1], table[rows - E + 1], rows, theta * scale).predicted


def smap_case(x: np.ndarray, E: int, theta: float, device: str | None) -> tuple[Callable[[], Any], Peer | None]:
    """Our predictions of a series and kEDM's."""
    peer = kedm("smap", x, x, E=E, tau=1, Tp=1, theta=theta)
    return lambda: pyedmcl.smap(x, E=E, theta=theta, device=device).predicted, peer


def nonlinear_case(device: str | None) -> tuple[Callable[[], Any], Peer | None]:
    """Our skill for each of 15 theta and pyEDM's."""
    x = coupled_maps(2, 1000)[:, 0]
    peer = pyedm("PredictNonlinear", {"x": x}, columns="x", target="x", lib="1 1000", pred="1 1000", E=3,
                 showPlot=False)  # fmt: skip
    return lambda: pyedmcl.predict_nonlinear(x, E=3, device=device), peer


def error(call: Callable[[], Any], x: np.ndarray, E: int, theta: float, own: bool) -> float:
    """The largest error of some predictions, over the range of the data."""
    rows = np.unique(np.linspace(E - 1, len(x) - 2, 24).astype(int))
    # Ours begin with row E - 1; kEDM's are as many, shorter by Tp.
    predicted = np.asarray(call())[rows - E + 1]
    return float(np.abs(predicted - exact(x, E, theta, rows, own)).max() / np.ptp(x))


def main() -> None:
    command = parser(__doc__, repeat=5)
    command.add_argument("--cases", default="1600x3,4000x3,nonlinear")
    command.add_argument("--theta", type=float, default=2.0)
    command.add_argument("--ours-only", action="store_true")
    options = command.parse_args()
    report = Report(select(options.device).device, options.out)
    print(f"{report.title}; theta = {options.theta:g}")
    print(f"{'case':>10} {'ours s':>10} {'peer s':>10} {'ratio':>7} {'our error':>10} {'its error':>10}")
    for case in options.cases.split(","):
        errors: list[float] = []
        if case == "nonlinear":
            ours, peer = nonlinear_case(options.device)
        else:
            length, E = map(int, case.split("x"))
            x = np.ascontiguousarray(coupled_maps(SERIES.get(length, 8), length)[:, 0])
            ours, peer = smap_case(x, E, options.theta, options.device)
            errors.append(error(ours, x, E, options.theta, True))
            if peer is not None and not options.ours_only:
                errors.append(error(peer.call, x, E, options.theta, False))
        # One after the other, not in turn: two contexts on a GPU cost each other a switch at every call.
        ours()
        mine = [clock(ours) for _ in range(options.repeat)]
        own = statistics.median(mine)
        record: dict[str, Any] = {"case": f"smap {case}", "ours_s": own, "ours_all": mine, "errors": errors}
        line = f"{case:>10} {own:10.5f}"
        if peer is not None and not options.ours_only:
            peer.call()
            other = [clock(peer.call) for _ in range(options.repeat)]
            theirs = statistics.median(other)
            record |= {"peer": peer.label, "peer_s": theirs, "peer_all": other, "ratio": theirs / own}
            line += f" {theirs:10.4f} {theirs / own:6.1f}x"
        report.add(line + "".join(f" {one:10.1e}" for one in errors), **record)


if __name__ == "__main__":
    main()
