"""Workload of recurrence quantification of overlapping windows."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

import numpy as np

from ...device.executor import Executor
from ...device.info import DeviceInfo
from ...recurrence.counts import Counts
from ...recurrence.problem import RqaProblem
from ...recurrence.windows import WindowSweep, part_size
from ...reference.rqa import compared, line_counts, points_of, recurrence_matrix
from ..verify import require_equal
from ..workload import Answer, Case, Workload
from .common import OTHER_METRICS, Floats, maps, on_gpu

_RADIUS = 0.25
_SIZE, _STEP = 500, 50
_SHOWN = 2
# Points of a window, step, windows.
_RAGGED = ((2, 1, 3), (67, 13, 9), (130, 200, 2))


class WindowsWorkload(Workload):
    """Short windows, close together; integers are equal for every configuration."""

    kernel = "recurrence_windows"
    entries = ("band_columns", "band_diagonals", "recurrence_windows")

    def cases(self, mode: str, info: DeviceInfo) -> list[Case]:
        windows, dtype = 2_000 if on_gpu(info) else 100, "float64" if info.fp64 else "float32"
        cases = [_case(windows, 5, dtype=dtype)]
        if mode != "rapid":
            cases += [_case(windows, 1, dtype=dtype), _case(windows, 20, dtype=dtype)]
        if mode == "exhaustive":
            cases += [_case(windows, 5, metric=metric, dtype=dtype) for metric in OTHER_METRICS]
        return cases

    def like(self, specialisation: Mapping[str, Any], sizes: Mapping[str, int], info: DeviceInfo) -> Case | None:
        s = specialisation
        if int(s.get("stride", 1)) > 1:
            return None
        windows = 2_000 if on_gpu(info) else 100
        return _case(windows, int(s["m"]), tau=s["step"], metric=s["metric"], dtype=s["dtype"], strict=s["strict"])

    @contextmanager
    def open(self, executor: Executor, case: Case) -> Iterator[Callable[[], Answer]]:
        n = case.numbers
        problem, length = _problem(n["given"], _SIZE), _SIZE + (n["windows"] - 1) * _STEP
        x = maps(length + (problem.m - 1) * problem.tau, 1, problem.dtype)[:, 0]
        parts = _parts(executor, problem, x, _STEP, n["windows"])

        def go() -> Answer:
            answer: dict[str, Any] = {}
            for part in parts():
                for place, counts in enumerate(part[:_SHOWN] if not answer else ()):
                    answer |= {f"{f.name}, window {place}": np.asarray(getattr(counts, f.name)) for f in fields(Counts)}
            return answer

        yield go

    def verify(self, executor: Executor, case: Case) -> None:
        given = case.numbers["given"]
        for size, step, windows in _RAGGED:
            problem = _problem(given, size)
            parts = _parts(executor, problem, _series(problem, step, windows), step, windows)
            found = [counts for part in parts() for counts in part]
            wanted = _oracle(size, step, windows, tuple(sorted(given.items())))
            for place, (got, right) in enumerate(zip(found, wanted, strict=True)):
                for name, values in right.items():
                    what = f"{name} of window {place} of {size} points"
                    require_equal(what, np.asarray(getattr(got, name)), np.asarray(values))


def _case(
    windows: int, m: int, *, tau: int = 3, metric: str = "euclidean", dtype: str = "float64", strict: bool = True
) -> Case:
    given = {"m": m, "step": tau, "stride": 1, "metric": metric, "dtype": dtype, "strict": strict}
    name = f"m={m}, {metric}, {windows:,} windows of {_SIZE}, {_STEP} apart"
    return Case("recurrence_windows", name, {"windows": windows, "given": given})


def _problem(given: Mapping[str, Any], n: int) -> RqaProblem:
    return RqaProblem(
        m=given["m"], tau=given["step"], metric=given["metric"], dtype=given["dtype"], exact=False, radii=(_RADIUS,),
        inner=None, strict=given["strict"], theiler=1, theiler_everywhere=False, n_rows=n, n_columns=n, symmetric=True,
    )  # fmt: skip


def _parts(
    executor: Executor, problem: RqaProblem, x: Floats, step: int, windows: int
) -> Callable[[], Iterator[list[Counts]]]:
    """Counts of all windows, as many at a time as fit."""
    together = max(part_size(executor, problem.n_rows, step, windows, x.nbytes), 1)
    sweep = WindowSweep(executor, problem, x, step)
    return lambda: (
        sweep.counts(first, min(together, windows - first)) for first in range(0, windows, together)
    )


def _series(problem: RqaProblem, step: int, windows: int) -> Floats:
    """Values with two decimals, so that many distances equal the radius but for their last bit, and a gap."""
    n = problem.n_rows + (windows - 1) * step + (problem.m - 1) * problem.tau
    x = np.round(np.random.default_rng(13).random(n) * 20) / 20
    if n > 100:
        x[n // 2] = np.nan
    return x.astype(problem.dtype)


@functools.lru_cache(maxsize=32)
def _oracle(size: int, step: int, windows: int, numbers: tuple[tuple[str, Any], ...]) -> list[dict[str, Any]]:
    problem = _problem(dict(numbers), size)
    points = points_of(_series(problem, step, windows), problem.m, problem.tau, problem.dtype)
    found = []
    for begin in range(0, windows * step, step):
        some = points[begin : begin + size]
        distances = compared(some, some, problem.metric)
        matrix = recurrence_matrix(distances, problem.outer_limits()[0], strict=problem.strict)
        found.append(line_counts(matrix, theiler=problem.theiler))
    return found


WORKLOAD = WindowsWorkload()
