"""Tuning problems of searches in one series: a smooth one is timed, and what may go wrong is verified."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np

from ...codegen.sentinels import NOWHERE
from ...device.executor import Executor
from ...device.info import DeviceInfo
from ...launch.pool import Pool
from ...neighbors.plan import SearchProblem
from ...neighbors.pruned import PrunedSearcher
from ...neighbors.series import load_states
from ...neighbors.shared_sums import SharedSumsSearcher
from ..problem import Answer, OneWayProblem, TuningCase, up_to
from .common import SmallSearch, exact_knn, flow, releasing, scalar, units

_SHOWN = 4096  # rows of an answer
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
    dtype : str
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
        return SmallSearch(x[: n["library"]], query, radius=0 if n["own"] else -1, shown=min(n["rows"], _SHOWN))

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


PROBLEMS = (PrunedProblem(), SharedSumsProblem())
