"""What searches cost, roughly, and which is the cheapest: the rule behind neighbors="auto"."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..device.quirks import quirks_for
from ..plan import Search

if TYPE_CHECKING:
    from ..device.info import DeviceInfo

_PROBED, _ASKED = 4096, 256
_PRUNED_PAIR = 1.5  # what a pair of the pruned search costs, in pairs of the exhaustive one
_PRUNED_LEAST = {"cpu": 12_288, "gpu": 1 << 17}  # states for which its order and probe are repaid
_MARGIN = 0.9  # the exhaustive search wins ties, and estimates are no better than this


@dataclass(frozen=True)
class Decision:
    """Which search runs, and why."""

    search: str
    why: str


@dataclass(frozen=True)
class Rates:
    """Measured speeds of one machine and device.

    Attributes
    ----------
    pair, lag : float
        Seconds of the exhaustive search for a pair of states, and for each lag of it.
    tree_build, tree_visit, tree_query : float
        Seconds of a k-d tree for a state and level, for a visited state's coordinate, and for a query.
    """

    pair: float
    lag: float
    tree_build: float
    tree_visit: float
    tree_query: float


# Shipped: an AMD EPYC with two cores (Intel runtime, SciPy 1.17), and an H200 beside such a host.
SHIPPED = {
    "cpu": Rates(7.0e-12, 2.2e-11, 1.0e-8, 2.0e-9, 1.5e-6),
    "gpu": Rates(2.0e-14, 5.0e-14, 1.0e-8, 2.0e-9, 1.5e-6),
}


def intrinsic_dimension(points: NDArray[Any]) -> float:
    """Dimension of a cloud of states (n, E) by the ratio of the two nearest distances.

    Facco, d'Errico, Rodriguez & Laio, Sci. Rep. 7, 12140 (2017). The estimate
    is the inverse mean of log(second / first), over states whose nearest is not equal to them.
    """
    if len(points) < 3:
        return float(points.shape[1])
    asked = points[:: max(len(points) // _ASKED, 1)].astype(np.float64)
    cloud = points.astype(np.float64)
    squared = np.zeros((len(asked), len(cloud)))
    for e in range(points.shape[1]):
        step = asked[:, e, None] - cloud[:, e]
        squared += step * step
    three = np.sqrt(np.partition(squared, 2, axis=1)[:, :3])
    three.sort(axis=1)  # the first is the state itself
    there = three[:, 1] > 0
    if there.sum() < 8:
        return 0.0
    mean = float(np.log(three[there, 2] / three[there, 1]).mean())
    return min(1.0 / mean if mean > 0 else np.inf, float(points.shape[1]))


def visited(n: int, k: int, dimension: float) -> float:
    """States that a k-d tree looks at for a query, roughly: a ball that holds k, and the cells around it.

    After Friedman, Bentley & Finkel, ACM TOMS 3, 209 (1977): ((k / b)^(1/D) + 1)^D cells of b states.
    """
    leaf = 16.0
    return float(min(leaf * ((k / leaf) ** (1 / max(dimension, 0.5)) + 1) ** max(dimension, 0.5), n))


def seconds(rates: Rates, n: int, queries: int, E: int, k: int, dimension: float) -> dict[str, float]:
    """Estimated seconds of each search."""
    tree = rates.tree_build * n * np.log2(max(n, 2)) + queries * (
        rates.tree_query + rates.tree_visit * (E + k / 4) * visited(n, k, dimension)
    )
    return {"exact": n * queries * (rates.pair + rates.lag * E), "kdtree": float(tree)}


def cheapest(
    info: DeviceInfo, search: Search, n: int, queries: int, sample: Callable[[int], NDArray[Any]] | None = None,
    share: Callable[[], float] | None = None,
) -> Decision:  # fmt: skip
    """The search with the lowest estimate; the exhaustive one wins ties.

    Parameters
    ----------
    info : DeviceInfo
    search : Search
        Of one dimension.
    n, queries : int
        States and queries.
    sample : callable, optional
        Gives about so many states, for the probe of their dimension; it runs only where a tree may pay.
    share : callable, optional
        Gives the share of pairs that the pruned search would compute; None where it cannot be used.
    """
    if share is not None:
        least = _PRUNED_LEAST[quirks_for(info).device_class]
        if min(n, queries) < least:
            return Decision("exact", f"{n:,} states and {queries:,} queries; pruning pays from {least:,} on")
        part = share()
        name = "pruned" if part * _PRUNED_PAIR < _MARGIN else "exact"
        return Decision(name, f"pruning would compute {part:.1%} of all pairs, each {_PRUNED_PAIR:g} times as slowly")
    if importlib.util.find_spec("scipy") is None:
        return Decision("exact", "scipy, which the k-d tree needs, is not installed")
    E, k = search.dims[0], search.counts[0]
    rates = SHIPPED[quirks_for(info).device_class]
    best = seconds(rates, n, queries, E, k, 1.0)
    if best["kdtree"] >= _MARGIN * best["exact"]:
        why = f"{n:,} states: estimated {best['exact']:.2g} s, a tree at best {best['kdtree']:.2g} s"
        return Decision("exact", why)
    dimension = float(E) if sample is None else intrinsic_dimension(sample(_PROBED))
    cost = seconds(rates, n, queries, E, k, dimension)
    name = "kdtree" if cost["kdtree"] < _MARGIN * cost["exact"] else "exact"
    other = "exact" if name == "kdtree" else "kdtree"
    return Decision(
        name, f"intrinsic dimension {dimension:.1f}: estimated {cost[name]:.2g} s, {other} {cost[other]:.2g} s"
    )
