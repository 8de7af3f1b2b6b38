"""Workload of computing the distances of an index's candidates and keeping the nearest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...codegen.sentinels import NOWHERE
from ...device.executor import Executor
from ...device.info import DeviceInfo
from ...launch.pool import Pool
from ...neighbors.candidates import CandidateKernels
from ...neighbors.plan import SearchProblem
from ...neighbors.pruned import PrunedSearcher
from ...neighbors.series import LibraryStates, load_states
from ...neighbors.tables import Tables, TableSpace
from ...reference import fma32, fma64
from ..verify import require_close, require_equal
from ..workload import Answer, Case, Workload
from .common import Floats, flow, units

_SHOWN = 4096
_SPARE = 4  # candidates beside the nearest that an index is asked for


class CandidatesWorkload(Workload):
    """Candidates of each row, nearly in order, as an index returns them. There is nothing to tune."""

    kernel = "candidates"

    def cases(self, mode: str, info: DeviceInfo) -> list[Case]:
        n = units(info, 30_000, 4_000, most=1 << 19)
        cases = [_case(n, 3), _case(n, 20)]
        if mode == "exhaustive":
            cases.append(_case(n, 3, emit="neighbours"))
            if info.fp64:
                cases.append(_case(n, 3, dtype="float64"))
        return cases

    def like(self, specialisation: Mapping[str, Any], sizes: Mapping[str, int], info: DeviceInfo) -> Case | None:
        return _case(units(info, 30_000, 4_000, most=1 << 19), 3, **dict(specialisation))

    @contextmanager
    def open(self, executor: Executor, case: Case) -> Iterator[Callable[[], Answer]]:
        g, E, rows = case.numbers["given"], case.numbers["E"], case.numbers["rows"]
        x = flow(rows, g["dtype"])
        with _target(executor, x, E, g["emit"]) as (kernels, states, tables):
            wider = PrunedSearcher(executor, replace(states, problem=replace(states.problem, ks=(E + 1 + _SPARE,))))
            try:
                near = wider.find().read(executor)[0][E - 1 :]
            finally:
                wider.release()
            limit = np.zeros(len(states.query.rows))

            def go() -> Answer:
                is_open = kernels.keep_nearest(tables, 0, states, states.query.rows, near, limit)
                return {"open": is_open[:_SHOWN].astype(np.uint8)}

            yield go

    def verify(self, executor: Executor, case: Case) -> None:
        given = case.numbers["given"]
        for number, (E, radius) in enumerate(((1, 0), (4, 2), (7, 5))):
            rng = np.random.default_rng(number)
            # Ties by the dozen, candidates twice as many as rows and none, and lists that are empty.
            x = rng.integers(0, 4, 211 + E).astype(given["dtype"])
            which = rng.permutation(np.arange(E - 1, len(x)))[:130].astype(np.int32)
            rows = np.array([rng.permutation(np.arange(E - 1, len(x)))[: 2 * E + 9] for _ in which], np.int32)
            rows[rng.random(rows.shape) < 0.2] = -1
            rows[:3] = -1
            limit = rng.integers(0, 3 * E, len(which)).astype(np.float64)
            limit[::5] = np.inf
            _verify(executor, x, E, radius, given["emit"], which, rows, limit)


def _case(rows: int, E: int, dtype: str = "float32", emit: str = "weights") -> Case:
    name = f"E={E}, {rows:,} rows of {E + 1 + _SPARE} candidates, {emit}" + (f", {dtype}" if dtype != "float32" else "")
    return Case("candidates", name, {"rows": rows, "E": E, "given": {"dtype": dtype, "emit": emit}})


@contextmanager
def _target(
    executor: Executor, x: Floats, E: int, emit: str, radius: int = 0
) -> Iterator[tuple[CandidateKernels, LibraryStates, Tables]]:
    """The kernels, the states of a series, and tables to write into."""
    problem = SearchProblem((E,), (E + 1,), 1, 0, radius, len(x), len(x), x.dtype.name)
    pool = Pool(executor)
    try:
        states = load_states(executor, problem, pool, x)
        space = TableSpace(executor, problem, emit, data_bytes=x.nbytes, pool=pool)
        yield CandidateKernels(executor, pool), states, next(space.tables(1, lambda tables: None))
    finally:
        pool.release()


def _verify(
    executor: Executor, x: Floats, E: int, radius: int, emit: str, which: NDArray[np.int32], rows: NDArray[np.int32],
    limit: NDArray[np.float64],
) -> None:  # fmt: skip
    with _target(executor, x, E, emit, radius) as (kernels, states, tables):
        found = kernels.keep_nearest(tables, 0, states, which, rows, limit)
        got_rows, got = (table[0][which] for table in tables.read(executor, E, 1))
    squared, nearest, is_open = _oracle(x, E, radius, which, rows, limit)
    what = f"{len(which)} rows of {rows.shape[1]} candidates, E={E}"
    require_equal(f"open rows among {what}", found, is_open)
    if emit == "neighbours":
        require_equal(f"neighbours of {what}", got_rows, nearest)
        require_equal(f"squared distances of {what}", got, np.where(nearest < 0, x.dtype.type(NOWHERE), squared))
        return
    distances = np.sqrt(np.where(nearest < 0, np.inf, squared.astype(np.float64)))
    with np.errstate(divide="ignore", invalid="ignore"):
        weights = np.where(distances[:, :1] > 0, np.exp(-distances / distances[:, :1]), distances == 0)
    weights = np.where(np.isfinite(distances), weights, 0.0)
    total = weights.sum(axis=1, keepdims=True)
    weights = weights / np.where(total > 0, total, 1.0)
    require_close(f"weights of {what}", got, weights, 1e-5 if x.dtype == np.float32 else 1e-12, 1e-7)
    there = (nearest >= 0) & (weights > 0)
    require_equal(f"rows with weights of {what}", np.where(there, got_rows, -1), np.where(there, nearest, -1))


def _oracle(
    x: Floats, E: int, radius: int, which: NDArray[np.int32], rows: NDArray[np.int32], limit: NDArray[np.float64]
) -> tuple[Floats, NDArray[np.int32], NDArray[np.bool_]]:
    """Squared distances and rows of the E + 1 nearest candidates, and whether others may be as near as the last."""
    fma: Any = fma32 if x.dtype == np.float32 else fma64
    far, k = x.dtype.type(np.inf), E + 1
    squared, nearest = np.full((len(which), k), far), np.full((len(which), k), -1, np.int32)
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


WORKLOAD = CandidatesWorkload()
