"""Tuning problems of searches in one series: a smooth one is timed, and what may go wrong is verified."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...codegen.sentinels import NOWHERE
from ...device.executor import Executor
from ...device.info import DeviceInfo
from ...launch.pool import Pool
from ...neighbors.plan import SearchProblem
from ...neighbors.pruned import PrunedSearcher
from ...neighbors.series import load_states
from ...neighbors.shared_sums import SharedSumsSearcher
from ...reference import knn_float32_exact, knn_float64_exact
from ..problem import Answer, TuningCase, TuningProblem, up_to
from .common import Floats, flow, releasing, scalar, units

_SHOWN = 4096  # rows of an answer
#: Entry points of the program that puts states into an order, as they run.
ORDER_ENTRIES = (
    "project", "axes_of", "keys_of", "count", "scan", "scatter", "gather", "leaf_boxes", "upper_boxes",
)  # fmt: skip
_SIDE = 8  # of a block of pairs that share sums


@dataclass(frozen=True)
class SmallSearch:
    """A search of sizes that fill no leaf, node or group.

    Attributes
    ----------
    library : ndarray (n_library,)
    query : ndarray (n_query,) or None
        Another series, for a cross search.
    Tp, radius : int
        Steps ahead that a neighbour must exist, and the exclusion radius.
    library_mask, query_mask : ndarray of bool or None
        Rows that may be neighbours, and those that are asked for.
    """

    library: Floats
    query: Floats | None = None
    Tp: int = 0
    radius: int = 0
    library_mask: NDArray[np.bool_] | None = None
    query_mask: NDArray[np.bool_] | None = None


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
        asked = rng.random(len(gappy)) < 0.4
        deep = flow(front + 2301, dtype, 0.0)
        return [SmallSearch(noise), SmallSearch(gappy, None, 2, 3, may, asked), SmallSearch(ties, None, -2),
                SmallSearch(level, None, 0, 5), SmallSearch(deep, None, 0, 10)]  # fmt: skip
    others = flow(front + 5600, dtype, 0.001)
    return [SmallSearch(noise, None, 0, -1), SmallSearch(gappy, others[: front + 203], 2, -1, may),
            SmallSearch(ties, rng.integers(0, 4, front + 77).astype(dtype), -2, -1),
            SmallSearch(level, level[: front + 31], 0, -1),
            SmallSearch(others[: front + 5011], others[-front - 101 :], 0, -1)]  # fmt: skip


class StatesProblem(TuningProblem):
    """Neighbours of all states of one series, or of those of another one among them."""

    searcher: ClassVar[type[PrunedSearcher] | type[SharedSumsSearcher]]

    def case(
        self, rows: int, E: int, *, k: int = 0, tau: int = 1, dtype: str = "float32", own: bool = True,
        library: int = 0, **given: Any,
    ) -> TuningCase:  # fmt: skip
        """Among ``library`` steps for ``rows`` steps; the same series where it is its ``own`` query."""
        library, k = library or rows, k or E + 1
        words = [f"E={E}", f"{rows:,} steps" if own else f"{rows:,} steps in {library:,} others"]
        words += [f"k={k}"] * (k != E + 1) + [f"tau={tau}"] * (tau != 1) + [dtype] * (dtype != "float32")
        return TuningCase(self.kernel, ", ".join(words), {
            "rows": rows, "library": rows if own else library, "own": own,
            "given": {"E": E, "tau": tau, "k": k, "dtype": dtype, **given},
        })  # fmt: skip

    def _like(self, s: Mapping[str, Any], sizes: Mapping[str, int], most: int) -> dict[str, Any]:
        """What :meth:`case` is given for what an engine asks."""
        least = 64 + (int(s["E"]) - 1) * int(s["tau"])
        rows, library = (min(max(int(sizes.get(name, 0)), least), most) for name in ("rows", "library"))
        return {"rows": rows, "library": library, "E": int(s["E"]), "k": int(s["k"]), "tau": int(s["tau"]),
                "dtype": s["dtype"]}  # fmt: skip

    @contextmanager
    def open(self, executor: Executor, case: TuningCase) -> Iterator[Callable[[], Answer]]:
        n, g = case.numbers, case.given
        x = flow(n["library"] + n["rows"] * (not n["own"]), g["dtype"])
        library, query = x[: n["library"]], None if n["own"] else x[n["library"] :]
        radius, pool, shown = 0 if n["own"] else -1, Pool(executor), min(n["rows"], _SHOWN)
        problem = SearchProblem((g["E"],), (g["k"],), g["tau"], 0, radius, n["library"], n["rows"], g["dtype"])

        def go() -> Answer:
            states = load_states(executor, problem, pool, library, query)
            lists = self.searcher(executor, states, pool=pool).find()
            rows = executor.download(lists.rows, np.empty((shown, g["k"]), np.int32))
            return {"rows": rows, "squared": executor.download(lists.values, np.empty(rows.shape, g["dtype"]))}

        with releasing(pool):
            yield go

    def ragged(self, case: TuningCase) -> Iterator[tuple[str, Any]]:
        g = case.given
        for number, small in enumerate(small_searches((g["E"] - 1) * g["tau"], g["dtype"], case.numbers["own"])):
            asked = small.library if small.query is None else small.query
            yield f"{len(asked)} rows among {len(small.library)} (problem {number})", small

    def computed(self, executor: Executor, case: TuningCase, small: Any) -> Answer:
        g, asked = case.given, small.library if small.query is None else small.query
        size, pool = (len(small.library), len(asked)), Pool(executor)
        problem = SearchProblem((g["E"],), (g["k"],), g["tau"], small.Tp, small.radius, *size, g["dtype"])
        with releasing(pool):
            states = load_states(executor, problem, pool, small.library, small.query, library_mask=small.library_mask,
                                 query_mask=small.query_mask)  # fmt: skip
            rows, squared = self.searcher(executor, states, pool=pool).find().read(executor)
        return {"neighbours": rows, "squared distances": squared}

    def expected(self, case: TuningCase, small: Any) -> Answer:
        """Squared distances and rows as the searchers write them."""
        g = case.given
        exact: Any = knn_float32_exact if g["dtype"] == "float32" else knn_float64_exact
        # The searchers know targets by the library mask alone, so this one has no gaps.
        squared, rows = exact(small.library, E=g["E"], tau=g["tau"], k=g["k"], Tp=small.Tp,
                              exclusion_radius=small.radius, query=small.query, target=np.zeros(len(small.library)),
                              library_rows=small.library_mask)  # fmt: skip
        if small.query_mask is not None:
            rows[~small.query_mask] = -1
        nowhere = np.dtype(g["dtype"]).type(NOWHERE)
        return {"neighbours": rows, "squared distances": np.where(rows < 0, nowhere, squared).astype(g["dtype"])}


class PrunedProblem(StatesProblem):
    """Order and walk, since the states of a leaf change both.

    The series is smooth: of noise nearly all pairs are looked at, and nobody takes this search.
    """

    kernel, searcher = "pruned", PrunedSearcher
    entries = ("pruned", "nothing", *ORDER_ENTRIES)

    def cases(self, mode: str, info: DeviceInfo) -> list[TuningCase]:
        n = units(info, 30_000, 8_000, most=1 << 20)
        double = [self.case(n, E, dtype="float64", excluding=True) for E in (3, 20)] if info.fp64 else []
        return up_to(
            mode, [self.case(n, 3, excluding=True)],
            [*(self.case(n, E, excluding=True) for E in (1, 6, 20)), self.case(n // 8, 3, excluding=True)],
            [self.case(n, 3, own=False, excluding=False), self.case(n // 8, 20, excluding=True), *double],
        )  # fmt: skip

    def like(self, specialisation: Mapping[str, Any], sizes: Mapping[str, int], info: DeviceInfo) -> TuningCase | None:
        excluding = bool(specialisation["excluding"])
        return self.case(**self._like(specialisation, sizes, 1 << 20), own=excluding, excluding=excluding)


class SharedSumsProblem(StatesProblem):
    """The sweep over all pairs that shares sums along diagonals: neighbours of states of many dimensions."""

    kernel, searcher = "shared_sums", SharedSumsSearcher

    def case(self, rows: int, E: int, **more: Any) -> TuningCase:
        return super().case(rows, E, **more, side=min(_SIDE, E))

    def cases(self, mode: str, info: DeviceInfo) -> list[TuningCase]:
        n = units(info, 4_000, 1_000, most=1 << 17)  # pairs grow with the square
        # A million states want other groups than a hundred thousand.
        longer = [self.case(8 * n, 20)] if scalar(info) else []
        double = [self.case(n, 20, dtype="float64")] if info.fp64 else []
        return up_to(mode, [self.case(n, 20)], [self.case(n, 8), self.case(n // 4, 20), *longer],
                     [self.case(n, 20, own=False), *double])  # fmt: skip

    def like(self, specialisation: Mapping[str, Any], sizes: Mapping[str, int], info: DeviceInfo) -> TuningCase | None:
        numbers = self._like(specialisation, sizes, 1 << (17 if scalar(info) else 14))
        return self.case(**numbers, own=numbers["rows"] == numbers["library"])


PROBLEMS = (PrunedProblem(), SharedSumsProblem())
