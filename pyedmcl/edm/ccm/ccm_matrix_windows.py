"""Convergent cross mapping of all pairs within windows along the series as a job: blocks are ranges of windows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...data.windows import windows_of
from ...errors import InputError, shown
from ...jobs.blocks import Arrays, Block, BlockResult, Record, Report
from ...jobs.runner import Runner
from ...jobs.sinks import ArraySink
from ..maps.xmap_windows import WindowsProblem, part_of, window_dimensions, windows_side
from ..shared import arguments
from .ccm_matrix_problem import CcmMatrixEngine, CcmMatrixProblem
from .ccm_matrix_sizes import library_sizes, most_rows
from .ccm_matrix_windows_result import WindowedCcmMatrix

if TYPE_CHECKING:
    from ...device.executor import Executor

_BLOCK_SERIES = 512  # series of all windows of a block, which are computed as one matrix of these pairs alone


@dataclass(frozen=True)
class CcmMatrixWindowsProblem(WindowsProblem):
    """The matrices of each window; layers are rho (n_windows, n_sizes, n_series, n_series), E (n_windows, n_series)."""

    whole: CcmMatrixProblem

    @property
    def kernels(self) -> tuple[str, ...]:
        return self.whole.kernels

    def blocks(self, devices: int = 1) -> list[Block]:
        """Ranges of windows, to be shared by ``devices``."""
        return self.cut(_BLOCK_SERIES // self.whole.total, devices)

    def open(self, executor: Executor) -> CcmMatrixWindowsEngine:
        return CcmMatrixWindowsEngine(self, executor)


class CcmMatrixWindowsEngine:
    """The engine of :class:`CcmMatrixWindowsProblem`; it holds nothing on the device between blocks."""

    def __init__(self, problem: CcmMatrixWindowsProblem, executor: Executor) -> None:
        self._problem, self._executor = problem, executor

    def block(self, block: Block, into: Arrays | None, report: Report) -> BlockResult:
        """Mean skill (windows of the block, n_sizes, n_series, n_series), and E (windows of the block, n_series)."""
        p, n_series, n = self._problem.whole, self._problem.whole.total, len(block)
        series = windows_side(p.data, self._problem.windows, block)
        E, record = window_dimensions(p, self._executor, series, n)
        # Series of one window predict each other, with the random numbers of their places in the window.
        window = np.repeat(np.arange(n), n_series)
        together = replace(
            p, data=series, E=tuple(E.ravel().tolist()), pairs=window[:, None] == window, streams=n_series
        )
        engine = CcmMatrixEngine(together, self._executor)
        sizes = len(p.lib_sizes)
        try:
            all_of_it = Block(0, 0, n * n_series, tuple(range(sizes)))
            skill = engine.block(all_of_it, None, lambda done: report(done // n_series))
        finally:
            engine.release()
        rho = np.empty((n, sizes, n_series, n_series), skill.arrays[0].dtype)
        for number in range(n):
            members = slice(number * n_series, (number + 1) * n_series)
            rho[number] = [layer[members, members] for layer in skill.arrays]
        return BlockResult([rho, E], record.joined(skill.record))

    def release(self) -> None:
        """Nothing is held."""


def windowed_matrix(
    problem: CcmMatrixProblem, windows: Any, lib_sizes: Any, runner: Runner
) -> WindowedCcmMatrix:
    """The matrices of each window.

    Parameters
    ----------
    problem : CcmMatrixProblem
        Of the whole series, without library sizes.
    windows : (int, int)
    lib_sizes
        As of :func:`pyedmcl.ccm_matrix`; where none are given, they suit the window that has the fewest rows.
    runner : Runner

    Raises
    ------
    InputError
        Windows are longer than the series, or some window has too few rows.
    """
    series = problem.data.series
    cut_in = windows_of(windows, series.n_steps)
    without_gaps = not problem.data.conditioned.gaps.any()  # windows without gaps have equally many rows
    starts = cut_in.starts[:1] if without_gaps else cut_in.starts
    parts = (part_of(problem.data, start, cut_in.width) for start in starts)
    try:
        most = min(most_rows(replace(problem, data=part)) for part in parts)
        sizes = library_sizes(lib_sizes, problem, most)
    except InputError as error:
        raise InputError(f"windows={shown(windows)}: {error}") from None
    job = CcmMatrixWindowsProblem(replace(problem, lib_sizes=sizes), cut_in)
    n, n_series = job.total, series.n_series
    rho = arguments.room("windows", (n, len(sizes), n_series, n_series), np.dtype(problem.data.dtype))
    E = np.empty((n, n_series), np.int64)
    record: Record = runner.run(job, ArraySink(job.blocks(runner.devices), [rho, E]))
    named = {"windows": [cut_in.width, cut_in.step]}
    used = runner.provenance(job.kernels, record, arguments=job.whole.arguments() | named)
    return WindowedCcmMatrix(
        rho, np.array(sizes), E, series.names, problem.sample, problem.seed, np.array(cut_in.starts), cut_in.width,
        cut_in.times(series.time), used, problem.skill, series.grid,
    )  # fmt: skip
