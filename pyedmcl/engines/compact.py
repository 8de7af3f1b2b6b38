"""Targets in 16 bits, for lookups at half the bytes: which of them may have so few, and their codes on the device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.build import build
from ..kernels import spec
from ..kernels.compact import ERROR, MOST_ERROR, VALUES
from ..kernels.lookup import MOST_COLUMNS
from ..launch.sizes import open_size

if TYPE_CHECKING:
    from ..device.executor import Buffer, Executor
    from ..launch.pool import Pool
    from ..neighbors.tables import Tables
    from .target_layout import TargetLayout

_MOST_RATIO = (MOST_ERROR / (2 * ERROR)) ** 2  # of range^2 to S
#: Why targets are looked up in 32 bits.
GAPS = "data have gaps, or too few rows for neighbours"
TOO_WIDE = (
    "they do not vary, or their range is more than a fifth of the square root of the rows, times their standard "
    "deviation"
)
_PARTS: int = VALUES["column_parts"]
_LANES: int = VALUES["library_parts"]
_SCALES = 3  # numbers of a column


@dataclass(frozen=True)
class Codes:
    """Targets in 16 bits on the device.

    Attributes
    ----------
    values : Buffer
        [step][stride], as ``clkernels/compact.clh`` has it.
    centres : Buffer
        [stride], about the mean of each column, in its own unit.
    made_by : CompactTargets
    """

    values: Buffer
    centres: Buffer
    made_by: CompactTargets


class CompactTargets:
    """Makes codes of the targets that lie on a device.

    Parameters
    ----------
    executor : Executor
    pool : Pool
        Which holds them.
    n_steps : int
        Steps of the targets.
    layout : TargetLayout
    """

    def __init__(self, executor: Executor, pool: Pool, n_steps: int, layout: TargetLayout) -> None:
        self._executor, self._pool = executor, pool
        self._n_steps, self._rows, self._stride = n_steps, layout.rows, layout.stride
        self._scales = pool.get("scales", (_SCALES * layout.stride + MOST_COLUMNS) * 4)
        self._codes = pool.get("codes", self.nbytes(layout))
        self._counted: tuple[Tables, int] | None = None

    @staticmethod
    def nbytes(layout: TargetLayout) -> int:
        """Bytes of the codes."""
        return layout.elements * 2

    def encode(self, targets: Buffer, first: int, end: int) -> Codes:
        """The codes of all targets, [rows][stride], of which rows first to end - 1 are predicted."""
        parts = self._pool.get("parts", 4 * _PARTS * self._stride * 4)
        self._launch(
            "compact_parts", (self._stride, _PARTS), targets=targets, target_stride=self._stride,
            n_steps=self._n_steps, first=first, end=end, parts=parts,
        )  # fmt: skip
        self._launch(
            "compact_scales", (self._stride,), parts=parts, target_stride=self._stride,
            n_scored=max(end - first, 0), scales=self._scales,
        )  # fmt: skip
        self._launch(
            "compact", (self._stride, self._rows), targets=targets, target_stride=self._stride, scales=self._scales,
            codes=self._codes,
        )  # fmt: skip
        return Codes(self._codes, self._scales, self)

    def allowed(self, n: int) -> NDArray[np.bool_]:
        """Whether 16 bits are enough, for each of the first ``n`` columns that were encoded last."""
        ratio = np.empty(n, np.float32)
        self._executor.download(self._scales, ratio, 2 * self._stride * 4)
        exact_enough: NDArray[np.bool_] = ratio <= _MOST_RATIO
        return exact_enough

    def repeats(self, tables: Tables, E: int, predicted: tuple[int, int]) -> Buffer:
        """How often rows of each library are neighbours again and again, [library], of some tables and a dimension."""
        n, steps = tables.n_libraries, self._n_steps
        counts = self._pool.get("repeats", n * 4)
        if self._counted is not None and self._counted[0] is tables and self._counted[1] == E:
            return counts
        used, parts = self._pool.get("used", n * steps * 4), self._pool.get("used parts", n * _LANES * 2 * 8)
        self._launch("compact_clear", (steps, n), used=used, n_rows=steps)
        self._launch(
            "compact_used", (_LANES, n), rows=tables.rows, weights=tables.values, table_begin=tables.begin(E),
            table_rows=tables.knn_pass.table_rows, k=tables.problem.k(E), stride=tables.knn_pass.stride(E),
            tile=tables.knn_pass.table_tile, t_begin=predicted[0], t_end=predicted[1], n_rows=steps, used=used,
            parts=parts,
        )  # fmt: skip
        self._launch(
            "compact_repeats", (n,), parts=parts, n_libraries=n, n_predicted=max(predicted[1] - predicted[0], 1),
            repeats=counts,
        )  # fmt: skip
        self._counted = tables, E
        return counts

    def mark(
        self, repeats: Buffer, columns: tuple[int, int], target_of: Buffer, libraries: tuple[int, int], stride: int,
        rho: Buffer,
    ) -> None:  # fmt: skip
        """Mark the pairs of some columns whose predictions are made of few rows again and again.

        ``libraries`` are the row of rho of the first one, and how many there are; ``stride`` is that of rho.
        """
        begin, end = columns
        self._launch(
            "compact_mark", (end - begin, libraries[1]), scales=self._scales, target_stride=self._stride,
            column_begin=begin, column_end=end, target_of=target_of, repeats=repeats, first_library=libraries[0],
            rho_stride=stride, rho=rho,
        )  # fmt: skip

    def _launch(self, name: str, size: tuple[int, ...], **arguments: Any) -> None:
        kernel = build(self._executor, spec("compact"), VALUES, name)
        self._executor.launch(kernel, open_size(*size), None, **arguments)
