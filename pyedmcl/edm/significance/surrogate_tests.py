"""Tests of all pairs against surrogates, in rounds: the loop that functions with such tests share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...jobs.blocks import Record
from ...jobs.runner import Runner
from ...jobs.sinks import ArraySink
from ..maps.pairs import with_dimensions
from ..shared.sequential import SequentialTests
from .lagged_significance_problem import LaggedSignificanceProblem
from .surrogate_folder import SurrogateFolder
from .xmap_significance_problem import XmapSignificanceProblem

Tested = TypeVar("Tested", bound="XmapSignificanceProblem | LaggedSignificanceProblem")


@dataclass(frozen=True)
class SurrogateTable:
    """Skill of all pairs, and how many surrogates reach it; each (n_series, n_series), row = library."""

    rho: NDArray[np.float64]
    reached: NDArray[np.int_]
    n: NDArray[np.int_]


def surrogate_tests(
    problem: Tested, runner: Runner, *, rate: float, budget: int, folder: SurrogateFolder | None = None
) -> tuple[Record, NDArray[np.int_], SurrogateTable]:
    """Run the problem, and then rounds of more surrogates for the pairs that are open at ``rate``.

    Parameters
    ----------
    problem : XmapSignificanceProblem or LaggedSignificanceProblem
        Of the first round.
    runner : Runner
    rate : float
    budget : int
        0 for the first round alone.
    folder : SurrogateFolder, optional
        Where rounds are kept.

    Returns
    -------
    Record, ndarray of int (n_series,), SurrogateTable
        How it came about; E of the series; the counts.
    """
    N = problem.total

    def of(part: Tested) -> tuple[Tested, Record, list[NDArray[Any]]]:
        if folder is not None:
            kept = folder.sink(part)
            part = with_dimensions(part, runner, kept)
            record = runner.run(part, kept)
            joined = [np.concatenate(rows).T for rows in zip(*kept.results(), strict=True)]
            return part, kept.record.joined(record), joined
        layers = [np.empty((N, N)), *np.empty((2, N, N), int)]
        sink = ArraySink(part.blocks(), [layer.T for layer in layers])
        part = with_dimensions(part, runner, sink)
        return part, runner.run(part, sink), layers

    stored = None if folder is None else folder.result()
    if stored is not None:
        record, (E, rho, reached, n) = stored
        return record, E, SurrogateTable(rho, reached, n)
    try:
        problem, record, (rho, reached, n) = of(problem)
        tests = SequentialTests(rate, budget, problem.n, reached, n)
        while step := tests.step(problem.data.series.n_steps):
            _, new_record, (_, reached, n) = of(replace(problem, first=tests.drawn, n=step, pairs=tests.open))
            tests.add(step, reached, n)
            record = record.joined(new_record)
    finally:
        problem.makers.drawer.release()
    E = np.array(problem.E, int)
    if folder is not None:
        folder.keep(record, [E, rho, tests.reached, tests.n])
    return record, E, SurrogateTable(rho, tests.reached, tests.n)
