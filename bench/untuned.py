"""Kernels that have nothing to tune, as problems that can be timed and verified like those of the tuner.

They put data into the layouts of other kernels (``stage``, ``smap_stage``) or finish what an index of the host proposes
(``candidates``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyedmcl.device.executor import Executor
from pyedmcl.device.info import DeviceInfo
from pyedmcl.kernels.texts import NOWHERE
from pyedmcl.launch.staging import Pool, Staging, round_up
from pyedmcl.reference import fma32, fma64, simplex_weights
from pyedmcl.search.plan import SearchProblem
from pyedmcl.search.pruned import PrunedSearcher
from pyedmcl.search.searches import CandidateKernel
from pyedmcl.search.tables import TableSpace, load_states
from pyedmcl.tuner.problem import Answer, Close, Floats, TuningCase, TuningProblem, flow, maps, releasing, units
from pyedmcl.tuner.problems import names, problem
from pyedmcl.tuner.problems.smap import SmapProblem

_SHOWN = 4096
_SPARE = 4  # candidates beside the nearest that an index is asked for


class StageProblem(TuningProblem):
    """Raw data into the time-major layout of targets: centring and rearranging."""

    kernel = "stage"
    entries = ("centre", "stage_targets", "stage_series")

    def case(self, info: DeviceInfo, *, dtype: str = "float32") -> TuningCase:
        series = units(info, 256, 16)
        return self.named(f"{series} x 2000", rows=2000, series=series, given={"dtype": dtype})

    @contextmanager
    def open(self, executor: Executor, case: TuningCase) -> Iterator[Callable[[], Answer]]:
        n = case.numbers
        values, stride = maps(n["rows"], n["series"], case.given["dtype"]), round_up(n["series"], 16)
        into = executor.allocate(n["rows"] * stride * values.itemsize)
        columns = np.arange(n["series"], dtype=np.int32)

        def go() -> Answer:
            data = Staging(executor, values)
            with releasing(data):
                data.targets(columns, stride, into)
                return {"targets": executor.download(into, np.empty((4, stride), values.dtype))[:, : n["series"]]}

        with releasing(into):
            yield go

    def ragged(self, case: TuningCase) -> Iterator[tuple[str, Any]]:
        yield "37 series of 61 rows", np.random.default_rng(1).permutation(37).astype(np.int32)

    def computed(self, executor: Executor, case: TuningCase, small: Any) -> Answer:
        dtype = case.given["dtype"]
        into = executor.upload(np.full((63, 48), np.nan, dtype))
        data = Staging(executor, maps(61, 37, dtype))
        with releasing(into, data):
            data.targets(small, 48, into, 63)
            laid = executor.download(into, np.empty((63, 48), dtype))
            shift, exponent = data.scaling()
        padding = np.concatenate([laid[:, 37:].ravel(), laid[61:].ravel()])
        return {"targets": laid[:61, small].astype(np.float64) * 2.0**exponent + shift, "padding": padding}

    def expected(self, case: TuningCase, small: Any) -> Mapping[str, NDArray[Any] | Close]:
        targets = maps(61, 37, case.given["dtype"]).astype(np.float64)
        return {"targets": Close(targets, 0.0, 2e-7), "padding": np.zeros(63 * 11 + 2 * 48)}


class CandidatesProblem(TuningProblem):
    """Candidates of each row, nearly in order, as an index returns them: distances, and the nearest of them."""

    kernel = "candidates"

    rapid = ({"E": 3}, {"E": 20})
    exhaustive = ({"E": 3, "emit": "neighbours"}, {"E": 3, "dtype": "float64"})

    def case(self, info: DeviceInfo, *, E: int, dtype: str = "float32", emit: str = "weights") -> TuningCase:
        rows = units(info, 30_000, 4_000, most=1 << 19)
        return self.named(f"E={E}", f"{rows:,} rows of {E + 1 + _SPARE} candidates", emit, rows=rows, E=E,
                          given={"dtype": dtype, "emit": emit})  # fmt: skip

    @contextmanager
    def _tables(self, executor: Executor, x: Floats, E: int, emit: str, radius: int = 0) -> Iterator[tuple[Any, ...]]:
        """The kernels, the states of a series, and tables to write into."""
        problem, pool = SearchProblem((E,), (E + 1,), 1, 0, radius, len(x), len(x), x.dtype.name), Pool(executor)
        with releasing(pool):
            states = load_states(executor, problem, pool, x)
            space = TableSpace(executor, problem, emit, data_bytes=x.nbytes, pool=pool)
            yield CandidateKernel(executor, pool), states, next(space.tables(1, lambda tables: None))

    @contextmanager
    def open(self, executor: Executor, case: TuningCase) -> Iterator[Callable[[], Answer]]:
        E, rows = case.numbers["E"], case.numbers["rows"]
        x = flow(rows, case.given["dtype"])
        with self._tables(executor, x, E, case.given["emit"]) as (kernels, states, tables):
            problem = replace(states.problem, ks=(E + 1 + _SPARE,))
            wider = PrunedSearcher(executor, replace(states, problem=problem))
            with releasing(wider):
                near = wider.find().read(executor)[0][E - 1 :]
            which = states.query.rows
            limit = np.zeros(len(which))

            def go() -> Answer:
                is_open = kernels.keep_nearest(tables, 0, states, which, near, limit)
                return {"open": is_open[:_SHOWN].astype(np.uint8)}

            yield go

    def ragged(self, case: TuningCase) -> Iterator[tuple[str, Any]]:
        for number, (E, radius) in enumerate(((1, 0), (4, 2), (7, 5))):
            rng = np.random.default_rng(number)
            # Ties by the dozen, candidates twice as many as rows and none, and lists that are empty.
            x = rng.integers(0, 4, 211 + E).astype(case.given["dtype"])
            which = rng.permutation(np.arange(E - 1, len(x)))[:130].astype(np.int32)
            rows = np.array([rng.permutation(np.arange(E - 1, len(x)))[: 2 * E + 9] for _ in which], np.int32)
            rows[rng.random(rows.shape) < 0.2] = -1
            rows[:3] = -1
            limit = rng.integers(0, 3 * E, len(which)).astype(np.float64)
            limit[::5] = np.inf
            words = f"{len(which)} rows of {rows.shape[1]} candidates, E={E}"
            yield words, (x, E, radius, which, rows, limit)

    def computed(self, executor: Executor, case: TuningCase, small: Any) -> Answer:
        x, E, radius, which, rows, limit = small
        with self._tables(executor, x, E, case.given["emit"], radius) as (kernels, states, tables):
            is_open = kernels.keep_nearest(tables, 0, states, which, rows, limit)
            nearest, values = (table[0][which] for table in tables.read(executor, E, 1))
        if case.given["emit"] == "neighbours":
            return {"open rows": is_open, "neighbours": nearest, "squared distances": values}
        return {"open rows": is_open, "rows with weights": np.where(values > 0, nearest, -1), "weights": values}

    def expected(self, case: TuningCase, small: Any) -> Mapping[str, NDArray[Any] | Close]:
        x = small[0]
        squared, nearest, is_open = _nearest(*small)
        if case.given["emit"] == "neighbours":
            distances = np.where(nearest < 0, x.dtype.type(NOWHERE), squared)
            return {"open rows": is_open, "neighbours": nearest, "squared distances": distances}
        distances = np.sqrt(np.where(nearest < 0, np.inf, squared.astype(np.float64)))
        weights = np.nan_to_num(simplex_weights(distances))  # 0 in rows without neighbours
        return {
            "open rows": is_open, "rows with weights": np.where(weights > 0, nearest, -1),
            "weights": Close(weights, 1e-5 if x.dtype == np.float32 else 1e-12, 1e-7),
        }  # fmt: skip


def _nearest(
    x: Floats, E: int, radius: int, which: NDArray[np.int32], rows: NDArray[np.int32], limit: NDArray[np.float64]
) -> tuple[Floats, NDArray[np.int32], NDArray[np.bool_]]:
    """Squared distances and rows of the E + 1 nearest candidates, and whether others may be as near as the last."""
    fma: Any = fma32 if x.dtype == np.float32 else fma64
    k = E + 1
    squared, nearest = np.full((len(which), k), np.inf, x.dtype), np.full((len(which), k), -1, np.int32)
    is_open = np.zeros(len(which), np.bool_)
    for place, (t, candidates) in enumerate(zip(which, rows, strict=True)):
        legal = candidates[(candidates >= 0) & (np.abs(candidates - t) > radius)]
        sums = np.zeros(len(legal), x.dtype)
        for e in range(E):
            diff = x[t - e] - x[legal - e]
            sums = fma(diff, diff, sums)
        best = np.lexsort((legal, sums))[:k]
        squared[place, : len(best)], nearest[place, : len(best)] = sums[best], legal[best]
        is_open[place] = np.isfinite(limit[place]) and not (len(best) == k and sums[best[-1]] < limit[place])
    return squared, nearest, is_open


class StagePointsProblem(SmapProblem):
    """States of queries of S-map."""

    kernel, entries = "smap_stage", ("stage_points",)


_PROBLEMS = StageProblem(), StagePointsProblem(), CandidatesProblem()
UNTUNED: Mapping[str, TuningProblem] = {problem.kernel: problem for problem in _PROBLEMS}


def every_problem() -> dict[str, TuningProblem]:
    """Problems by kernel: the tuner's, and those that have nothing to tune."""
    return {**{name: problem(name) for name in names()}, **UNTUNED}
