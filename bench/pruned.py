"""The pruned search against SciPy's k-d tree and the exhaustive search, host array to host arrays. JSON lines.

usage: python bench/pruned.py [--device NAME] [--log 18] [--dims 1,20] [--repeat 3] [--exhaustive] [--out FILE]
"""

from __future__ import annotations

from statistics import median
from typing import Any

import numpy as np
from common import Report, parser, timed

from pyedmcl.device.select import open_device
from pyedmcl.launch.staging import Pool, Staging
from pyedmcl.search.plan import SearchProblem
from pyedmcl.search.pruned import PrunedSearcher
from pyedmcl.search.searches import ExhaustiveSearcher
from pyedmcl.search.tables import load_states


def lorenz(n: int, dt: float = 0.01, transient: int = 2000) -> Any:
    """x of Lorenz' system (10, 28, 8/3), fourth-order Runge-Kutta steps, float32."""

    def slope(x: float, y: float, z: float) -> tuple[float, float, float]:
        return 10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z

    state, out = (1.0, 1.0, 1.0), np.empty(n + transient)
    for step in range(n + transient):
        a = slope(*state)
        b = slope(*(v + dt / 2 * w for v, w in zip(state, a, strict=True)))
        c = slope(*(v + dt / 2 * w for v, w in zip(state, b, strict=True)))
        d = slope(*(v + dt * w for v, w in zip(state, c, strict=True)))
        state = tuple(v + dt / 6 * (p + 2 * q + 2 * r + s) for v, p, q, r, s in zip(state, a, b, c, d, strict=True))
        out[step] = state[0]
    return out[transient:].astype(np.float32)


def series(log: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    smooth = lorenz(1 << log)
    noisy = smooth + np.float32(0.05 * smooth.std()) * rng.standard_normal(len(smooth), np.float32)
    return {"lorenz": smooth, "noisy": noisy, "noise": rng.standard_normal(len(smooth), np.float32)}


def main() -> None:
    command = parser(__doc__, repeat=3)
    command.add_argument("--log", type=int, default=18)
    command.add_argument("--dims", default="1,20")
    command.add_argument("--data", default="lorenz,noisy,noise")
    command.add_argument("--no-tree", action="store_true")
    command.add_argument("--exhaustive", action="store_true")
    options = command.parse_args()
    executor = open_device(options.device)
    say = Report(executor.info, options.out).add
    for name, x in series(options.log).items():
        if name not in options.data.split(","):
            continue
        for E in map(int, options.dims.split(",")):
            problem = SearchProblem((E,), (E + 1,), 1, 0, 0, len(x), len(x))

            def pruned(problem: SearchProblem = problem, x: Any = x) -> tuple[Any, float, float]:
                pool = Pool(executor)
                searcher = PrunedSearcher(executor, load_states(executor, problem, pool, x), pool=pool)
                try:
                    probed = searcher.probe()
                    lists = searcher.find()
                    return lists.read(executor), lists.visited, probed
                finally:
                    pool.release()

            def exhaustive(E: int = E, problem: SearchProblem = problem, x: Any = x) -> Any:
                data = Staging(executor, x[:, None].copy())
                searcher = ExhaustiveSearcher(executor, problem, "neighbours")
                try:
                    return next(searcher.tables(searcher.load(data, 0, 1))).read(executor, E, 1)
                finally:
                    searcher.release()
                    data.release()

            seconds, (table, visited, probed) = timed(pruned, options.repeat)
            case = {"data": name, "L": len(x), "E": E, "k": E + 1}
            say(**case, search="pruned", seconds=median(seconds), visited=visited, probed=probed)
            if options.exhaustive:
                seconds, other = timed(exhaustive, 1)
                same = all(a.tobytes() == b[0].tobytes() for a, b in zip(table, other, strict=True))
                say(**case, search="exhaustive", seconds=median(seconds), same_bits=same)
            if not options.no_tree:
                from scipy.spatial import cKDTree

                states = np.lib.stride_tricks.sliding_window_view(x, E).astype(np.float64)
                seconds, _ = timed(lambda s=states, E=E: cKDTree(s).query(s, k=E + 2, workers=-1), 1)
                say(**case, search="cKDTree", seconds=median(seconds))


if __name__ == "__main__":
    main()
