"""Rates from timed problems: least squares of ratios, no rate below zero."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .pruned_axes import AXES_MOST
from .rates import Rates, changes, tree_visited, visited_lags

_ROUNDS = 100  # more than any of these fits needs
_WEIGHINGS = 12
_WORTH = 0.2  # power of its seconds by which a timing counts: to be wrong about a long search costs more


@dataclass(frozen=True)
class Timing:
    """One problem, all states of a series among themselves, and the seconds of what was timed; None where it was not.

    Attributes
    ----------
    series : str
    n, E, k : int
    share : float
        Of the pairs, that the pruned search computed; 0 where it was not timed.
    dimension : float
        Intrinsic, of the states; see :func:`pyedmcl.neighbors.costs.intrinsic_dimension`.
    shared : bool
        Whether the exhaustive search shared sums along diagonals.
    exact, order, pruned, build, tree : float or None
        ``pruned`` holds the order, ``tree`` its building.
    """

    series: str
    n: int
    E: int
    k: int
    share: float = 0.0
    dimension: float = 0.0
    shared: bool = False
    exact: float | None = None
    order: float | None = None
    pruned: float | None = None
    build: float | None = None
    tree: float | None = None

    def predicted(self, rates: Rates) -> dict[str, float]:
        """Estimated seconds of what was timed."""
        n, E, k = self.n, self.E, self.k
        every = {
            "exact": rates.exact(n, n, E, k, self.shared), "order": rates.order(n, E),
            "pruned": rates.order(n, E) + rates.walk(n, n, E, k, self.share),
            "build": rates.tree(n, 0, E, k, self.dimension), "tree": rates.tree(n, n, E, k, self.dimension),
        }  # fmt: skip
        return {name: seconds for name, seconds in every.items() if getattr(self, name) is not None}

    def record(self, rates: Rates) -> dict[str, Any]:
        """The problem with measured and predicted seconds, as it is stored."""
        plain = {name: value for name, value in asdict(self).items() if value is not None}
        return {**plain, "predicted": self.predicted(rates)}


def fit(timings: Sequence[Timing], before: Rates) -> Rates:
    """Rates that predict timings best; those that the timings say nothing about stay as they were.

    Parameters
    ----------
    timings : sequence of Timing
    before : Rates
        Known so far.
    """
    coefficients: dict[str, float] = {}
    exact = [t for t in timings if t.exact and not t.shared]
    rows: list[tuple[float, ...]] = [
        (1.0, t.n * changes(t.n, t.k, 1.0), float(t.n) * t.n, float(t.n) * t.n * t.E) for t in exact
    ]
    _solve(coefficients, ("exact_call", "exact_change", "exact_pair", "exact_lag"), rows, [t.exact for t in exact])
    fitted = replace(before, **coefficients)
    shared = [t for t in timings if t.exact and t.shared]
    rows = [(t.n * changes(t.n, t.k, 1.0), float(t.n) * t.n * t.E) for t in shared]
    calls = [fitted.exact_call for _ in shared]
    _solve(coefficients, ("shared_change", "shared_lag"), rows, [t.exact for t in shared], calls)
    order = [t for t in timings if t.order]
    rows = [(min(t.E, AXES_MOST), float(t.n) * t.E) for t in order]
    _solve(coefficients, ("order_call", "order_lag"), rows, [t.order for t in order])
    fitted = replace(before, **coefficients)
    walk = [t for t in timings if t.pruned]
    rows = [(1.0, t.n * changes(t.n, t.k, t.share), t.n * visited_lags(t.n, t.E, t.share)) for t in walk]
    orders = [fitted.order(t.n, t.E) for t in walk]  # the formula knows more of it than one noisy run
    _solve(coefficients, ("walk_call", "walk_change", "walk_lag"), rows, [t.pruned for t in walk], orders)
    built = [t for t in timings if t.build]
    _solve(coefficients, ("tree_build",), [(t.n * math.log2(max(t.n, 2)),) for t in built], [t.build for t in built])
    fitted = replace(before, **coefficients)
    tree = [t for t in timings if t.tree]
    rows = [(t.n * (t.k + 1.0), t.n * t.E * tree_visited(t.n, t.k + 1, t.dimension)) for t in tree]
    builds = [fitted.tree(t.n, 0, t.E, t.k, 1.0) for t in tree]
    _solve(coefficients, ("tree_neighbor", "tree_visit"), rows, [t.tree for t in tree], builds)
    return replace(before, **coefficients)


def suffices(timings: Sequence[Timing]) -> bool:
    """Whether timings tell what the exhaustive and the pruned search cost, so that they can be compared.

    Of a single E they would not tell what a lag costs, and the fit would make it nothing.
    """
    exact, pruned = ([t.E for t in timings if getattr(t, name) is not None] for name in ("exact", "pruned"))
    return len(exact) >= 4 and len(pruned) >= 3 and len(set(exact)) > 1 and len(set(pruned)) > 1


def errors(timings: Sequence[Timing], rates: Rates) -> list[float]:
    """Measured through predicted seconds of everything that was timed, or the reverse where that is more."""
    ratios = []
    for timing in timings:
        for name, predicted in timing.predicted(rates).items():
            measured = _some(getattr(timing, name))
            ratios.append(max(measured / predicted, predicted / measured) if predicted > 0 else math.inf)
    return ratios


def _some(seconds: float | None) -> float:
    return 0.0 if seconds is None else seconds


def _solve(
    found: dict[str, float], names: Sequence[str], rows: Sequence[Sequence[float]], seconds: Sequence[Any],
    beside: Sequence[float] = (),
) -> None:  # fmt: skip
    """Add the rates of one formula, if timings are no fewer than rates; ``beside``: what is known of each timing."""
    if len(rows) < len(names):
        return
    a, y = np.asarray(rows, np.float64), np.asarray(seconds, np.float64)
    offset = np.asarray(beside, np.float64) if len(beside) else np.zeros(len(y))
    worth = y**_WORTH
    weight = worth / y
    for _ in range(_WEIGHINGS):
        x = not_negative(a * weight[:, None], (y - offset) * weight)
        # (p - y) / sqrt(p y) is 2 sinh(log(p / y) / 2): too much counts as too little does.
        weight = worth / np.sqrt(y * np.maximum(a @ x + offset, 1e-3 * y))
    found.update(zip(names, map(float, x), strict=True))


def not_negative(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """x >= 0 that minimises |a x - b|, by active sets (Lawson & Hanson, Solving Least Squares Problems, 1974, ch. 23).

    Parameters
    ----------
    a : ndarray (m, n)
        Columns may differ in size by many orders.
    b : ndarray (m,)
    """
    size = np.sqrt((a * a).sum(axis=0))
    a = a / np.where(size > 0, size, 1.0)
    x, free = np.zeros(a.shape[1]), np.zeros(a.shape[1], np.bool_)
    for _ in range(_ROUNDS):
        gradient = a.T @ (b - a @ x)
        gradient[free] = -np.inf
        best = int(np.argmax(gradient))
        if gradient[best] <= 1e-10 * len(b):
            break
        free[best] = True
        while True:
            trial = np.zeros_like(x)
            trial[free] = np.linalg.lstsq(a[:, free], b, rcond=None)[0]
            down = free & (trial <= 0)
            if not down.any():
                break
            step = float((x[down] / np.maximum(x[down] - trial[down], 1e-300)).min())
            x = x + step * (trial - x)
            free &= x > 1e-15
        x = trial
    return x / np.where(size > 0, size, 1.0)
