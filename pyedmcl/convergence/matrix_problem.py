"""Convergent cross mapping of all pairs as a job, by each measure and method, over all rows or within windows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..crossmap.linear_fits import LinearFits, require_double
from ..crossmap.pairs import PairsProblem
from ..crossmap.problem import WindowsProblem, part_of, window_dimensions, windows_side
from ..engines.ccm import CcmPair, Of, SampledSkill
from ..engines.predict import Projector
from ..engines.smap_maps import SmapMap, SmapMapData
from ..engines.targets import FutureTargets
from ..errors import InputError, shown
from ..jobs.blocks import Arrays, Block, BlockResult, Record, Report, cut
from ..jobs.runner import ArraySink, Runner
from ..search.choose import without_search
from ..series.regular import windows_of
from ..series.scaling import condition
from ..states import arguments
from ..states.arguments import measure, operations
from ..states.rows import MapRows, arguments_of_folds
from ..states.states import delay_states, embed, future
from ..statistics import means
from .ccm import KERNELS as CCM_KERNELS
from .ccm import skill_of_groups
from .results import WindowedCcmMatrix

if TYPE_CHECKING:
    from ..device.executor import Executor


# Which library sizes a matrix of convergent cross mapping can have.


_SIZES = 8  # library sizes where the caller names none


def _least_size(problem: CcmMatrixProblem) -> tuple[int, str]:
    """Rows that a sub-library needs, and what for."""
    k = problem.knn or problem.highest + 1  # a fit has as many coefficients
    slopes = f"fits with {problem.highest} slopes and an intercept, each without its own row"
    return k + 1, f"{k} neighbours of each row" if problem.fits is None else slopes


def most_rows(problem: CcmMatrixProblem) -> int:
    """Rows of the pair that has the fewest, and so the largest library that all pairs can have."""
    # Before E is known: the largest E that may be found has the fewest rows.
    series, E, tau, Tp = problem.data.series, problem.highest, problem.tau, problem.Tp
    present = np.isfinite(series.values)
    has_future = np.array([np.isfinite(future(series.values[:, j], Tp)) for j in range(series.n_series)])
    embedded = np.array([
        np.isfinite(embed(series.values[:, [i]], E, tau)).all(axis=1) for i in range(series.n_series)
    ]) if not present.all() else (np.arange(series.n_steps) >= (E - 1) * tau)[None]  # fmt: skip
    most, (least, what) = series.n_steps, _least_size(problem)
    for choice in problem.folds or (problem.rows,):
        library_mask = None if choice is None else choice.library_mask(series.n_steps, E, tau, Tp)
        drawn = embedded if library_mask is None else embedded & library_mask
        most = min(most, int((drawn.astype(np.float32) @ has_future.astype(np.float32).T).min()))
    if most < least:
        raise InputError(
            f"data: some pair has {most:,} rows with all coordinates (E={E}) and a target, which is too few for "
            f"{what}; leave out series with many gaps, or use a smaller E"
            f"{', E_max or knn' if problem.fits is None else ' or E_max'}"
        )
    return most


def library_sizes(lib_sizes: Any, problem: CcmMatrixProblem, most: int) -> tuple[int, ...]:
    """Library sizes, checked: of at most ``most`` rows."""
    E, (least, what) = problem.highest, _least_size(problem)
    if lib_sizes is None:
        sizes = np.unique(np.linspace(max(least, most // 50), most, _SIZES).astype(int)).tolist()
        return tuple(sizes)
    requested = arguments.several("lib_sizes", lib_sizes)
    sizes = [arguments.integer("lib_sizes", size) for size in requested]
    for size in sizes:
        if not least <= size <= most:
            raise InputError(
                f"lib_sizes: {size:,}; from {least} (enough for {what}) to {most:,} rows can be drawn of each series "
                f"with E up to {E}"
            )
    if not sizes or len(set(sizes)) != len(sizes):
        raise InputError(f"lib_sizes={arguments.shown(lib_sizes)}: at least one size is needed, and none twice")
    return tuple(sizes)


# Convergent cross mapping of all pairs by another measure than Pearson's rho: a search for each sub-library.


KERNELS = ("knn", "ccm_draw", "predict")


def measured(
    problem: CcmMatrixProblem, draws: SampledSkill, targets: FutureTargets, rows: MapRows | None,
    pairs: NDArray[np.int_], sizes: Sequence[int],
) -> tuple[NDArray[np.float64], Record]:  # fmt: skip
    """Mean skill (n_pairs, n_sizes) of pairs whose libraries have one dimension.

    Parameters
    ----------
    draws : SampledSkill
        Draws the sub-libraries.
    rows : MapRows or None
        Rows that are predicted.
    pairs : ndarray of int (n_pairs, 4)
        See :class:`pyedmcl.engines.ccm.Of`.
    """
    p, states = problem, draws.states
    skill = np.empty((len(pairs), len(sizes), p.sample))
    parameters = {}
    for number, pair in enumerate(pairs):
        target_values = targets.values[pair[Of.TARGET]]
        observed = target_values
        if rows is not None:
            observed = np.where(rows.predicted_mask(len(observed)), observed, np.nan)
        library = states.library[pair[Of.LIBRARY]][None]
        query = library if states.query is states.library else states.query[pair[Of.LIBRARY]][None]
        members = draws.drawn(pair[None], sizes, p.sample, p.seed)[0]
        for place in np.ndindex(members.shape[:2]):
            projector = Projector(draws.executor, states.problem, target_values, members[place])
            try:
                predicted = projector.predict(library, query)[0][0]
                parameters = {"knn": projector.searcher.parameters}
            finally:
                projector.release()
            skill[(number, *place)] = measure(p.skill, predicted[None], observed)[0]
    searched = without_search(states.problem.dims[0], p.search, "each sub-library is searched by itself")
    return means(skill), Record(draws.parameters | parameters, "", tuple(searched))


# Convergent cross mapping of all pairs by local linear fits, from the sub-libraries that neighbours would have.


SMAP_KERNELS = ("stage", "ccm_draw", "smap_white", "smap_gram", "smap_map")
_MEMBER_BYTES = 1 << 28  # of sub-libraries that the host holds at a time


class SampledFits:
    """Mean skill of random sub-libraries by local linear fits; it holds nothing on the device between calls.

    Each pair, size and sample has rows of its own, so that no two predictions share a fit. What they share is the
    target: all sub-libraries that predict one series, of whatever library and size, are fitted together.
    """

    def __init__(self, problem: CcmMatrixProblem, executor: Executor) -> None:
        require_double(executor)
        series = problem.data.series
        self._problem, self._executor = problem, executor
        self._libraries = condition(series.values, "float64", series.extent, quiet=True)

    def skill(
        self, draws: SampledSkill, rows: MapRows | None, E: int, libraries: NDArray[np.int_], pairs: NDArray[np.int_],
        sizes: Sequence[int],
    ) -> tuple[NDArray[np.float64], Record]:  # fmt: skip
        """Mean skill (n_pairs, n_sizes) of pairs whose libraries have one dimension.

        Parameters
        ----------
        draws : SampledSkill
            Draws the sub-libraries.
        rows : MapRows or None
            Rows that are predicted.
        libraries : ndarray of int (n,)
            Series that the numbers of libraries in ``pairs`` stand for.
        pairs : ndarray of int (n_pairs, 4)
            See :class:`pyedmcl.engines.ccm.Of`.
        """
        p = self._problem
        engine = SmapMap(self._executor, self._data(E, rows))
        out = np.empty((len(pairs), len(sizes)))
        try:
            for numbers in self._together(pairs, sizes):
                part = pairs[numbers]
                members = draws.drawn(part, sizes, p.sample, p.seed)
                of = np.repeat(libraries[part[:, Of.LIBRARY]], len(sizes) * p.sample)
                rho = engine.sampled(of, members.reshape(len(of), -1), int(part[0, Of.TARGET]))
                out[numbers] = means(rho.astype(np.float64).reshape(len(part), len(sizes), p.sample))
            searched = without_search(E, p.search, "local linear fits take all members")
            return out, Record(draws.parameters | engine.parameters, "", tuple(searched))
        finally:
            engine.release()

    def _together(self, pairs: NDArray[np.int_], sizes: Sequence[int]) -> Iterator[NDArray[np.int_]]:
        """Numbers of pairs of one target, as many at a time as the host's memory is meant to hold."""
        n_values = len(sizes) * self._problem.sample * self._problem.data.series.n_steps
        step = max(_MEMBER_BYTES // n_values, 1)
        for target in np.unique(pairs[:, Of.TARGET]):
            numbers = np.flatnonzero(pairs[:, Of.TARGET] == target)
            for first in range(0, len(numbers), step):
                yield numbers[first : first + step]

    def _data(self, E: int, rows: MapRows | None) -> SmapMapData:
        """All series as libraries and as targets, with one dimension."""
        p, n = self._problem, self._problem.total
        assert p.fits is not None
        none = np.zeros(n, int)
        return SmapMapData(
            p.data.conditioned.values, self._libraries.values, self._libraries.exponent, np.full(n, E), p.tau, p.Tp,
            p.exclusion_radius, none, {}, True, p.fits.thetas, p.fits.ridge,
            asked=None if rows is None else rows.predicted_mask(p.data.series.n_steps),
        )  # fmt: skip


# Convergent cross mapping of all pairs as a job: the problem, and the engine that computes blocks of libraries.


_BLOCK_PAIRS = 2048  # pairs of a block: some seconds to minutes of work
_PAIRS = 2048  # pairs that are computed together, so that what each call costs is shared


@dataclass(frozen=True)
class CcmMatrixProblem(PairsProblem):
    """Mean skill of random parts of each series as library against each as target; a layer for each library size."""

    lib_sizes: tuple[int, ...]
    # Sub-libraries of each pair and size.
    sample: int
    seed: int
    # ndarray of bool (n_series, n_series), optional. Row = library, column = target: which pairs are computed; the
    # others get NaN. All by default.
    pairs: NDArray[np.bool_] | None = None
    # How rows are predicted by local linear fits, of one theta; None where they are predicted by their neighbours.
    fits: LinearFits | None = None
    # Each is predicted from the others, and skill is the mean of theirs.
    folds: tuple[MapRows, ...] = ()
    # Series number i has the random numbers of number i % streams, where series are those of several windows.
    streams: int | None = None
    # How predictions are measured.
    skill: str = "pearson"
    # ndarray of int (n_steps,) or None. Group of each row, where sub-libraries are drawn from whole groups.
    group_of: NDArray[np.int64] | None = None

    @property
    def kernels(self) -> tuple[str, ...]:
        if self.skill != "pearson":
            return KERNELS
        return CCM_KERNELS if self.fits is None else SMAP_KERNELS

    def blocks(self) -> list[Block]:
        return cut(self.total, max(min(_BLOCK_PAIRS // self.total, 8), 1), len(self.lib_sizes))

    @property
    def operations(self) -> float:
        n, N = self.data.series.n_steps, self.total
        targets = N * len(self.lib_sizes) * self.sample * max(len(self.folds), 1)
        if self.fits is not None:  # each sub-library has fits of its own
            return self.fits.operations(n, N * targets, 1, self.highest)
        return operations([self.highest], n_library=n, n_query=n, n_series=N, n_targets=targets)

    def own_arguments(self) -> dict[str, Any]:
        drawn = {"sample": self.sample, "seed": self.seed, **arguments_of_folds(self.folds)}
        if self.skill != "pearson":
            drawn["skill"] = self.skill
        if self.group_of is not None:
            drawn["draw"] = "groups"
        return drawn if self.fits is None else drawn | self.fits.arguments()

    def open(self, executor: Executor) -> CcmMatrixEngine:
        return CcmMatrixEngine(self, executor)


class CcmMatrixEngine:
    """The engine of :class:`CcmMatrixProblem`; it holds nothing on the device between blocks."""

    def __init__(self, problem: CcmMatrixProblem, executor: Executor) -> None:
        self._problem, self._executor = problem, executor
        values = problem.data.series.values
        self._targets = FutureTargets(future(values.T, problem.Tp))
        self._E = np.array(problem.E, int)
        self._fits = None if problem.fits is None else SampledFits(problem, executor)

    def block(self, block: Block, into: Arrays | None, report: Report) -> BlockResult:
        """Mean skill (libraries of the block, n_series) for each of the block's library sizes."""
        n, record, done = self._problem.total, Record(), 0
        shape = len(block.layers), len(block), n
        rho = list(np.empty(shape, np.dtype(self._problem.data.dtype))) if into is None else into
        for layer in rho:
            layer[...] = np.nan
        E = self._E[block.begin : block.end]
        own_streams = self._problem.streams or n
        step = max(_PAIRS // own_streams, 1)
        for dim in np.unique(E):
            alike = block.begin + np.flatnonzero(dim == E)
            for first in range(0, len(alike), step):
                libraries = alike[first : first + step]
                computed = (libraries[:, None] != np.arange(n)) & ~self._problem.data.stateless[libraries, None]
                if self._problem.pairs is not None:
                    computed &= self._problem.pairs[libraries]
                places, targets = np.nonzero(computed)
                streams = libraries[places] % own_streams, targets % own_streams
                pairs = np.stack([places, targets, *streams], axis=1)
                skill, new = self._skill(libraries, int(dim), pairs, [self._problem.lib_sizes[i] for i in block.layers])
                for layer, values in zip(rho, skill.T, strict=True):
                    layer[libraries[places] - block.begin, targets] = values
                record, done = record.joined(new), done + len(libraries)
                report(done)
        return BlockResult(rho, record)

    def _skill(
        self, libraries: NDArray[np.int_], E: int, pairs: NDArray[np.int_], sizes: Sequence[int]
    ) -> tuple[NDArray[np.float64], Record]:
        """Mean skill (n_links, n_sizes) of libraries of one dimension."""
        record, skills = Record(), []
        for rows in self._problem.folds or (self._problem.rows,):
            skill, new_record = self._skill_of(rows, libraries, E, pairs, sizes)
            skills.append(skill)
            record = record.joined(new_record)
        return np.mean(skills, axis=0), record

    def _skill_of(
        self, rows: MapRows | None, libraries: NDArray[np.int_], E: int, pairs: NDArray[np.int_], sizes: Sequence[int]
    ) -> tuple[NDArray[np.float64], Record]:
        """The same of one choice of rows."""
        p, n = self._problem, self._problem.data.series.n_steps
        mask = None if rows is None else rows.library_mask(n, E, p.tau, p.Tp)
        states = delay_states(
            p.data.series.values[:, libraries], E, p.tau, k=p.knn or E + 1, Tp=p.Tp,
            exclusion_radius=p.exclusion_radius, dtype=p.data.dtype,
        )  # fmt: skip
        engine = SampledSkill(
            self._executor, states, self._targets, mask, request=p.search,
            predicted=None if rows is None else rows.predicted(n),
        )  # fmt: skip
        try:
            if self._fits is not None:
                return self._fits.skill(engine, rows, E, libraries, pairs, sizes)
            if p.skill != "pearson":
                return measured(p, engine, self._targets, rows, pairs, sizes)
            if p.group_of is None:
                rho = engine.skill(pairs, sizes, p.sample, p.seed)
            else:
                named = [CcmPair(library, target, (a, b)) for library, target, a, b in pairs.tolist()]
                rho = skill_of_groups(engine, named, sizes, p.sample, p.seed, p.group_of)
            return means(rho), Record(dict(engine.parameters), engine.grade, tuple(engine.searched))
        finally:
            engine.release()

    def release(self) -> None:
        """Nothing is held."""


# Convergent cross mapping of all pairs within windows along the series as a job: blocks are ranges of windows.


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
