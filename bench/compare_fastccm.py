"""Maps of all pairs and single series against FastCCM (PyTorch) in this run, host array to host result, and the errors.

usage: python bench/compare_fastccm.py [--device NAME] [--torch cuda] [--cases 100x1000x5,200x1000x5] [--method smap]
       [--series maps,lorenz] [--repeat 7] [--checked 2] [--precision full,compact] [--ours-only]
       [--torch-memory 0.8] [--out FILE]

A case is SERIESxSTEPSxE, with an exclusion radius of 5 and theta = 2; of one series the next step is predicted (`smap`,
`simplex`). Errors of S-map are the largest of rho against float64 for all targets of some libraries, or of some
predictions over the range of the data, FastCCM's by its own definition of the mean distance (the excluded rows count in
it).
FastCCM is told that it has 80 % of the memory of a GPU, or --torch-memory of it. What is timed was computed once
before, so that compilers do not count.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import numpy as np
from common import Report, parser, timed
from peers import Peer, installed

import pyedmcl
from pyedmcl.device.select import select
from pyedmcl.simulate import coupled_maps

RADIUS, THETA = 5, 2.0
GOALS = {"100x1000x5": 2.5, "200x1000x5": 4.5, "800x500x5": 12.0, "100x8000x5": 55.0}  # ms on an H200, S-map


def maps(n_series: int, n_steps: int) -> np.ndarray:
    """Coupled maps with noise: of those without, some are periodic, of which FastCCM cannot solve the systems."""
    return np.ascontiguousarray(coupled_maps(n_series=n_series, n_steps=n_steps).values, np.float32)


def lorenz(n_series: int, n_steps: int) -> np.ndarray:
    """x, y and z of Lorenz' systems without noise in steps of 0.05 (n_steps, n_series)."""
    rng, h = np.random.default_rng(1), 0.01
    state = rng.uniform(-10.0, 10.0, (3, -(-n_series // 3))) + np.array([[0.0], [0.0], [25.0]])

    def slope(s: np.ndarray) -> np.ndarray:
        x, y, z = s
        return np.stack([10.0 * (y - x), x * (28.0 - z) - y, x * y - 8.0 / 3.0 * z])

    out = []
    for step in range(5 * (n_steps + 200)):
        a = slope(state)
        b = slope(state + h / 2 * a)
        c = slope(state + h / 2 * b)
        d = slope(state + h * c)
        state = state + h / 6 * (a + 2 * b + 2 * c + d)
        if step % 5 == 4:
            out.append(state.reshape(-1))
    return np.array(out[200:])[:, :n_series].astype(np.float32)


def fitted(states: np.ndarray, targets: np.ndarray, rows: np.ndarray, counts_all: bool) -> np.ndarray:
    """Predictions of some rows in float64 (rows, targets); ``counts_all``: excluded rows count in the mean distance."""
    m = len(states)
    # In a basis in which the library is white, so that the condition of delays is not squared.
    left, sizes, _ = np.linalg.svd(states - states.mean(axis=0), full_matrices=False)
    white = left[:, sizes > 1e-12 * sizes[0]] * np.sqrt(m)
    predicted = np.empty((len(rows), targets.shape[1]))
    for i, t in enumerate(rows):
        distances = np.sqrt(((states - states[t]) ** 2).sum(axis=1))
        legal = np.abs(np.arange(m) - t) > RADIUS
        mean = distances.mean() if counts_all else distances[legal].mean()
        weights = np.exp(-THETA * distances[legal] / mean)
        regressors = np.column_stack([np.ones(legal.sum()), white[legal] - white[t]])
        weighted = weights[:, None] * regressors, weights[:, None] * targets[legal]
        predicted[i] = np.linalg.lstsq(*weighted, rcond=None)[0][0]
    return predicted


def exact(x: np.ndarray, E: int, library: int, counts_all: bool) -> np.ndarray:
    """rho of a library with all targets in float64."""
    x = x.astype(float)
    targets = x[E - 1 :]
    predicted = fitted(embedded(x[:, library], E), targets, np.arange(len(targets)), counts_all)
    p, o = predicted - predicted.mean(axis=0), targets - targets.mean(axis=0)
    return np.asarray((p * o).sum(axis=0) / np.sqrt((p * p).sum(axis=0) * (o * o).sum(axis=0)))


def embedded(x: np.ndarray, E: int) -> np.ndarray:
    """States (steps - E + 1, E), the latest value first."""
    return np.column_stack([x[E - 1 - e : len(x) - e] for e in range(E)])


def fastccm(x: np.ndarray, E: int, method: str, place: str, share: float) -> Peer | None:
    """FastCCM's map, [library, target], or its predictions of one series; None where it is not installed."""
    label = installed("fastccm")
    if label is None:
        return None
    import torch
    from fastccm import PairwiseCCM

    memory = torch.cuda.get_device_properties(0).total_memory * share * 1e-9 if place.startswith("cuda") else 4.0
    ccm = PairwiseCCM(device=place, memory_budget_gb=memory)
    options: dict[str, Any] = {"theta": THETA} if method == "smap" else {}

    def rho() -> np.ndarray:
        states = [embedded(x[:, i], E) for i in range(x.shape[1])]
        targets = [x[E - 1 :, j : j + 1] for j in range(x.shape[1])]
        found = ccm.score_matrix(states, targets, exclusion_window=RADIUS, tp=0, method=method, **options)
        return np.asarray(found[0]).T

    def predictions() -> np.ndarray:
        states = [embedded(x[:, 0], E)[:-1]]
        found = ccm.predict_matrix(states, [x[E:]], exclusion_window=RADIUS, tp=0, method=method, **options)
        return np.asarray(found).reshape(-1)

    return Peer(label, predictions if x.shape[1] == 1 else rho)


def errors(found: np.ndarray, x: np.ndarray, E: int, checked: int, counts_all: bool) -> float:
    """The largest error of rho over some libraries, or of some predictions of one series over its range."""
    if x.shape[1] == 1:
        x = x.astype(float)
        rows = np.unique(np.linspace(0, len(x) - E - 1, 8 * checked).astype(int))
        right = fitted(embedded(x[:, 0], E)[:-1], x[E:], rows, counts_all)[:, 0]
        return float(np.abs(found[rows] - right).max() / np.ptp(x))
    some = np.unique(np.linspace(0, x.shape[1] - 1, checked).astype(int))
    return max(float(np.nanmax(np.abs(found[i] - exact(x, E, int(i), counts_all)))) for i in some)


def main() -> None:
    command = parser(__doc__, repeat=7)
    command.add_argument("--torch", default="cuda", help="FastCCM's device")
    command.add_argument("--torch-memory", type=float, default=0.8, help="part of a GPU's memory for FastCCM")
    command.add_argument("--cases", default=",".join(GOALS))
    command.add_argument("--method", default="smap", choices=("smap", "simplex"))
    command.add_argument("--series", default="maps")
    command.add_argument("--checked", type=int, default=2, help="libraries whose errors are found; 0 for none. Of one "
                         "series it is eight predictions for each.")  # fmt: skip
    command.add_argument("--precision", default="full", help="several, with commas between them")
    command.add_argument("--ours-only", action="store_true")
    options = command.parse_args()
    report = Report(select(options.device).device, options.out)
    print(report.title)
    for kind in options.series.split(","):
        for case in options.cases.split(","):
            n_series, n_steps, E = map(int, case.split("x"))
            x = maps(max(n_series, 3), n_steps) if kind == "maps" else lorenz(n_series, n_steps)
            run(report, options, kind, case, np.ascontiguousarray(x[:, :n_series]), E)


def run(report: Report, options: Any, kind: str, case: str, x: np.ndarray, E: int) -> None:
    """One case, as JSON lines: ours, and FastCCM's where it is there."""
    fits: dict[str, Any] = {"method": "smap", "theta": THETA} if options.method == "smap" else {}
    checked = options.checked if options.method == "smap" else 0

    def ours(precision: str) -> Callable[[], np.ndarray]:
        given: dict[str, Any] = {"E": E, "exclusion_radius": RADIUS, "device": options.device}
        if x.shape[1] > 1:
            return lambda: np.asarray(pyedmcl.xmap(x, precision=precision, **given, **fits).rho)
        if options.method == "smap":
            return lambda: np.asarray(pyedmcl.smap(x[:, 0], theta=THETA, **given).predicted)
        return lambda: np.asarray(pyedmcl.simplex(x[:, 0], **given).predicted)

    peer = None if options.ours_only else fastccm(x, E, options.method, options.torch, options.torch_memory)
    calls: list[tuple[str, Callable[[], np.ndarray], bool]] = [
        (f"pyedmcl {pyedmcl.__version__}{'' if name == 'full' else ', ' + name}", ours(name), False)
        for name in options.precision.split(",")
    ]
    if peer is not None:
        calls.append((peer.label, peer.call, True))
    for who, call, counts_all in calls:
        seconds, rho = timed(call, options.repeat)
        goal = GOALS.get(case) if options.method == "smap" and not counts_all else None
        report.add(
            case=case, series=kind, method=options.method, who=who, ms=round(1e3 * statistics.median(seconds), 3),
            least_ms=round(1e3 * min(seconds), 3), goal_ms=goal,
            error=errors(rho, x, E, checked, counts_all) if checked else None,
        )  # fmt: skip


if __name__ == "__main__":
    main()
