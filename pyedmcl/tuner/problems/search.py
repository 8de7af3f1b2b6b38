"""Tuning problems of the searches for neighbours."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...device.executor import Executor
from ...device.info import DeviceInfo
from ...kernels.kernel_spec import Constraint
from ...kernels.texts import GAP, NOWHERE
from ...launch.staging import Pool, Staging
from ...reference import simplex_weights
from ...search.plan import SearchProblem
from ...search.pruned import FAN, LEAST_PER_COUNTER, Order, Orderer, PrunedSearcher
from ...search.rates import PrincipalAxes, principal_axes
from ...search.searches import ExhaustiveSearcher, SharedSumsSearcher
from ...search.tables import DeviceSeries, HostSeries, HostStates, load_states, rows_with_states
from ...states.rows import library_mask_of
from ..problem import (
    Answer,
    Close,
    Floats,
    OneWayProblem,
    SmallSearch,
    TuningCase,
    TuningProblem,
    WrongAnswerError,
    exact_knn,
    flow,
    maps,
    ragged,
    releasing,
    scalar,
    units,
    up_to,
)

# Tuning problem of the neighbour search: tables of many libraries, one dimension or many at once.


_ALL = tuple(range(1, 21))
# Steps of a series, and how many times the neighbours of a simplex its lists hold, from which cross mapping with
# sub-libraries draws.
_LISTED = 4000, 24
_LONG = 1 << 17  # in the middle of what rounds to one size
_SHOWN = 2  # libraries whose tables are compared
_NO_WEIGHT = 1e-30  # below it a place counts as empty, whatever row it names


class KnnProblem(OneWayProblem):
    """All-kNN with simplex weights, as the cross map asks for it."""

    kernel = "knn"
    # Rows are compared to the last bit; a weight is an exponential, which vectors may round otherwise than scalars.
    tolerance = (1e-5, 1e-7)
    constraints = (
        Constraint(
            lambda v: v["lanes"] == 1 or v["wg"] == 1,
            "work-items of several lanes store whole vectors of weights, and those past the last row do so, too",
        ),
    )

    def wanted(self, mode: str, info: DeviceInfo) -> list[Mapping[str, Any]]:
        # Series and steps of common jobs, one for each size bucket.
        jobs = ((2000, 3780), (1000, 8528), (154, 1600), (8000, 96)) if scalar(info) else (
            (1000, 1000), (82, 4000), (8000, 96))  # fmt: skip
        common = [(series, rows, dims) for series, rows in jobs for dims in ((3,), _ALL)]
        # Long lists, and a single long series, are searched with other parameters.
        alone = [(2000, 3780, (20,)), (1, _LONG, (3,)), (1, _LONG, (20,))] if scalar(info) else []
        normal = [{"job": series, "rows": rows, "dims": dims} for series, rows, dims in (*common, *alone)]
        normal.append({"job": 2, "rows": _LISTED[0], "dims": (3,), "simplexes": _LISTED[1]})
        rare: list[dict[str, Any]] = [{"dims": dims} for dims in ((10,), (2, 5, 8))]
        rare += [{"dims": dims, "dtype": "float64"} for dims in ((3,), _ALL)]
        return up_to(mode, normal[:2], normal[2:], [{"rows": jobs[0][1], **numbers} for numbers in rare])

    def like(self, specialisation: Mapping[str, Any], sizes: Mapping[str, int], info: DeviceInfo) -> TuningCase | None:
        s, dims = specialisation, tuple(int(E) for E in specialisation.get("dims", ()))
        most = 16384 if scalar(info) else 4096  # a search grows with the square
        rows = min(int(sizes.get("rows", 0)), most)
        library = min(int(sizes.get("library", rows)), most)
        if not dims or min(rows, library) <= (max(dims) - 1) * int(s.get("tau", 1)) + 2:
            return None
        return self.case(info, dims=dims, rows=rows, dtype=s["dtype"], tau=int(s["tau"]), library=library,
                         simplexes=int(s.get("simplexes", 1)))  # fmt: skip

    def case(
        self, info: DeviceInfo, *, dims: Sequence[int], rows: int, dtype: str = "float32", tau: int = 1,
        library: int = 0, simplexes: int = 1, job: int = 0,
    ) -> TuningCase:  # fmt: skip
        """A case of ``rows`` rows; of a ``job`` of that many series, its working memory, and some of its libraries."""
        library = library or rows
        counts = [min(simplexes * (E + 1), library) for E in dims]
        # Pairs, and neighbours to sort: some tens of milliseconds of them on a processor, some milliseconds on a GPU.
        cost = rows * (library * (max(dims) + len(dims)) + 600.0 * sum(counts))
        libraries = max(min(int(units(info, 500, 1200, 1 << 30) * 1e6 / cost), 4096), 2)
        if job:
            libraries = min(libraries, job)
        return self.named(
            f"E={dims[0]}" if len(dims) == 1 else f"E={dims[0]}..{dims[-1]}",
            "" if simplexes == 1 else f"k={counts[0]}", f"{libraries} x {rows}",
            rows=rows, library=library, libraries=libraries, job=job,
            given={"dims": list(dims), "counts": counts, "tau": tau, "dtype": dtype},
        )  # fmt: skip

    def usual(self, case: TuningCase) -> SmallSearch:
        n = case.numbers
        values = maps(max(n["rows"], n["library"]), n["libraries"], case.given["dtype"])
        query = None if n["rows"] == n["library"] else values[: n["rows"]]
        return SmallSearch(values[: n["library"]], query, radius=0 if query is None else -1, shown=_SHOWN)

    def ragged(self, case: TuningCase) -> Iterator[tuple[str, Any]]:
        front = (max(case.given["dims"]) - 1) * case.given["tau"]
        for number, small in enumerate(ragged(front, case.given["dtype"])):
            yield f"{len(small.library)} library rows (problem {number})", small

    @contextmanager
    def session(self, executor: Executor, case: TuningCase, small: SmallSearch) -> Iterator[Callable[[], Answer]]:
        """Tables of weights are stored in another way than those of distances: both are verified, one is timed."""
        g, x = case.given, small.library
        # Gaps of the target rule out rows; both series have theirs at the same places.
        mask = library_mask_of(x[:, 0], small.Tp) if small.Tp else None
        problem = SearchProblem(tuple(g["dims"]), tuple(g["counts"]), g["tau"], small.Tp, small.radius, len(x),
                                len(small.asked), g["dtype"])  # fmt: skip
        kinds = ("weights",) if small.shown else ("neighbours", "weights") if mask is None else ("neighbours",)
        # Working memory as the whole job would have it.
        nbytes = max(case.numbers["job"] * len(x) * x.itemsize, x.nbytes)
        searchers = [ExhaustiveSearcher(executor, problem, kind, data_bytes=nbytes) for kind in kinds]
        data, query = Staging(executor, x), None if small.query is None else Staging(executor, small.query)

        def go() -> Answer:
            answer: dict[str, NDArray[Any]] = {}
            for kind, searcher in zip(kinds, searchers, strict=True):
                for tables in searcher.tables(searcher.load(data, 0, x.shape[1], query), mask):
                    for E in _compared(small, tables.problem.dims, case) if not tables.first else ():
                        rows, values = tables.read(executor, E, min(small.shown or x.shape[1], x.shape[1]))
                        if kind == "neighbours":
                            values[rows < 0] = np.inf
                            answer[f"neighbours for E={E}"], answer[f"squared distances for E={E}"] = rows, values
                        else:
                            answer[f"weights for E={E}"] = values
                            answer[f"neighbours with weights for E={E}"] = np.where(values < _NO_WEIGHT, -1, rows)
            executor.finish()
            return answer

        with releasing(query, data, *searchers):
            yield go

    def expected(self, case: TuningCase, small: Any) -> Mapping[str, NDArray[Any] | Close]:
        g, exact = case.given, exact_knn(case.given["dtype"])
        right: dict[str, NDArray[Any] | Close] = {}
        for E in _compared(small, g["dims"], case):
            tables = [
                exact(small.library[:, which], E=E, tau=g["tau"], k=g["counts"][list(g["dims"]).index(E)], Tp=small.Tp,
                      exclusion_radius=small.radius,
                      query=None if small.query is None else small.query[:, which])
                for which in range(2)
            ]  # fmt: skip
            squared, rows = (np.array(parts) for parts in zip(*tables, strict=True))
            # The device writes 0 in rows without neighbours, where the oracle has NaN.
            weights = np.nan_to_num([simplex_weights(np.sqrt(part.astype(np.float64))) for part in squared])
            right |= {
                f"neighbours for E={E}": rows, f"squared distances for E={E}": squared,
                f"weights for E={E}": Close(weights, 1e-4, 1e-6),
                f"neighbours with weights for E={E}": np.where(weights < _NO_WEIGHT, -1, rows),
            }  # fmt: skip
        return right


def _compared(small: SmallSearch, dims: Sequence[int], case: TuningCase) -> list[int]:
    """Dimensions that are compared: all of the smallest problem, else the first, a middle and the last one."""
    every = case.given["dims"]
    chosen = (every[0], every[len(every) // 2], every[-1]) if small.Tp else every
    return [E for E in dims if E in chosen]


KNN_PROBLEMS = (KnnProblem(),)


# Tuning problems of searches in one series: a smooth one is timed, and what may go wrong is verified.


_SEARCHES_SHOWN = 4096  # rows of an answer
#: Entry points of the program that puts states into an order, as they run.
ORDER_ENTRIES = (
    "project", "axes_of", "keys_of", "count", "scan", "scatter", "gather", "leaf_boxes", "upper_boxes",
)  # fmt: skip
_SIDE = 8  # of a square of pairs that share sums


def small_searches(front: int, dtype: str, own: bool) -> list[SmallSearch]:
    """Noise, a smooth series with gaps and masked rows, ties by the dozen, nothing but ties, a tree of some levels.

    Parameters
    ----------
    front : int
        Steps that the oldest lag reaches back.
    own : bool
        Whether the series asks among its own rows, less an exclusion radius; else mostly another one asks.
    """
    rng = np.random.default_rng(11)
    noise = rng.standard_normal(front + 47).astype(dtype)
    gappy = flow(front + 1203, dtype).copy()
    gappy[[front + 5, front + 90, front + 91, front + 700]] = np.nan
    ties = rng.integers(0, 4, front + 333).astype(dtype)
    level = np.full(front + 90, 2.0, dtype)
    may = rng.random(len(gappy)) < 0.6
    if own:
        query_mask = rng.random(len(gappy)) < 0.4
        deep = flow(front + 2301, dtype, 0.0)
        return [SmallSearch(noise), SmallSearch(gappy, None, 2, 3, may, query_mask), SmallSearch(ties, None, -2),
                SmallSearch(level, None, 0, 5), SmallSearch(deep, None, 0, 10)]  # fmt: skip
    others = flow(front + 5600, dtype, 0.001)
    return [SmallSearch(noise, None, 0, -1), SmallSearch(gappy, others[: front + 203], 2, -1, may),
            SmallSearch(ties, rng.integers(0, 4, front + 77).astype(dtype), -2, -1),
            SmallSearch(level, level[: front + 31], 0, -1),
            SmallSearch(others[: front + 5011], others[-front - 101 :], 0, -1)]  # fmt: skip


class StatesProblem(OneWayProblem):
    """Neighbours of all states of one series, or of those of another one among them."""

    searcher: ClassVar[type[PrunedSearcher] | type[SharedSumsSearcher]]

    @abstractmethod
    def steps(self, info: DeviceInfo) -> int:
        """Of a common problem."""

    def case(
        self, info: DeviceInfo, rows: int = 0, *, E: int, k: int = 0, tau: int = 1, dtype: str = "float32",
        own: bool = True, library: int = 0, times: float = 1, **given: Any,
    ) -> TuningCase:  # fmt: skip
        """Neighbours for ``rows`` steps, or ``times`` the common number; its own, or among ``library`` others."""
        rows, k = rows or int(self.steps(info) * times), k or E + 1
        library = library or rows
        return self.named(
            f"E={E}", f"{rows:,} steps" if own else f"{rows:,} steps in {library:,} others", f"k={k}" * (k != E + 1),
            f"tau={tau}" * (tau != 1), rows=rows, library=rows if own else library, own=own,
            given={"E": E, "tau": tau, "k": k, "dtype": dtype, **given},
        )  # fmt: skip

    def asked(self, s: Mapping[str, Any], sizes: Mapping[str, int], most: int) -> dict[str, Any]:
        """What :meth:`case` is given for what an engine asks."""
        least = 64 + (int(s["E"]) - 1) * int(s["tau"])
        steps = {name: min(max(int(sizes.get(name, 0)), least), most) for name in ("rows", "library")}
        return {**steps, **{name: int(s[name]) for name in ("E", "k", "tau")}, "dtype": s["dtype"]}

    def usual(self, case: TuningCase) -> SmallSearch:
        n = case.numbers
        x = flow(n["library"] + n["rows"] * (not n["own"]), case.given["dtype"])
        query = None if n["own"] else x[n["library"] :]
        return SmallSearch(
            x[: n["library"]], query, radius=0 if n["own"] else -1, shown=min(n["rows"], _SEARCHES_SHOWN)
        )

    def ragged(self, case: TuningCase) -> Iterator[tuple[str, Any]]:
        g = case.given
        for number, small in enumerate(small_searches((g["E"] - 1) * g["tau"], g["dtype"], case.numbers["own"])):
            yield f"{len(small.asked)} rows among {len(small.library)} (problem {number})", small

    @contextmanager
    def session(self, executor: Executor, case: TuningCase, small: SmallSearch) -> Iterator[Callable[[], Answer]]:
        g, pool, shape = case.given, Pool(executor), (small.shown or len(small.asked), case.given["k"])
        size = len(small.library), len(small.asked)
        problem = SearchProblem((g["E"],), (g["k"],), g["tau"], small.Tp, small.radius, *size, g["dtype"])

        def go() -> Answer:
            states = load_states(executor, problem, pool, small.library, small.query, library_mask=small.library_mask,
                                 query_mask=small.query_mask)  # fmt: skip
            lists = self.searcher(executor, states, pool=pool).find()
            rows = executor.download(lists.rows, np.empty(shape, np.int32))
            squared = executor.download(lists.values, np.empty(shape, g["dtype"]))
            return {"neighbours": rows, "squared distances": squared}

        with releasing(pool):
            yield go

    def expected(self, case: TuningCase, small: SmallSearch) -> Answer:
        """Squared distances and rows as the searchers write them."""
        g = case.given
        # The searchers know targets by the library mask alone, so this one has no gaps.
        squared, rows = exact_knn(g["dtype"])(
            small.library, E=g["E"], tau=g["tau"], k=g["k"], Tp=small.Tp, exclusion_radius=small.radius,
            query=small.query, target=np.zeros(len(small.library)), library_mask=small.library_mask,
        )  # fmt: skip
        if small.query_mask is not None:
            rows[~small.query_mask] = -1
        nowhere = np.dtype(g["dtype"]).type(NOWHERE)
        return {"neighbours": rows, "squared distances": np.where(rows < 0, nowhere, squared).astype(g["dtype"])}


class PrunedProblem(StatesProblem):
    """Order and walk, since the states of a leaf change both.

    The series is smooth: of noise nearly all pairs are looked at, and nobody takes this search.
    """

    kernel, searcher = "pruned", PrunedSearcher
    entries = ("pruned", *ORDER_ENTRIES)
    rapid = ({"E": 3},)
    normal = ({"E": 1}, {"E": 6}, {"E": 20}, {"E": 3, "times": 1 / 8})
    exhaustive = ({"E": 3, "own": False, "excluding": False}, {"E": 20, "times": 1 / 8}, {"E": 3, "dtype": "float64"},
                  {"E": 20, "dtype": "float64"})  # fmt: skip

    def steps(self, info: DeviceInfo) -> int:
        return units(info, 30_000, 8_000, most=1 << 20)

    def case(self, info: DeviceInfo, rows: int = 0, *, excluding: bool = True, **more: Any) -> TuningCase:
        return super().case(info, rows, **more, excluding=excluding)

    def like(self, specialisation: Mapping[str, Any], sizes: Mapping[str, int], info: DeviceInfo) -> TuningCase | None:
        excluding = bool(specialisation["excluding"])
        return self.case(info, **self.asked(specialisation, sizes, 1 << 20), own=excluding, excluding=excluding)


class SharedSumsProblem(StatesProblem):
    """The sweep over all pairs that shares sums along diagonals: neighbours of states of many dimensions."""

    kernel, searcher = "shared_sums", SharedSumsSearcher
    rapid = ({"E": 20},)
    exhaustive = ({"E": 20, "own": False}, {"E": 20, "dtype": "float64"})

    def steps(self, info: DeviceInfo) -> int:
        return units(info, 4_000, 1_000, most=1 << 17)  # pairs grow with the square

    def case(self, info: DeviceInfo, rows: int = 0, *, E: int, **more: Any) -> TuningCase:
        return super().case(info, rows, E=E, **more, side=min(_SIDE, E))

    def wanted(self, mode: str, info: DeviceInfo) -> list[Mapping[str, Any]]:
        # A million states want other groups than a hundred thousand.
        longer = [{"E": 20, "times": 8}] if scalar(info) else []
        return up_to(mode, self.rapid, [{"E": 8}, {"E": 20, "times": 1 / 4}, *longer], self.exhaustive)

    def like(self, specialisation: Mapping[str, Any], sizes: Mapping[str, int], info: DeviceInfo) -> TuningCase | None:
        numbers = self.asked(specialisation, sizes, 1 << (17 if scalar(info) else 14))
        return self.case(info, **numbers, own=numbers["rows"] == numbers["library"])


SEARCHES_PROBLEMS = (PrunedProblem(), SharedSumsProblem())


# Tuning problem of putting states into an order in space, with boxes around leaves of them.


class OrderProblem(TuningProblem):
    """Rounds of counting sorts, and boxes level by level."""

    kernel, entries = "pruned_order", ORDER_ENTRIES
    constraints = (
        Constraint(
            lambda v: v["wg"] * v["each"] >= LEAST_PER_COUNTER << v["bits"],
            "counters of all parts take half a byte per state at most, as memory is planned for",
        ),
    )

    def __init__(self) -> None:
        super().__init__()
        self._search = PrunedProblem()

    normal = ({"E": 1, "axes": 1}, {"E": 20, "axes": 4}, {"part": 8})
    exhaustive = ({"dtype": "float64"},)

    def like(self, specialisation: Mapping[str, Any], sizes: Mapping[str, int], info: DeviceInfo) -> TuningCase | None:
        rows = min(max(int(sizes.get("rows", 0)), 1), 1 << 20)
        axes = int(specialisation["axes"])
        return self.case(info, rows, E=axes, axes=axes, leaf=int(specialisation["leaf"]), dtype=specialisation["dtype"])

    def case(
        self, info: DeviceInfo, states: int = 0, *, E: int = 3, axes: int = 3, leaf: int = 0, tau: int = 1,
        dtype: str = "float32", part: int = 1,
    ) -> TuningCase:  # fmt: skip
        """A case of ``states`` states, or of a part of those of a common problem."""
        states = states or units(info, 30_000, 8_000, most=1 << 20) // part
        leaf = leaf or (32 if scalar(info) else 16)
        specialisation = {"E": E, "tau": tau, "dtype": dtype, "axes": axes, "leaf": leaf}
        return self.named(f"E={E}", f"{axes} axes", f"{states:,} states", states=states, given=specialisation)

    @contextmanager
    def _ordering(
        self, executor: Executor, case: TuningCase, x: Floats, rows: NDArray[Any], axes: PrincipalAxes
    ) -> Iterator[Callable[[], Order]]:
        g, pool = case.given, Pool(executor)
        laid = np.where(np.isnan(x), x.dtype.type(GAP), x)
        with releasing(pool):
            series = DeviceSeries(executor.upload(laid, pool.get("series", laid.nbytes)), 0)
            orderer = Orderer(executor, pool, g["E"], g["tau"], g["dtype"], g["leaf"])
            yield lambda: orderer.make("order", series, rows, axes)

    @contextmanager
    def open(self, executor: Executor, case: TuningCase) -> Iterator[Callable[[], Answer]]:
        g = case.given
        front = (g["E"] - 1) * g["tau"]
        x = flow(case.numbers["states"] + front, g["dtype"])
        rows = np.arange(front, len(x), dtype=np.int32)
        with self._ordering(executor, case, x, rows, _axes(x, rows, g)) as make:

            def go() -> Answer:
                order = make()
                low, high = _boxes(executor, order)[-1]
                # Which of the possible orders it is depends on the parameters: a digit more sees finer differences.
                rows_found = executor.download(order.rows, np.empty(order.shape.padded, np.int32))
                return {"rows": np.sort(rows_found), "low": low.min(axis=0), "high": high.max(axis=0)}

            yield go

    def ragged(self, case: TuningCase) -> Iterator[tuple[str, Any]]:
        g = case.given
        for number, small in enumerate(small_searches((g["E"] - 1) * g["tau"], g["dtype"], True)):
            x = small.library
            search = SearchProblem((g["E"],), (1,), g["tau"], 0, 0, len(x), len(x), g["dtype"])
            rows = rows_with_states(HostSeries(x, 0), search, 0, len(x), small.library_mask)
            yield f"{len(rows)} states (problem {number})", (x, rows, _axes(x, rows, g))

    def computed(self, executor: Executor, case: TuningCase, small: Any) -> Answer:
        x, rows, axes = small
        with self._ordering(executor, case, *small) as make:
            order = make()
            in_order = executor.download(order.rows, np.empty(order.shape.padded, np.int32))
            inside, behind = in_order[: len(rows)], in_order[len(rows) :]
            _require_boxes(_boxes(executor, order), order.shape.leaf, _projected(x, inside, axes, case.given))
        return {"rows": np.sort(inside), "places behind the last": np.unique(np.append(behind, -1))}

    def expected(self, case: TuningCase, small: Any) -> Answer:
        _, rows, _ = small
        return {"rows": rows, "places behind the last": np.array([-1])}

    def verify(self, executor: Executor, case: TuningCase) -> None:
        """Also the whole search, whose walk relies on the order."""
        super().verify(executor, case)
        g = case.given
        small = self._search.case(executor.info, 64, E=g["E"], tau=g["tau"], dtype=g["dtype"], excluding=True)
        self._search.verify(executor, small)


def _axes(x: Floats, rows: NDArray[Any], given: Mapping[str, Any]) -> PrincipalAxes:
    """As many axes as asked for, whatever the states have: orthonormal polynomials of the lag. Any axes are legal."""
    principal = principal_axes(HostStates(HostSeries(x, 0), rows, given["E"], given["tau"]))
    if principal.n_axes == given["axes"]:
        return principal
    axes = np.linalg.qr(np.vander(np.linspace(-1.0, 1.0, given["E"]), given["axes"], increasing=True))[0].T
    return replace(principal, axes=np.ascontiguousarray(axes, given["dtype"]))


def _boxes(executor: Executor, order: Order) -> list[tuple[Floats, Floats]]:
    """Low and high corners (nodes, axes) of the boxes of each level, leaves first."""
    shape = order.shape
    dtype = np.float32 if shape.itemsize == 4 else np.float64
    flat = executor.download(order.boxes, np.empty((sum(shape.parents), shape.axes, 2, FAN), dtype))
    levels = np.split(flat, np.cumsum(shape.parents)[:-1])
    return [(b[:, :, 0].swapaxes(1, 2).reshape(-1, shape.axes), b[:, :, 1].swapaxes(1, 2).reshape(-1, shape.axes))
            for b in levels]  # fmt: skip


def _projected(x: Floats, rows: NDArray[Any], axes: PrincipalAxes, given: Mapping[str, Any]) -> NDArray[Any]:
    """States on the axes."""
    lags = np.arange(given["E"]) * given["tau"]
    states = x[rows[:, None].astype(np.int64) - lags].astype(np.float64) - axes.centre
    return np.asarray(states @ axes.axes.astype(np.float64).T)


def _require_boxes(levels: list[tuple[Floats, Floats]], leaf: int, states: NDArray[np.float64]) -> None:
    """Each state lies in the box of its leaf, which lies in the box of its node, and so on."""
    low: NDArray[Any] = states  # of what a level's boxes hold
    high, fan = low, leaf
    for level, (lows, highs) in enumerate(levels):
        node = np.arange(len(low)) // fan
        if not ((lows[node] <= low) & (high <= highs[node])).all():
            raise WrongAnswerError(f"boxes of level {level} around {len(states)} states do not hold all of them")
        filled = -(-len(low) // fan)
        low, high, fan = lows[:filled], highs[:filled], FAN


PRUNED_ORDER_PROBLEMS = (OrderProblem(),)
