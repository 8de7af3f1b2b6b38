"""Tuning problem of the neighbour search: tables of many libraries, one dimension or many at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...codegen.spec import Constraint
from ...device.executor import Executor
from ...device.info import DeviceInfo
from ...edm.shared.masks import library_mask_of
from ...launch.staging import Staging
from ...neighbors.exhaustive import ExhaustiveSearcher
from ...neighbors.plan import SearchProblem
from ...reference import simplex_weights
from ..problem import Answer, OneWayProblem, TuningCase, up_to
from ..verify import Close
from .common import SmallSearch, exact_knn, maps, ragged, releasing, scalar, units

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


PROBLEMS = (KnnProblem(),)
