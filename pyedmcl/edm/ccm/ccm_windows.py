"""Convergent cross mapping within windows along two series: the directions of all windows are one job."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ...data.series import Series
from ...data.windows import windows_of
from ...errors import InputError, shown
from ...jobs.runner import Runner
from ...jobs.sinks import ArraySink
from ..shared import arguments
from ..shared.ccm_directions import Side, Variables, library_sizes
from .ccm_problem import CcmProblem
from .ccm_windows_result import WindowedCcm


def windowed_ccm(
    both: Variables, windows: Any, knn: int | None, lib_sizes: Any, problem: CcmProblem, runner: Runner
) -> WindowedCcm:
    """Skill of each window's random sub-libraries.

    Parameters
    ----------
    both : Variables
        In their whole length.
    windows : (int, int)
    knn : int or None
    lib_sizes
        As of :func:`pyedmcl.ccm`; where none are given, they suit the window that has the fewest rows.
    problem : CcmProblem
        Without directions and library sizes.
    runner : Runner

    Raises
    ------
    InputError
        Windows are longer than the series, or some window has too few rows.
    """
    cut, Tp = windows_of(windows, both.x.series.n_steps), problem.Tp
    try:
        pairs = [
            replace(both, x=_part(both.x, start, cut.width), y=_part(both.y, start, cut.width)).directions(Tp, knn)
            for start in cut.starts
        ]
        # Those of one library side by side: they share searches.
        directions = tuple(pair[number] for number in (0, 1) for pair in pairs)
        sizes = library_sizes(lib_sizes, directions)
    except InputError as error:
        raise InputError(f"windows={shown(windows)}: {error}") from None
    job = replace(problem, directions=directions, lib_sizes=sizes)
    rho = arguments.room("windows", (job.total, len(sizes), job.sample))
    record = runner.run(job, ArraySink(job.blocks(), [rho]))
    return WindowedCcm(
        rho=np.ascontiguousarray(rho.reshape(2, len(cut), len(sizes), job.sample).swapaxes(0, 1)),
        lib_sizes=np.array(sizes), links=both.links, E=(both.x.E, both.y.E), seed=job.seed, skill=job.measure,
        starts=np.array(cut.starts), width=cut.width, time=cut.times(both.x.series.time),
        provenance=runner.provenance(job.kernels, record),
    )  # fmt: skip


def _part(side: Side, start: int, width: int) -> Side:
    values = np.ascontiguousarray(side.series.values[start : start + width])
    return replace(side, series=Series(values, side.series.names))
