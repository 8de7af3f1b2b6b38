"""Rates from timed problems: least squares of ratios, no rate below zero."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .rates import Rates

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


# What was timed, in the order in which rates are found, since later formulas hold what earlier timings tell: its name,
# whether sums were shared (None: that is no matter), and the rates that it tells.
_TOLD = (
    ("exact", False, ("exact_call", "exact_change", "exact_pair", "exact_lag")),
    ("exact", True, ("shared_change", "shared_lag")),
    ("order", None, ("order_call", "order_lag")),
    ("pruned", None, ("walk_call", "walk_change", "walk_lag")),
    ("build", None, ("tree_build",)),
    ("tree", None, ("tree_neighbor", "tree_visit")),
)


def fit(timings: Sequence[Timing], before: Rates) -> Rates:
    """Rates that predict timings best; those that the timings say nothing about stay as they were.

    Parameters
    ----------
    timings : sequence of Timing
    before : Rates
        Known so far.
    """
    rates = before
    for what, shared, names in _TOLD:
        timed = [t for t in timings if getattr(t, what) and shared in (None, t.shared)]
        if len(timed) >= len(names):
            rates = _fitted(timed, what, names, rates)
    return rates


def _fitted(timings: Sequence[Timing], what: str, names: Sequence[str], rates: Rates) -> Rates:
    """Rates with those of ``names`` as the timings tell them."""
    nothing = dict.fromkeys(rates.as_dict(), 0.0)
    # Estimates are sums of rates times numbers: such a number is the estimate where its rate is 1 and others are 0.
    units = [Rates(**{**nothing, name: 1.0}) for name in names]
    others = replace(rates, **dict.fromkeys(names, 0.0))
    a = np.array([[t.predicted(unit)[what] for unit in units] for t in timings])
    offset = np.array([t.predicted(others)[what] for t in timings])
    y = np.array([getattr(t, what) for t in timings], np.float64)
    worth = y**_WORTH
    weight = worth / y
    for _ in range(_WEIGHINGS):
        x = not_negative(a * weight[:, None], (y - offset) * weight)
        # (p - y) / sqrt(p y) is 2 sinh(log(p / y) / 2): too much counts as too little does.
        weight = worth / np.sqrt(y * np.maximum(a @ x + offset, 1e-3 * y))
    return replace(rates, **dict(zip(names, map(float, x), strict=True)))


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
            measured = getattr(timing, name)
            ratios.append(max(measured / predicted, predicted / measured) if predicted > 0 else math.inf)
    return ratios


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
