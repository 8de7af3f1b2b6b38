"""Which pairs of a map are kept, found block by block without the whole square."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, shown
from ..jobs.blocks import Arrays, Block, BlockResult, Engine, Problem, Record, Report, cut
from ..jobs.layout import edge_dtype
from ..jobs.runner import ArraySink
from ..results.edges import blank_itself

if TYPE_CHECKING:
    from ..device.executor import Executor


Edges = NDArray[Any]  # of edge_dtype: library, target, rho
Places = NDArray[np.int_]

_TOP = re.compile(r"top:(\d{1,18})(?::(library|target))?")
_ABOVE = re.compile(r"rho>([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)", re.IGNORECASE)
# Rows that are held at a time: this many bytes, or this many times what is kept of each target.
_ROWS_BYTES = 8 << 20
_ROWS_AT_A_TIME = 4
_MERGED = 1 << 16  # candidates that are merged together, so that they stay in cache
# A block of n x r pairs gives up to n x most edges of three numbers: with r as many times most, a store holds a tenth.
_ROWS_FOR_EACH_EDGE = 32
_FEWEST_BLOCKS = 16


@dataclass(frozen=True)
class Keep:
    """A rule that says which pairs are kept: the strongest of each series, or all above a threshold.

    Of equal rho the smaller library wins, then the smaller target. NaN, and pairs of a series with itself, are never
    kept.
    """

    # How many of each series.
    most: int | None = None
    # What they are counted of.
    per: str = "library"
    # Threshold, where ``most`` is None.
    above: float | None = None

    @classmethod
    def parse(cls, rule: Any) -> Keep | None:
        """The rule that a user gave; None for "all"."""
        text = re.sub(r"\s+", "", rule) if isinstance(rule, str) else ""
        if text == "all":
            return None
        if (top := _TOP.fullmatch(text)) and int(top[1]) > 0:
            return cls(most=int(top[1]), per=top[2] or "library")
        # Above 1 there is nothing, which nobody means.
        if (above := _ABOVE.fullmatch(text)) and -1 <= float(above[1]) < 1:
            return cls(above=float(above[1]))
        raise InputError(
            f"keep={shown(rule)}: 'all', 'top:K' (the K strongest pairs of each library), 'top:K:target' (of each "
            "target) or 'rho>X' with X from -1 to below 1 is needed"
        )

    def __str__(self) -> str:
        return f"rho>{self.above!r}" if self.most is None else f"top:{self.most}:{self.per}"

    @property
    def merges(self) -> bool:
        """Whether edges of a block may have to give way to those of another."""
        return self.most is not None and self.per == "target"

    def block_rows(self, n: int, rows: int) -> int:
        """Libraries of a block of a store of ``n`` series; ``rows`` where each row stands for itself."""
        if not self.merges or self.most is None:
            return rows
        return max(rows, min(_ROWS_FOR_EACH_EDGE * self.most, n // _FEWEST_BLOCKS))

    def rows_at_a_time(self, shape: tuple[int, int], dtype: str) -> int:
        """Rows of a map of such a shape that are held and reduced together."""
        rows = max(_ROWS_BYTES // (shape[1] * np.dtype(dtype).itemsize), 1)
        return rows if not self.merges or self.most is None else max(rows, min(_ROWS_AT_A_TIME * self.most, shape[0]))

    def selection(self, itself: Places, n_targets: int, dtype: str) -> Selection:
        """What finds the edges to keep among rows that come one after the other.

        Parameters
        ----------
        itself : ndarray of int (n_libraries,)
            Which target each library is; -1 for none.
        """
        if self.merges:
            return TargetTop(self.most or 1, itself, n_targets, dtype)
        return _RowSelection(self, itself, dtype)


class Selection(Protocol):
    """Finds the edges to keep."""

    def add_rows(self, rho: NDArray[Any], first: int) -> None:
        """Take library rows ``first`` and on, all of them; the array may be changed."""

    def edges(self) -> Edges:
        """What is kept of all that came."""


class _RowSelection:
    """Keeps of each row what it holds, whatever other rows hold."""

    def __init__(self, keep: Keep, itself: Places, dtype: str) -> None:
        self._keep, self._itself = keep, itself
        self._dtype = np.dtype(dtype)
        self._parts: list[Edges] = []

    def add_rows(self, rho: NDArray[Any], first: int) -> None:
        blank_itself(rho, self._itself, first)
        most = self._keep.most
        least = _least_above(self._keep.above or 0.0, rho.dtype) if most is None else _least_of_rows(rho, most)
        cells = np.flatnonzero(rho >= least)  # NaN is not; ten times as fast as of two axes
        rows, columns = np.divmod(cells, rho.shape[1])
        edges = _edges(rows + first, columns, rho.reshape(-1)[cells], self._dtype)
        if most is not None:
            edges = edges[np.lexsort((columns, -edges["rho"], rows))]
            edges = edges[_rank(edges["library"]) < most]
        self._parts.append(edges)

    def edges(self) -> Edges:
        return joined(self._parts, self._dtype)


class TargetTop:
    """The strongest edges of each target, from blocks in any order.

    They are held as complex numbers, rho - i library, which NumPy orders by rho and then by library.

    Parameters
    ----------
    most : int
        Edges of a target.
    itself : ndarray of int (n_libraries,)
        Which target each library is; -1 for none.
    dtype : str
        Of rho.
    """

    def __init__(self, most: int, itself: Places, n_targets: int, dtype: str) -> None:
        self._most, self._dtype, self._itself = min(most, len(itself)), np.dtype(dtype), itself
        self._best = np.full((n_targets, self._most), complex(-np.inf, 0))
        self._weakest = self._best[:, 0].copy()

    def add_rows(self, rho: NDArray[Any], first: int) -> None:
        blank_itself(rho, self._itself, first)
        libraries = np.arange(first, first + len(rho))

        def candidates(targets: NDArray[Any], out: NDArray[Any]) -> None:
            rows = rho[:, targets].T
            out.real = np.where(np.isnan(rows), -np.inf, rows)
            out.imag = -libraries

        # What is below the weakest of its target, as most of a large map soon is, is looked at once.
        self._take(np.flatnonzero((rho >= self._weakest.real).any(axis=0)), len(rho), candidates)

    def add(self, edges: Edges) -> None:
        """Take edges, those of a target side by side."""
        keys = edges["rho"] - 1j * edges["library"]
        edges, keys = (held[keys > self._weakest[edges["target"]]] for held in (edges, keys))
        targets, rank = edges["target"], _rank(edges["target"])

        def candidates(stripe: NDArray[Any], out: NDArray[Any]) -> None:
            begin, end = np.searchsorted(targets, (stripe[0], stripe[-1] + 1))
            out[:] = complex(-np.inf, 0)
            out[np.searchsorted(stripe, targets[begin:end]), rank[begin:end]] = keys[begin:end]

        self._take(np.unique(targets), int(rank.max(initial=0)) + 1, candidates)

    def edges(self) -> Edges:
        """What is kept, by target, falling rho and library."""
        best = np.sort(self._best, axis=1)[:, ::-1]
        targets, places = np.nonzero(best.real > -np.inf)
        keys = best[targets, places]
        return _edges(-keys.imag, targets, keys.real, self._dtype)

    def _take(
        self, targets: NDArray[Any], m: int, candidates: Callable[[NDArray[Any], NDArray[Any]], None]
    ) -> None:
        """Merge ``m`` candidates for each of some targets, few targets at a time."""
        step = max(_MERGED // (self._most + m), 1)
        for begin in range(0, len(targets), step):
            stripe = targets[begin : begin + step]
            keys = np.empty((len(stripe), self._most + m), complex)
            keys[:, : self._most] = self._best[stripe]
            candidates(stripe, keys[:, self._most :])
            keys.partition(m, axis=1)
            self._best[stripe], self._weakest[stripe] = keys[:, m:], keys[:, m]


def joined(parts: Iterable[Edges], dtype: Any) -> Edges:
    """Edges of several parts as one array."""
    return np.concatenate([np.empty(0, edge_dtype(dtype)), *parts])


def _edges(libraries: NDArray[Any], targets: NDArray[Any], rho: NDArray[Any], dtype: Any) -> Edges:
    edges = np.empty(len(rho), edge_dtype(dtype))
    edges["library"], edges["target"], edges["rho"] = libraries, targets, rho
    return edges


def _least_above(threshold: float, dtype: Any) -> Any:
    """The smallest number of a type that is greater than ``threshold``, which the type may not hold."""
    nearest = np.dtype(dtype).type(threshold)
    return nearest if float(nearest) > threshold else np.nextafter(nearest, nearest.dtype.type(np.inf))


def _least_of_rows(rho: NDArray[Any], most: int) -> NDArray[Any]:
    """The ``most``-th largest number of each row, as a column; -inf where a row has fewer."""
    n = rho.shape[1]
    if most >= n:
        return np.full((len(rho), 1), -np.inf, rho.dtype)
    ranked = np.where(np.isnan(rho), -np.inf, rho).astype(rho.dtype, copy=False)
    ranked.partition(n - most, axis=1)
    return ranked[:, n - most, None].copy()


def _rank(groups: NDArray[Any]) -> NDArray[np.int_]:
    """Place of each item within its group, from 0; items of a group are adjacent."""
    places = np.arange(len(groups))
    first = np.concatenate([[True], groups[1:] != groups[:-1]])[: len(groups)]
    ranks: NDArray[np.int_] = places - np.maximum.accumulate(np.where(first, places, 0))
    return ranks


# A map of which only some pairs are kept, as a job: each block is reduced before it leaves its engine.


@dataclass(frozen=True)
class KeptProblem:
    """Another problem, whose blocks are rows of a map, reduced to the edges that are kept.

    A block of it is a pure function as well: of a rule that compares libraries it gives what may be kept of the block.
    """

    # Its unit is a library.
    problem: Problem
    keep: Keep
    # Of rho.
    dtype: str
    # ndarray of int (n_libraries,). Which target each library is; -1 for none.
    itself: Places
    n_targets: int

    @property
    def unit(self) -> str:
        return self.problem.unit

    @property
    def total(self) -> int:
        return self.problem.total

    @property
    def operations(self) -> float:
        return self.problem.operations

    @property
    def kernels(self) -> Sequence[str]:
        """Kernels that the answer depends on, as far as the problem tells."""
        return getattr(self.problem, "kernels", ())

    def size(self, block: Block) -> int:
        return self.problem.size(block)

    def open(self, executor: Executor) -> _KeptEngine:
        return _KeptEngine(self, self.problem.open(executor))


class _KeptEngine:
    """The problem's engine, asked for few rows at a time."""

    def __init__(self, kept: KeptProblem, engine: Engine) -> None:
        self._engine = engine
        self._kept = kept
        self._rows = kept.keep.rows_at_a_time((kept.total, kept.n_targets), kept.dtype)

    def block(self, block: Block, into: Arrays | None, report: Report) -> BlockResult:
        """The kept edges of the block's libraries."""
        kept = self._kept
        selection = kept.keep.selection(kept.itself, kept.n_targets, kept.dtype)
        record = Record()
        for part in cut(len(block), self._rows):
            begin, end = block.begin + part.begin, block.begin + part.end
            part_block = replace(block, begin=begin, end=end)
            rows = self._engine.block(part_block, None, functools.partial(_report, report, part.begin))
            selection.add_rows(rows.arrays[0], begin)
            record = record.joined(rows.record)
        return BlockResult([selection.edges()], record)

    def release(self) -> None:
        """Give the device memory back."""
        self._engine.release()


def _report(report: Report, before: int, done: int) -> None:
    report(before + done)


class EdgeSink(ArraySink):
    """Kept edges in memory.

    Parameters
    ----------
    itself, n_targets, dtype
        As of :class:`KeptProblem`.
    """

    def __init__(self, blocks: Sequence[Block], keep: Keep, itself: Places, n_targets: int, dtype: str) -> None:
        super().__init__(blocks, [])
        self._top = TargetTop(keep.most or 1, itself, n_targets, dtype) if keep.merges else None

    def room(self, block: Block) -> None:  # type: ignore[override]  # edges have no place of their own
        return None

    def _take(self, block: Block, arrays: Any) -> None:
        if self._top is None:
            super(ArraySink, self)._take(block, arrays[0])
        else:
            self._top.add(arrays[0])

    def parts(self) -> tuple[Edges, ...]:
        """Edges in parts, in their order."""
        return tuple(self.results()) if self._top is None else (self._top.edges(),)
