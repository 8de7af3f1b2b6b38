"""The searcher that decides for each library and dimension which search finds its neighbours."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..device.memory import budget
from ..errors import DeviceMemoryError
from ..launch.pool import Pool
from .choose import SearchRequest, decide
from .costs import SearchDecision
from .exhaustive import ExhaustiveSearcher
from .indexed import IndexedSearcher
from .library_searcher import LibrarySearcher, NotSearchedError
from .patience import Patience
from .plan import KnnPass, SearchProblem
from .pruned import PrunedSearcher
from .recall import Measured
from .records import add, record
from .series import LibraryStates, SearchSeries
from .shared_sums import SharedSumsSearcher, shared_sums_pay
from .tables import Tables

if TYPE_CHECKING:
    from ..device.executor import Executor
    from ..launch.staging import Staging

Mask = NDArray[np.bool_]


class SelectingSearcher:
    """All nearest neighbours by whichever search suits, library by library.

    Libraries that are to be searched exhaustively are so in as few launches as may be, in all dimensions of a pass.

    Parameters
    ----------
    executor : Executor
    problem : SearchProblem
    emit : str
        "neighbours" or "weights".
    request : SearchRequest
    **options
        Of :class:`~pyedmcl.neighbors.tables.TableSpace`.

    Attributes
    ----------
    decisions : list of dict
        What ran for each library and dimension, why, and its recall; equal ones once. Where the request leaves the
        choice, of the libraries of one dimension that were searched alike the first.
    """

    def __init__(
        self, executor: Executor, problem: SearchProblem, emit: str, request: SearchRequest, **options: Any
    ) -> None:
        self.executor, self.problem, self.request = executor, problem, request
        self.decisions: list[dict[str, Any]] = []
        self._exhaustive = ExhaustiveSearcher(executor, problem, emit, **options)
        self._pool = Pool(executor)  # for candidates of an index
        self._orders = Pool(executor)  # for the pruned search
        room = options.get("room")
        self._room = (budget(executor.info).total if room is None else room) // 4
        self._libraries = max(options.get("data_bytes", 0) // (problem.n_library * problem.itemsize), 1)
        self._patience: dict[tuple[int, ...], Patience] = {}

    @property
    def parameters(self) -> dict[str, Any]:
        """Tuned parameters of the exhaustive search."""
        return self._exhaustive.parameters

    @property
    def grade(self) -> str:
        return self._exhaustive.grade

    def sure_passes(self, n_libraries: int) -> list[tuple[KnnPass, int]]:
        """None: what searches is decided by the data."""
        return []

    def load(self, data: Staging, a: int, b: int, query: Staging | None = None) -> SearchSeries:
        """Put series a to b of ``data`` on the device, with their queries where these are other series."""
        return self._exhaustive.load(data, a, b, query)

    def load_layouts(self, library: NDArray[Any], query: NDArray[Any]) -> SearchSeries:
        """Upload series that are in the layout of the search already; the same object where both are alike."""
        return self._exhaustive.load_layouts(library, query)

    def tables(self, series: SearchSeries, library_mask: Mask | None = None) -> Iterator[Tables]:
        """Tables of each pass in turn; see :class:`ExhaustiveSearcher`."""

        def fill(tables: Tables) -> None:
            search = self._fastest if self.request.chooses else self._asked_for
            left = [p for p in range(tables.n_libraries) if not search(tables, series, p, library_mask)]
            for part in _runs(left):
                self._exhaustive.fill(tables, series, library_mask, part)

        return self._exhaustive.space.tables(series.n, fill)

    def _asked_for(self, tables: Tables, series: SearchSeries, place: int, library_mask: Mask | None) -> bool:
        """Write the tables of one library by the search that was asked for; False: by the exhaustive one."""
        return all(self._named(tables, series, place, E, library_mask) for E in tables.problem.dims)

    def _named(self, tables: Tables, series: SearchSeries, place: int, E: int, library_mask: Mask | None) -> bool:
        states = series.states(tables.first + place, E, library_mask)
        decision = decide(
            self.request, self.executor.info, states.problem, len(states.library.rows), len(states.query.rows)
        )
        return self._run(self._searcher(decision, states), tables, place, E, decision)

    def _fastest(self, tables: Tables, series: SearchSeries, place: int, library_mask: Mask | None) -> bool:
        """Write the tables of one library by what is estimated to be the fastest; False: by the exhaustive search."""
        problem, info = tables.problem, self.executor.info
        *others, largest = problem.dims
        patience = self._patience.setdefault(problem.dims, Patience(self._libraries))
        if not patience.due() and not shared_sums_pay(info, self.problem, problem.n_library, problem.n_query):
            return False
        states = series.states(tables.first + place, largest, library_mask)
        pruned = PrunedSearcher(self.executor, states, room=self._room, pool=self._orders)
        decision = decide(
            self.request, info, problem, len(states.library.rows), len(states.query.rows), states.library.sample,
            pruned.probe, together=tables.n_libraries, informed=patience.informed,
        )  # fmt: skip
        patience.heard(decision.search != "exhaustive")
        # In the order that the probe made, before another dimension's takes its place.
        searcher = pruned if decision.search == "pruned" else self._searcher(decision, states)
        if not self._run(searcher, tables, place, largest, decision):
            for E in others:
                self._note(E, SearchDecision("exhaustive", decision.why))
            return False
        for E in others:
            more = PrunedSearcher(
                self.executor, series.states(tables.first + place, E, library_mask), room=self._room, pool=self._orders
            )
            if not self._run(more, tables, place, E, decision):
                return False
        return True

    def _searcher(self, decision: SearchDecision, states: LibraryStates) -> LibrarySearcher | None:
        """What searches one library; None for the exhaustive search."""
        if decision.search == "pruned":
            return PrunedSearcher(self.executor, states, pool=self._orders)
        if decision.search != "exhaustive":
            return IndexedSearcher(self.executor, states, decision.search, self.request.recall, self._pool)
        if shared_sums_pay(self.executor.info, self.problem, len(states.library.rows), len(states.query.rows)):
            return SharedSumsSearcher(self.executor, states)
        return None

    def _run(
        self, searcher: LibrarySearcher | None, tables: Tables, place: int, E: int, decision: SearchDecision
    ) -> bool:
        """Write the table of one library and dimension, if the search can, and keep how that went."""
        if searcher is None:
            self._note(E, decision)
            return False
        try:
            outcome = searcher.fill(tables, place)
        except NotSearchedError as reason:
            self._note(E, SearchDecision("exhaustive", str(reason) or decision.why), reason.measured)
            return False
        except DeviceMemoryError as error:
            self._orders.release()
            if not self.request.chooses:
                raise
            self._note(E, SearchDecision("exhaustive", f"the {decision.search} search does not fit: {error}"))
            return False
        finally:
            searcher.release()
        why = f"{decision.why}; {outcome.remark}" if outcome.remark else decision.why
        self._note(E, SearchDecision(decision.search, why), outcome.measured)
        return True

    def _note(self, E: int, decision: SearchDecision, measured: Measured | None = None) -> None:
        """Keep what searches a library, for the result to tell."""
        noted = any((one["E"], one["used"]) == (E, decision.search) for one in self.decisions)
        if not (self.request.chooses and noted):
            add(self.decisions, [record(E, self.request, decision, measured)])

    def spare(self) -> None:
        """Give back the memory that nothing but a running search needs; tables stay."""
        self._pool.release()
        self._orders.release()

    def release(self) -> None:
        """Give all device memory of the search back."""
        self.spare()
        self._exhaustive.release()


def _runs(places: Iterable[int]) -> Iterator[range]:
    """Ascending places as ranges without a gap."""
    run: range | None = None
    for place in places:
        if run is not None and place == run.stop:
            run = range(run.start, place + 1)
            continue
        if run is not None:
            yield run
        run = range(place, place + 1)
    if run is not None:
        yield run
