"""Maps that differ in E, tau, Tp, theta or rows, computed together: what they share is found once."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...engines.crossmap import CrossMap
from ...jobs.blocks import Arrays, Block, Record, Report
from .xmap_data import layered_map_data
from .xmap_smap import SmapXmapEngine

if TYPE_CHECKING:
    from ...device.executor import Executor
    from .xmap_problem import XmapProblem

Layers = tuple[int, ...]


class MapCells:
    """Some maps of the same libraries and targets on a device.

    Maps that differ in E only share the search: distances of dimension E are those of E - 1 and one term. Maps of local
    linear fits that differ in theta only share what is loaded. One such group is on the device at a time.

    Parameters
    ----------
    executor : Executor
    cells : sequence of XmapProblem
        Each of one map, E known.
    """

    def __init__(self, executor: Executor, cells: Sequence[XmapProblem]) -> None:
        self._executor, self._cells = executor, list(cells)
        self._held: tuple[Layers, CrossMap | SmapXmapEngine] | None = None

    def maps(self, begin: int, end: int, layers: Sequence[int], into: Arrays, report: Report) -> Record:
        """rho of libraries ``begin`` to ``end - 1`` in some of the maps, each in its array of ``into``.

        ``report`` is called with the rows that are done, of all maps together.
        """
        record, done, place = Record(), 0, {layer: at for at, layer in enumerate(layers)}
        for together in self._groups(layers):
            engine = self._engine(together)
            out = [into[place[layer]] for layer in together]
            if isinstance(engine, CrossMap):
                engine.skills(begin, end, out, functools.partial(_report, report, done, len(together)))
                record = record.joined(Record(engine.parameters, "", tuple(engine.searched)))
            else:
                block = Block(0, begin, end, tuple(range(len(together))))
                record = record.joined(engine.block(block, out, lambda n: None).record)
            done += len(together) * (end - begin)
            report(done)
        return record

    def _groups(self, layers: Sequence[int]) -> list[Layers]:
        cells: dict[Any, list[int]] = {}
        for layer in layers:
            cells.setdefault(_shared(self._cells[layer]), []).append(layer)
        return [tuple(group) for group in cells.values()]

    def _engine(self, layers: Layers) -> CrossMap | SmapXmapEngine:
        if self._held is None or self._held[0] != layers:
            self.release()
            self._held = layers, self._open([self._cells[layer] for layer in layers])
        return self._held[1]

    def _open(self, cells: list[XmapProblem]) -> CrossMap | SmapXmapEngine:
        first = cells[0]
        if first.fits is None:
            E: NDArray[np.int_] = np.array([cell.E for cell in cells], int)
            return CrossMap(self._executor, layered_map_data(first, E))
        thetas = tuple(cell.fits.thetas[0] for cell in cells if cell.fits is not None)
        return SmapXmapEngine(first, replace(first.fits, thetas=thetas, several=True), self._executor, first.compact)

    def release(self) -> None:
        """Give the device memory back."""
        if self._held is not None:
            self._held[1].release()
            self._held = None


def _report(report: Report, before: int, maps: int, rows: int) -> None:
    report(before + maps * rows)


def _shared(cell: XmapProblem) -> Any:
    """Equal for maps that are computed together."""
    common = cell.tau, cell.Tp, id(cell.rows), id(cell.data)
    return common if cell.fits is None else (*common, cell.E)
