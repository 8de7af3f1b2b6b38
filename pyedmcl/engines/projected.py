"""Simplex projection of one target from the states of one or several libraries, laid out on the host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.build import build
from ..codegen.sentinels import GAP, GAP_SQUARED
from ..device.memory import budget
from ..kernels import spec
from ..launch.pool import Pool
from ..launch.sizes import round_up
from ..neighbors.choose import Choice, engine
from ..neighbors.plan import Search
from ..tuning.parameters import parameters

if TYPE_CHECKING:
    from ..device.executor import Executor

Doubles = NDArray[np.float64]


def _middle(values: Doubles) -> float:
    """The mean, but of few digits: what the data have of digits is then left after it was subtracted."""
    mean = float(values.mean())
    step = 2.0 ** int(np.frexp(float(np.abs(values - mean).max()))[1] - 8)
    return round(mean / step) * step


class Projector:
    """Predictions of one target from neighbours in one or several libraries.

    Parameters
    ----------
    executor : Executor
    search : Search
    aim : ndarray (n_library,) of float64
        What library row j leads to (the target's value at j + Tp), NaN where there is none.
    barred : ndarray of bool (n_library,), optional
        Rows that may be no neighbours, beside those without a state or an aim.
    choice : Choice, optional
        How neighbours are searched.
    """

    def __init__(
        self, executor: Executor, search: Search, aim: Doubles, barred: NDArray[np.bool_] | None = None,
        choice: Choice | None = None,
    ) -> None:  # fmt: skip
        self.executor, self.search = executor, search
        self._pool = Pool(executor)
        known = np.isfinite(aim)
        self.shift = _middle(aim[known]) if known.any() else 0.0
        centred = np.where(known, aim, self.shift) - self.shift
        self.exponent = int(np.frexp(float(np.abs(centred).max(initial=0.0)))[1])
        values = np.where(known, np.ldexp(centred, -self.exponent), GAP).astype(search.dtype)
        self._aim = executor.upload(values, self._pool.get("aim", max(values.nbytes, 1)))
        self._barred = np.zeros(search.n_library, bool) if barred is None else barred
        inside = np.zeros(search.n_library, bool)
        inside[max(-search.Tp, 0) : search.library_end] = True
        self._barred = (self._barred | ~known) & inside
        self._masked = bool(self._barred.any())
        self._put_penalty()
        room = budget(executor.info).total // 2
        self.engine = engine(executor, search, "weights", choice, masked=self._masked, room=room, pool=self._pool)

    def _put_penalty(self) -> None:
        self._penalty = None
        if self._masked:
            values = np.zeros(self.search.n_library + 32, self.search.dtype)
            values[: self.search.n_library][self._barred] = GAP_SQUARED
            self._penalty = self.executor.upload(values, self._pool.get("penalty", values.nbytes))

    def predict(self, library: NDArray[Any], query: NDArray[Any]) -> tuple[Doubles, Doubles, float]:
        """Predictions and variances (n_libraries, n_query), NaN where there is no neighbour, and their rounding noise.

        Parameters
        ----------
        library, query : ndarray (n_libraries, stride)
            In the layout of the search; the same object where both are alike.
        """
        executor, s, i = self.executor, self.search, np.int32
        held = executor.upload(np.ascontiguousarray(library), self._pool.get("library", library.nbytes))
        asked = held
        if query is not library:
            asked = executor.upload(np.ascontiguousarray(query), self._pool.get("query", query.nbytes))
        mean, spread = np.empty((2, len(library), s.n_query), s.dtype)
        chosen = parameters(spec("predict"), {"dtype": s.dtype}, executor.info).parameters
        wg = int(chosen["wg"])
        for tables in self.engine.tables(held, asked, len(library), self._penalty):
            total = tables.n_libraries * s.n_query
            out = [self._pool.get(name, total * s.itemsize) for name in ("predicted", "variance")]
            # All libraries have the same target: its rows are not apart. What rows lead to has been looked up before.
            padded = tables.sweep.table_rows
            values = {**chosen, "counts": s.counts, "dtype": s.dtype, "table_tile": tables.sweep.table_tile}
            executor.launch(build(executor, spec("predict"), values), (round_up(total, wg),), (wg,), (
                self._aim, i(0), i(0), i(0), tables.rows, tables.values, i(s.n_query), i(0), np.uint64(total),
                i(padded), np.uint64(tables.n_libraries * padded), *out,
            ))  # fmt: skip
            here = slice(tables.first, tables.first + tables.n_libraries)
            for buffer, into in zip(out, (mean, spread), strict=True):
                part = np.empty((tables.n_libraries, s.n_query), s.dtype)
                into[here] = executor.download(buffer, part)
        predicted = np.ldexp(mean.astype(np.float64), self.exponent)
        there = predicted[np.isfinite(predicted)]
        noise = 8 * float(np.finfo(s.dtype).eps) * float(np.abs(there).max(initial=0.0))
        return predicted + self.shift, np.ldexp(spread.astype(np.float64), 2 * self.exponent), noise

    def release(self) -> None:
        """Give the device memory back."""
        self._pool.release()
