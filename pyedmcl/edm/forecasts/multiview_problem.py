"""Views of one system as a job: the problem, and the engine that projects from some views at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...device.memory import budget
from ...engines.projector import Projector
from ...jobs.blocks import Arrays, Block, BlockResult, Record, Report, cut, rows_of_a_block
from ...neighbors.coordinates import coordinate_problem, lay_out_states
from ..shared import scores
from ..shared.effort import operations
from ..shared.states import future

if TYPE_CHECKING:
    from ...device.executor import Executor

Doubles = NDArray[np.float64]
_BLOCK_CELLS = 1 << 24  # predictions of a block


@dataclass(frozen=True)
class ViewsProblem:
    """Simplex projections of one target from different choices of coordinates; blocks are ranges of views.

    Attributes
    ----------
    states : ndarray (n_steps, n_coordinates)
        All coordinates, conditioned together.
    target_values : ndarray (n_steps,)
        The series that is predicted.
    views : tuple of tuple of int
        The coordinates of each view.
    k, Tp, exclusion_radius : int
    library_mask : ndarray of bool (n_steps,) or None
        Library rows that may be used.
    dtype : str
        What kernels compute in.
    scored : ndarray of int or None
        Rows over which each view's skill is asked for; None for the predictions themselves.
    """

    states: NDArray[np.float64]
    target_values: Doubles
    views: tuple[tuple[int, ...], ...]
    k: int
    Tp: int
    exclusion_radius: int
    library_mask: NDArray[np.bool_] | None
    dtype: str
    scored: NDArray[np.int64] | None

    kernels: ClassVar[tuple[str, ...]] = ("knn", "predict")
    unit: ClassVar[str] = ""  # the search itself reports

    @property
    def total(self) -> int:
        """Views."""
        return len(self.views)

    def size(self, block: Block) -> int:
        return len(block)

    def blocks(self, devices: int = 1) -> list[Block]:
        """Ranges of views, to be shared by ``devices``."""
        most = max(_BLOCK_CELLS // len(self.states), 1)
        return cut(self.total, rows_of_a_block(self.total, most, devices))

    @property
    def operations(self) -> float:
        n = len(self.states)
        return operations((len(self.views[0]),), n_library=n, n_query=n, n_series=self.total)

    def result(self) -> Doubles:
        """Room for skill (views,), or for predictions (views, n_steps)."""
        return np.empty((self.total,) if self.scored is not None else (self.total, len(self.states)))

    def open(self, executor: Executor) -> ViewsEngine:
        return ViewsEngine(self, executor)


class ViewsEngine:
    """Simplex projections from different choices of coordinates, many in a launch."""

    def __init__(self, problem: ViewsProblem, executor: Executor) -> None:
        p, n = problem, len(problem.states)
        self._problem = problem
        self._future = future(p.target_values, p.Tp)
        self._search = coordinate_problem(len(p.views[0]), p.k, p.Tp, p.exclusion_radius, n, n, p.dtype)
        self._projector = Projector(executor, self._search, self._future, p.library_mask)
        self._batch = max(int(budget(executor.info).total // 16 // (self._search.stride(n) * self._search.itemsize)), 1)

    def block(self, block: Block, into: Arrays | None, report: Report) -> BlockResult:
        """rho (views,) over the scored rows, or predictions (views, n_steps)."""
        parts, rows = [], self._problem.scored
        for predicted, noise in self._parts(self._problem.views[block.begin : block.end]):
            if rows is not None:
                moved = predicted[:, rows] - self._projector.shift
                observed = np.broadcast_to(self._future[rows], moved.shape)
                parts.append(scores.pearson(moved, observed, noise))
            else:
                parts.append(predicted)
        searcher = self._projector.searcher
        return BlockResult([np.concatenate(parts)], Record(searcher.parameters, searcher.grade))

    def _parts(self, views: Sequence[tuple[int, ...]]) -> Iterator[tuple[Doubles, float]]:
        """Predictions of some views at a time, and their rounding noise."""
        search, n = self._search, len(self._problem.states)
        for a in range(0, len(views), self._batch):
            states = [self._problem.states[:, view] for view in views[a : a + self._batch]]
            library = np.concatenate([lay_out_states(view, search, n, search.library_end) for view in states])
            query = library
            if search.library_end != n:
                query = np.concatenate([lay_out_states(view, search, n, n) for view in states])
            predicted, _, noise = self._projector.predict(library, query)
            yield predicted, noise

    def release(self) -> None:
        """Give the device memory back."""
        self._projector.release()
