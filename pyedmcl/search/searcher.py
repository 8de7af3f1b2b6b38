"""The searcher that a request gets: it decides for each library and dimension, or for windows that overlap."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..device.memory import budget
from ..device.quirks import quirks_for
from ..errors import DeviceMemoryError
from ..kernels import spec
from ..kernels.build import build
from ..launch.progress import report_part
from ..launch.staging import Pacer, Pool
from .choose import Patience, Record, SearchDecision, SearchRequest, add, decide, decided_beforehand, record
from .index import Measured
from .plan import KnnPass, SearchProblem
from .pruned import PrunedSearcher
from .searches import (
    ExhaustiveSearcher,
    IndexedSearcher,
    LibrarySearcher,
    NotSearchedError,
    SharedSumsSearcher,
    shared_sums_pay,
)
from .tables import LibraryStates, SearchSeries, Tables, TableSpace, lay_out

if TYPE_CHECKING:
    from ..device.executor import Executor
    from ..device.info import DeviceInfo
    from ..launch.staging import Staging


# The searcher that decides for each library and dimension which search finds its neighbours.


Mask = NDArray[np.bool_]


class SelectingSearcher:
    """All nearest neighbours by whichever search suits, library by library.

    Libraries that are to be searched exhaustively are so in as few launches as may be, in all dimensions of a pass.

    Parameters
    ----------
    emit : str
        "neighbours" or "weights".
    **options
        Of :class:`~pyedmcl.search.tables.TableSpace`.

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


class Searcher(Protocol):
    """Finds the neighbours of many libraries in several dimensions, and leaves them in tables on the device.

    Attributes
    ----------
    parameters : dict
        Tuned parameters.
    grade : str
        How well these are known to suit.
    decisions : list of dict
        What ran, why, and how good it was; see :mod:`pyedmcl.search.choose`.
    """

    @property
    def problem(self) -> SearchProblem: ...

    @property
    def parameters(self) -> dict[str, Any]: ...

    @property
    def grade(self) -> str: ...

    @property
    def decisions(self) -> list[dict[str, Any]]: ...

    def sure_passes(self, n_libraries: int) -> list[tuple[KnnPass, int]]:
        """Passes that will compare all pairs, whatever the data, each with how many libraries share its tables."""

    def load(self, data: Staging, a: int, b: int, query: Staging | None = None) -> SearchSeries:
        """Put series a to b of ``data`` on the device, with their queries where these are other series."""

    def load_layouts(self, library: NDArray[Any], query: NDArray[Any]) -> SearchSeries:
        """Upload series that are in the layout of the search already; the same object where both are alike."""

    def tables(self, series: SearchSeries, library_mask: NDArray[np.bool_] | None = None) -> Iterator[Tables]:
        """Tables of each pass in turn, each valid until the next. Raises DeviceMemoryError where they do not fit."""

    def spare(self) -> None:
        """Give back the memory that nothing but a running search needs; tables stay."""

    def release(self) -> None:
        """Give all device memory of the search back."""


def open_searcher(
    executor: Executor, problem: SearchProblem, emit: str, request: SearchRequest | None = None, **options: Any
) -> Searcher:
    """The searcher that ``request`` asks for.

    Parameters
    ----------
    emit : str
        "neighbours" or "weights".
    request : SearchRequest, optional
        All pairs are compared by default.
    **options
        Of :class:`~pyedmcl.search.tables.TableSpace`.
    """
    request = request or SearchRequest("exhaustive")
    decisions = sure_of(request, executor.info, problem)
    if decisions is None:
        return SelectingSearcher(executor, problem, emit, request, **options)
    searcher = ExhaustiveSearcher(executor, problem, emit, **options)
    searcher.decisions += [record(E, request, one) for E, one in zip(problem.dims, decisions, strict=False)]
    return searcher


def sure_of(
    request: SearchRequest | None, info: DeviceInfo, problem: SearchProblem
) -> tuple[SearchDecision, ...] | None:
    """Decisions where all pairs are compared whatever the data; else None. See :func:`~.choose.decided_beforehand`."""
    decided = decided_beforehand(request or SearchRequest("exhaustive"), info, problem)
    return None if decided is None else tuple(decided)


def searches_of(*searchers: Searcher) -> list[Record]:
    """What ran for each dimension, why, and how good it was; for a result's provenance."""
    records: list[Record] = []
    for searcher in searchers:
        add(records, searcher.decisions)
    return records


# Neighbours within windows that overlap: the distance of a pair of rows is found once for all windows that hold it.


_LANES = 16  # query rows of a work-item: a vector
_LEAST_OVERLAP = 4  # windows that hold a row
_MOST_NEIGHBORS = 12  # whose lists stay in registers
_KEPT_BYTES = 64 << 20
_GROUPS = 4  # for each core, so that they share the work evenly


@dataclass(frozen=True)
class Overlapping:
    """Rows of series, and windows along them."""

    # ndarray (n_rows, n_libraries). Conditioned; NaN for gaps, which lie in no window.
    values: NDArray[Any]
    # ndarray of int (n_windows,). First row of each window, ascending.
    starts: NDArray[np.int_]


def windows_share(
    info: DeviceInfo, problem: SearchProblem, request: SearchRequest, n_windows: int, n_rows: int
) -> bool:
    """Whether windows are better searched together than each by itself.

    On processors: 4.3 times as fast with Intel's runtime for 200 windows of 300 rows, 10 rows apart, E = 3, in turn. A
    query lies between the first and the last library row of each of its windows, hence Tp = 0.
    """
    if quirks_for(info).scalar_work_items or problem.Tp != 0 or problem.coordinates:
        return False
    if max(problem.ks) > _MOST_NEIGHBORS or n_windows * problem.n_library < _LEAST_OVERLAP * n_rows:
        return False
    return decided_beforehand(request, info, problem) == []


class WindowSearch:
    """Tables of all libraries of all windows: library i of window w has place w * n_libraries + i.

    Parameters
    ----------
    problem : SearchProblem
        Of one window.
    data_bytes : int
        Size of all windows together, as for :class:`~pyedmcl.search.tables.TableSpace`.
    """

    def __init__(
        self, executor: Executor, problem: SearchProblem, data: Overlapping, *, data_bytes: int, pool: Pool
    ) -> None:
        self._executor, self._problem, self._data, self._pool = executor, problem, data, pool
        self._data_bytes = data_bytes
        self._pacers = {E: Pacer(executor.info, "windows", E, problem.dtype) for E in problem.dims}
        n_rows = len(data.values)
        rows = SearchProblem(problem.dims, problem.ks, problem.tau, 0, -1, n_rows, n_rows, problem.dtype)
        self._front, self._stride = rows.front, rows.stride(n_rows)
        self._tiles = -(-n_rows // _LANES)
        values = lay_out(data.values, rows, n_rows, n_rows)
        held = pool.get("rows of windows", values.nbytes + 4 * _LANES * problem.itemsize)
        self._series = executor.upload(values, held)
        starts = np.ascontiguousarray(data.starts, np.int32)
        self._starts = executor.upload(starts, pool.get("starts of windows", starts.nbytes))
        self.parameters: dict[str, Any] = {}
        self.decisions: list[dict[str, Any]] = []

    def tables(self) -> Iterator[Tables]:
        """Tables of weights of each dimension in turn, of as many libraries as there is memory for."""
        n = len(self._data.starts) * self._data.values.shape[1]
        for E in self._problem.dims:
            space = TableSpace(
                self._executor, self._problem.restrict((E,)), "weights", data_bytes=self._data_bytes, pool=self._pool
            )
            self.parameters = space.parameters
            yield from space.tables(n, self._fill)

    def _fill(self, tables: Tables) -> None:
        """Write the tables of some libraries."""
        problem, knn_pass, n = tables.problem, tables.knn_pass, self._data.values.shape[1]
        E, k, width = problem.dims[0], problem.ks[0], problem.n_library
        lost = problem.first_state(E)
        # Only windows of which these tables hold libraries.
        held = tables.first // n, -(-(tables.first + tables.n_libraries) // n)
        cover = np.clip(self._cover(lost, width), *held).astype(np.int32)
        most = max(int((cover[:, 1] - cover[:, 0]).max()), 1)
        values = {"E": E, "tau": problem.tau, "k": k, "lanes": _LANES, "dtype": problem.dtype}
        kernel = build(self._executor, spec("window_knn"), values)
        list_bytes = most * 2 * k * _LANES * problem.itemsize
        limit = budget(self._executor.info)
        room = min(_KEPT_BYTES, limit.total // 8, limit.largest)
        groups = max(min(_GROUPS * self._executor.info.compute_units, room // list_bytes), 1)
        fixed: dict[str, Any] = {
            "series": self._series, "stride": self._stride, "front": self._front, "starts": self._starts,
            "width": width, "lost": lost, "radius": min(problem.exclusion_radius, width),
            "cover": self._executor.upload(cover, self._pool.get("cover of windows", cover.nbytes)),
            "n_tiles": self._tiles, "n_libraries": n, "first": tables.first,
            "last": tables.first + tables.n_libraries, "out_row": tables.rows, "out_value": tables.values,
            "table_begin": tables.begin(E), "table_rows": knn_pass.table_rows, "k_stride": knn_pass.stride(E),
            "tile": knn_pass.table_tile, "kept": self._pool.get("lists of windows", groups * list_bytes), "most": most,
        }  # fmt: skip
        tasks, pacer, begin = n * self._tiles, self._pacers[E], 0
        cost = _LANES * (2.0 * width * (2 * E + 3) + most * 12.0 * k)
        while begin < tasks:
            end = min(begin + max(pacer.units(cost), groups), tasks)
            event = self._executor.launch(
                kernel, (min(groups, end - begin),), (1,), task_begin=begin, task_end=end, **fixed
            )  # fmt: skip
            pacer.launched(event, cost * (end - begin))
            report_part(end, tasks, self._tiles * _LANES, begin)
            begin = end

    def _cover(self, lost: int, width: int) -> NDArray[np.int_]:
        """Of each tile of rows the first window that holds one of its states, and one past the last."""
        starts, t0 = self._data.starts, np.arange(self._tiles) * _LANES
        first = np.searchsorted(starts, t0 - width, side="right")
        last = np.searchsorted(starts, t0 + _LANES - 1 - lost, side="right")
        return np.stack([first, np.maximum(last, first)], axis=1)
