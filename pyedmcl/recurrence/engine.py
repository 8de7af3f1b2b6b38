"""Divide and recombine: a recurrence matrix cut into rows for devices and tiles, and its counts put together."""

from __future__ import annotations

import contextvars
import functools
import itertools
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..launch.progress import told
from .counts import Counts
from .partial import Partial, finish, join
from .problem import RqaProblem
from .sweep import Report, TileSweep

if TYPE_CHECKING:
    from ..device.executor import Executor

P = ParamSpec("P")
R = TypeVar("R")


def quantify(
    executors: Executor | Sequence[Executor], problem: RqaProblem, x: Any, y: Any = None, *, tile: int | None = None
) -> list[Counts]:
    """Count the lines of a recurrence matrix; :mod:`pyedmcl.launch.progress` hears how many cells are done.

    Parameters
    ----------
    executors : Executor or sequence of Executor
        Devices; each takes a part of the rows. The counts are the same for any number of them.
    problem : RqaProblem
    x, y : ndarray or tuple of ndarray
        Series (n,) or points (n, features) of the rows and of the columns; ``y`` None where the problem is symmetric,
        pairs where it is joint.
    tile : int, optional
        Edge of a tile, in cells; the tuned one where left out. Counts do not depend on it.

    Returns
    -------
    list of Counts
        One for each radius.

    Raises
    ------
    DeviceMemoryError
        Not even a small tile fits; nothing is ever left out.
    """
    devices = list(executors) if isinstance(executors, Sequence) else [executors]
    ranges = split_rows(problem, len(devices))
    reports = _together(problem, len(ranges))
    if len(ranges) == 1:
        sweep = TileSweep(devices[0], problem, x, y, tile)
        try:
            return sweep.counts(lambda radius: _identity(problem, x, radius), reports[0])
        finally:
            sweep.release()
    with ThreadPoolExecutor(len(ranges)) as pool:
        futures = [pool.submit(in_context(count_rows), device, problem, x, y, rows, tile=tile, report=report)
                   for device, rows, report in zip(devices, ranges, reports, strict=False)]  # fmt: skip
        parts = [future.result() for future in futures]
    return combine(problem, parts, x)


def in_context(function: Callable[P, R]) -> Callable[P, R]:
    """``function`` for another thread, with what the caller has chosen for this call (tuning) in force there, too."""
    return functools.partial(contextvars.copy_context().run, function)


def count_rows(
    executor: Executor, problem: RqaProblem, x: Any, y: Any, rows: tuple[int, int], *, tile: int | None = None,
    report: Report | None = None,
) -> list[Partial]:  # fmt: skip
    """What the rows [begin, end) contribute, per radius; ``begin`` is a multiple of 32."""
    sweep = TileSweep(executor, problem, x, y, tile)
    try:
        return sweep.run(*rows, report)
    finally:
        sweep.release()


def combine(problem: RqaProblem, parts: Sequence[Sequence[Partial]], x: Any) -> list[Counts]:
    """Counts of each radius from parts that cover all rows, in any order."""
    k_first = 0 if problem.symmetric else 1 - problem.n_rows
    theiler = max(problem.theiler, 1) if problem.symmetric else problem.theiler
    joined = [join([part[radius] for part in parts], theiler, k_first) for radius in range(problem.n_radii)]
    return [
        finish(
            part, n_rows=problem.n_rows, n_columns=problem.n_columns, symmetric=problem.symmetric,
            theiler=problem.theiler, theiler_everywhere=problem.theiler_everywhere,
            identity=_identity(problem, x, radius),
        )
        for radius, part in enumerate(joined)
    ]  # fmt: skip


def split_rows(problem: RqaProblem, parts: int) -> list[tuple[int, int]]:
    """Ranges of rows with about the same number of cells, cut at multiples of 32."""
    n, columns = problem.n_rows, problem.n_columns
    row = np.arange(0, n, 32, dtype=np.float64)
    cells = np.cumsum(np.maximum(columns - row, 1) if problem.symmetric else np.full(len(row), float(columns)))
    shares = cells[-1] * np.arange(1, parts) / parts
    cuts = [0, *(min(32 * (int(c) + 1), n) for c in np.searchsorted(cells, shares)), n]
    return [(a, b) for a, b in itertools.pairwise(cuts) if a < b]


def _identity(problem: RqaProblem, x: Any, radius: int) -> NDArray[np.bool_] | None:
    """Recurrent cells of the main diagonal: points without a gap, whose distance to themselves is 0. None where no line
    is on it."""
    if not problem.symmetric or problem.theiler > 0:
        return None
    if problem.joint is not None:
        return _identity_of(problem, x[0], radius) & _identity_of(problem.joint, x[1], radius)
    return _identity_of(problem, x, radius)


def _identity_of(problem: RqaProblem, x: NDArray[Any], radius: int) -> NDArray[np.bool_]:
    outer, inner = problem.outer_limits()[radius], problem.inner_limits()
    inside = outer > 0 if problem.strict else outer >= 0
    if inner is not None:
        inside = bool(inside and (inner[radius] < 0 if problem.strict else inner[radius] <= 0))
    finite = np.isfinite(x).all(axis=1) if x.ndim == 2 else np.isfinite(x)
    complete = np.ones(problem.n_rows, bool)
    for e in range(1 if problem.embedded else problem.m):
        complete &= finite[e * problem.tau : e * problem.tau + problem.n_rows]
    return complete & bool(inside)


def _together(problem: RqaProblem, parts: int) -> list[Report]:
    """One report for each device; what they say is added up."""
    total = problem.n_rows * problem.n_columns // (2 if problem.symmetric else 1)
    done = [0] * parts
    lock = threading.Lock()

    def report(part: int, cells: int) -> None:
        with lock:
            done[part] = cells
            told(min(sum(done), total), total, "cells")

    return [functools.partial(report, part) for part in range(parts)]
