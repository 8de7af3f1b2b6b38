"""What searches cost, roughly, and which is the cheapest: the rule behind neighbors="auto"."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DeviceMemoryError
from .plan import Search
from .rates import Known, Rates, has_tree, least_share, rates_of
from .shared_sums import pays

if TYPE_CHECKING:
    from ..device.info import DeviceInfo

_PROBED, _ASKED = 4096, 256
_MARGIN = 0.9  # the exhaustive search wins ties, and estimates are no better than this
_PROBE_MOST = 0.25  # of the exhaustive search: what may be lost by a probe that finds that nothing can be pruned


@dataclass(frozen=True)
class Decision:
    """Which search runs, and why."""

    search: str
    why: str


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


def cheapest(
    info: DeviceInfo, search: Search, n: int, queries: int, sample: Callable[[int], NDArray[Any]] | None = None,
    share: Callable[[float], float] | None = None,
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
        Gives the share of pairs that the pruned search would compute; None where it cannot be used. Its argument is the
        share from which on pruning does not pay, beyond which it need not look. It runs only where pruning may pay,
        and may raise DeviceMemoryError.
    """
    known = rates_of(info)
    if share is not None:
        try:
            return _pruned_or_exact(known, search, n, queries, share, pays(info, search, n, queries))
        except DeviceMemoryError as error:
            other = _tree_or_exact(known, search, n, queries, sample)
            return Decision(other.search, f"the pruned search does not fit the device ({error}); {other.why}")
    return _tree_or_exact(known, search, n, queries, sample)


def surely_exact(info: DeviceInfo, search: Search) -> Decision | None:
    """The decision for a search of one dimension among delays, where no look at the data is needed: exact, or None."""
    n, queries = search.n_library, search.n_query
    if pays(info, search, n, queries):
        return None
    known = rates_of(info)
    exact = known.rates.exact(n, queries, search.dims[0], search.counts[0])
    return _not_worth_it(known, search, n, queries, exact)


def _not_worth_it(known: Known, search: Search, n: int, queries: int, exact: float) -> Decision | None:
    """Exact search where pruning costs as much at best; None where that depends on the data."""
    rates, E, k = known.rates, search.dims[0], search.counts[0]
    least = least_share(n, k)
    best = rates.order(n, E) + rates.probe(n, queries, E, k, least) + rates.walk(n, queries, E, k, least)
    if best < _MARGIN * exact:
        return None
    return Decision("exact", f"{_size(n, queries)}: {_estimates(known, exact=exact)}, pruned {_seconds(best)} at best")


def _pruned_or_exact(
    known: Known, search: Search, n: int, queries: int, share: Callable[[float], float], shared: bool
) -> Decision:
    rates, E, k = known.rates, search.dims[0], search.counts[0]
    exact, order = rates.exact(n, queries, E, k, shared), rates.order(n, E)
    decision = _not_worth_it(known, search, n, queries, exact)
    if decision is not None:
        return decision
    hopeless = _break_even(rates, n, queries, E, k, _MARGIN * exact)
    # Numbers can always be put in order; of states of several lags it may be that none can be left out.
    probe = order + rates.probe(n, queries, E, k, min(2 * hopeless, 1.0) if E > 1 else least_share(n, k))
    if probe > _PROBE_MOST * exact:
        cost = f"up to {_seconds(probe)} to find out whether pruning pays"
        why = f"{_size(n, queries)}: {_estimates(known, exact=exact)}, and {cost}"
        return Decision("exact", why)
    part = share(hopeless)
    # The order is there now, whichever search uses it.
    walk = rates.walk(n, queries, E, k, part)
    name = "pruned" if walk < _MARGIN * exact else "exact"
    more = " or more" if part > hopeless else ""
    return Decision(
        name, f"pruning would compute {part:.1%}{more} of all pairs: {_estimates(known, exact=exact, pruned=walk)}"
    )  # fmt: skip


def _break_even(rates: Rates, n: int, queries: int, E: int, k: int, seconds: float) -> float:
    """The share of pairs at which the pruned search takes so many seconds, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(12):
        middle = (low + high) / 2
        low, high = (low, middle) if rates.walk(n, queries, E, k, middle) > seconds else (middle, high)
    return high


def _tree_or_exact(
    known: Known, search: Search, n: int, queries: int, sample: Callable[[int], NDArray[Any]] | None
) -> Decision:
    if not has_tree():
        return Decision("exact", "scipy, which the k-d tree needs, is not installed")
    rates, E, k = known.rates, search.dims[0], search.counts[0]
    exact, best = rates.exact(n, queries, E, k), rates.tree(n, queries, E, k, 1.0)
    if best >= _MARGIN * exact:
        return Decision("exact", f"{n:,} states: {_estimates(known, exact=exact)}, a tree {_seconds(best)} at best")
    dimension = float(E) if sample is None else intrinsic_dimension(sample(_PROBED))
    tree = rates.tree(n, queries, E, k, dimension)
    name = "kdtree" if tree < _MARGIN * exact else "exact"
    return Decision(name, f"intrinsic dimension {dimension:.1f}: {_estimates(known, exact=exact, kdtree=tree)}")


def _estimates(known: Known, **seconds: float) -> str:
    """What is estimated, and from which rates."""
    words = ", ".join(f"{name} {_seconds(value)}" for name, value in seconds.items())
    return f"estimated {words} (rates: {known.source})"


def _size(n: int, queries: int) -> str:
    return f"{n:,} states and {queries:,} queries"


def _seconds(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds >= 0.1 else f"{seconds * 1e3:.3g} ms"
