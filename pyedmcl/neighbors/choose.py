"""Which search finds the neighbours: what the caller asks for, and what "auto" makes of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from .coordinates import CoordinateSearch
from .costs import Decision, cheapest, surely_exact
from .exact import ExactSearch
from .index import Index, KDTree
from .plan import Search
from .shared_sums import pays

if TYPE_CHECKING:
    from ..device.executor import Executor
    from ..device.info import DeviceInfo

SEARCHES = ("auto", "exact", "kdtree", "ivf", "hnsw", "pruned")
_LEAST = {"kdtree": 64, "pruned": 64, "ivf": 1024, "hnsw": 1024}  # states below which an index has nothing to leave out


@dataclass(frozen=True)
class Choice:
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


def decide(
    choice: Choice, info: DeviceInfo, search: Search, n_states: int, n_queries: int, delays: bool,
    sample: Callable[[int], NDArray[Any]] | None = None, share: Callable[[float], float] | None = None,
) -> Decision:  # fmt: skip
    """The search for one library and dimension.

    Parameters
    ----------
    choice : Choice
    info : DeviceInfo
    search : Search
        Of one dimension.
    n_states, n_queries : int
        Library states and queries that there are.
    delays : bool
        Whether states are delays of one series, as the pruned search needs.
    sample : callable, optional
        Gives about so many of the states.
    share : callable, optional
        Gives the share of pairs that the pruned search would compute, as far as that is below its argument.
    """
    name, k = choice.search, search.counts[0]
    if name == "auto":
        return cheapest(info, search, n_states, n_queries, sample, share if delays else None)
    if name == "exact":
        return Decision("exact", "asked for")
    if n_states < max(_LEAST[name], 2 * k):
        return Decision("exact", f"{n_states:,} states are too few for {name} with k = {k}")
    if name == "pruned" and not delays:
        return Decision("exact", "the pruned search takes delays of one series only")
    return Decision(name, "asked for")


def make_index(name: str, points: NDArray[Any]) -> Index:
    """Build an index of states (n, E). Raises MissingExtraError where its package is not there."""
    if name == "kdtree":
        return KDTree(points)
    from . import index_faiss

    return index_faiss.InvertedLists(points) if name == "ivf" else index_faiss.Graph(points)


def engine(executor: Executor, search: Search, emit: str, choice: Choice | None = None, **options: Any) -> ExactSearch:
    """The search that ``choice`` asks for; see :class:`ExactSearch` for the other parameters."""
    choice = choice or Choice()
    one = len(search.dims) == 1
    if choice.search == "exact" and not (one and pays(executor.info, search, search.n_library, search.n_query)):
        return ExactSearch(executor, search, emit, **options)
    if choice.search == "auto" and not isinstance(search, CoordinateSearch):
        sure = [(E, surely_exact(executor.info, search.restrict((E,)))) for E in search.dims]
        if all(decision is not None for _, decision in sure):
            from .searched import record

            found = ExactSearch(executor, search, emit, **options)
            found.decisions = [record(E, choice, decision) for E, decision in sure if decision is not None]
            return found
    from .indexed import IndexedSearch

    return IndexedSearch(executor, search, emit, choice, **options)


def report(*engines: ExactSearch) -> list[dict[str, Any]]:
    """What ran for each dimension, why, and how good it was; for a result's provenance."""
    found: list[dict[str, Any]] = []
    for one in engines:
        for record in one.decisions:
            if record not in found:
                found.append(record)
    return found
