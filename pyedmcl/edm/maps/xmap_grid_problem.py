"""A grid of cross maps as a job: the combinations, and the engine that computes blocks of libraries of them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...jobs.blocks import Arrays, Block, BlockResult, Report, cut
from .map_cells import MapCells
from .xmap_problem import XmapProblem

if TYPE_CHECKING:
    from ...device.executor import Executor
    from ..shared.map_rows import MapRows

#: Axes of a grid, in the order of its result.
AXES = ("fold", "E", "tau", "Tp", "theta")


@dataclass(frozen=True)
class XmapGridProblem:
    """Maps of the same libraries and targets for all combinations of parameters; each is a layer of the result.

    Attributes
    ----------
    cells : tuple of XmapProblem
        One map each, in the order of the axes.
    block_rows : int
        Libraries of a block.
    """

    cells: tuple[XmapProblem, ...]
    block_rows: int

    @property
    def unit(self) -> str:
        return "series"

    @property
    def total(self) -> int:
        return self.cells[0].total * len(self.cells)

    def size(self, block: Block) -> int:
        return len(block) * len(block.layers)

    def blocks(self) -> list[Block]:
        """Ranges of libraries, each with all maps."""
        return cut(self.cells[0].total, self.block_rows, len(self.cells))

    @property
    def kernels(self) -> Sequence[str]:
        return self.cells[0].kernels

    @property
    def operations(self) -> float:
        return sum(cell.operations for cell in self.cells)

    def open(self, executor: Executor) -> XmapGridEngine:
        return XmapGridEngine(self, executor)


class XmapGridEngine:
    """The engine of :class:`XmapGridProblem`; maps that share a search are computed together."""

    def __init__(self, problem: XmapGridProblem, executor: Executor) -> None:
        self._n = problem.cells[0].target_data.series.n_series
        self._dtype = np.dtype(problem.cells[0].data.dtype)
        self._cells = MapCells(executor, problem.cells)

    def block(self, block: Block, into: Arrays | None, report: Report) -> BlockResult:
        """rho (libraries of the block, n_targets) of each of the block's maps."""
        if into is None:
            into = [np.empty((len(block), self._n), self._dtype) for _ in block.layers]
        return BlockResult(into, self._cells.maps(block.begin, block.end, block.layers, into, report))

    def release(self) -> None:
        """Give the device memory back."""
        self._cells.release()


def cells_of(
    common: Mapping[tuple[int, int], XmapProblem], rows: Mapping[tuple[int, int], Sequence[MapRows]],
    axes: dict[str, tuple[Any, ...]],
) -> tuple[XmapProblem, ...]:  # fmt: skip
    """A problem for each combination of values on the axes, of which there is one of each at least.

    Parameters
    ----------
    common : mapping
        What maps of a tau and a Tp have in common.
    rows : mapping
        Of each fold; one choice of rows, or none, without folds.
    axes : dict
        Values of E, tau, Tp and theta; theta is None without local linear fits.
    """
    first = next(iter(common.values()))
    n, folds = first.target_data.series.n_series, len(next(iter(rows.values())))
    cells = []
    for fold, E, tau, Tp, theta in itertools.product(range(max(folds, 1)), *(axes[name] for name in AXES[1:])):
        cell = common[tau, Tp]
        fits = None if cell.fits is None else replace(cell.fits, thetas=(theta,), several=False)
        chosen = rows[tau, Tp][fold] if folds else None
        cells.append(replace(cell, E=(E,) * n, tau=tau, Tp=Tp, fits=fits, rows=chosen))
    return tuple(cells)
