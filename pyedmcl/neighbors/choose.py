"""Which search finds the neighbours: what the caller asks for, and what "exact" makes of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from .costs import SearchDecision, cheapest, surely_exhaustive
from .plan import SearchProblem
from .shared_sums import shared_sums_pay

if TYPE_CHECKING:
    from ..device.info import DeviceInfo

SEARCHES = ("auto", "exact", "exhaustive", "kdtree", "ivf", "hnsw", "pruned")
#: Those that stand for the fastest of several. An approximate search would be a candidate of "auto" alone; so far none
#: was faster than the best exact one by the time that its recall had been shown.
CHOOSING = ("auto", "exact")
_LEAST = {"kdtree": 64, "pruned": 64, "ivf": 1024, "hnsw": 1024}  # states below which an index has nothing to leave out


@dataclass(frozen=True)
class SearchRequest:
    """What the caller asks for.

    Attributes
    ----------
    search : str
        One of :data:`SEARCHES`.
    recall : float
        Share of true neighbours that an approximate search must find.
    """

    search: str = "exact"
    recall: float = 0.99

    @property
    def chooses(self) -> bool:
        """Whether the fastest of the searches with the same bits is to be found out."""
        return self.search in CHOOSING


def decided_beforehand(request: SearchRequest, info: DeviceInfo, problem: SearchProblem) -> list[SearchDecision] | None:
    """Decisions for all dimensions where every one is to compare all pairs, whatever the data; else None.

    They are an empty list where there is nothing to tell.
    """
    if request.search != "exhaustive" and not request.chooses:
        return None
    if shared_sums_pay(info, problem, problem.n_library, problem.n_query):
        return None
    if request.search == "exhaustive":
        return []
    decisions = surely_exhaustive(info, problem)
    if any(decision is None for decision in decisions):
        return None
    return [] if request.search == "exact" else [d for d in decisions if d is not None]


def decide(
    request: SearchRequest, info: DeviceInfo, problem: SearchProblem, n_states: int, n_queries: int,
    sample: Callable[[int], NDArray[Any]] | None = None, probe: Callable[[float], float] | None = None, *,
    together: int = 1, informed: int = 1,
) -> SearchDecision:  # fmt: skip
    """The search for one library.

    Parameters
    ----------
    request : SearchRequest
    info : DeviceInfo
    problem : SearchProblem
        Of one dimension, or, where the request leaves the choice, of all that are searched together.
    n_states, n_queries : int
        Library rows and query rows that have a state.
    sample, probe, together, informed
        See :func:`~pyedmcl.neighbors.costs.cheapest`.
    """
    name, k = request.search, problem.ks[0]
    if request.chooses:
        probe = None if problem.coordinates else probe
        return cheapest(info, problem, n_states, n_queries, sample, probe, together=together, informed=informed)
    if name == "exhaustive":
        return SearchDecision("exhaustive", "asked for")
    if n_states < max(_LEAST[name], 2 * k):
        return SearchDecision("exhaustive", f"{n_states:,} states are too few for {name} with k = {k}")
    if name == "pruned" and problem.coordinates:
        return SearchDecision("exhaustive", "the pruned search takes delays of one series only")
    return SearchDecision(name, "asked for")
