"""Targets on the device: their layout, their codes in 16 bits, and those that sampled cross maps predict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..device.info import DeviceInfo
from ..device.memory import MemoryBudget
from ..errors import DeviceMemoryError
from ..kernels import spec
from ..kernels.build import build
from ..kernels.specs import maps, smap
from ..kernels.specs.maps import ERROR, MOST_COLUMNS, MOST_ERROR, VALUES
from ..kernels.texts import GAP
from ..launch.staging import open_size, round_up

if TYPE_CHECKING:
    from ..device.executor import Buffer, Executor
    from ..launch.staging import Pool
    from ..search.tables import Tables


# How targets lie on the device: time-major, with room for what the last work-group reads behind them.


#: Rows and columns are rounded up to multiples of it, so that the widest vectors divide the columns, and work-groups
#: the rows.
PADDED_TO = 16


@dataclass(frozen=True)
class TargetLayout:
    """Rows and columns that there is room for, [rows][stride]."""

    rows: int
    stride: int

    @property
    def elements(self) -> int:
        """Numbers that there is room for."""
        return self.rows * self.stride


def layout_of_lookup(n_steps: int, n_targets: int) -> TargetLayout:
    """For a lookup; other programs are told the same by ``usage`` of the SPEC, which a test compares."""
    return _layout(n_steps, n_targets, maps.MOST_COLUMNS)


def layout_of_smap(n_steps: int, n_targets: int) -> TargetLayout:
    """For a map of S-map, whose last step over the rows of a library may lie behind the last row in part."""
    return _layout(n_steps + smap.MOST_STEP, n_targets, smap.MOST_COLUMNS)


def _layout(n_steps: int, n_targets: int, most_columns: int) -> TargetLayout:
    """The last work-group may read ``most_columns`` numbers behind the last column, in rows that must be there."""
    stride = round_up(n_targets, PADDED_TO)
    return TargetLayout(round_up(n_steps + -(-most_columns // stride), PADDED_TO), stride)


def require_room(info: DeviceInfo, limit: MemoryBudget, shape: tuple[int, int], nbytes: int) -> None:
    """Refuse targets (n_steps, n_targets) that take more than three quarters of the memory, which libraries need, too.
    """
    most = min(limit.largest, limit.total * 3 // 4)
    if nbytes > most:
        raise DeviceMemoryError(
            f"{shape[1]:,} targets of {shape[0]:,} steps need {nbytes:,} bytes on the device; {most:,} may be used for "
            f"them on {info.name} (raise PYEDMCL_MEMORY_FRACTION or PYEDMCL_MEMORY_LIMIT)"
        )


def columns_of_rho(order: NDArray[Any]) -> NDArray[np.int32]:
    """The column of rho of each target of a lookup, with zeros behind them that the last work-group may read."""
    return np.concatenate([order, np.zeros(maps.MOST_COLUMNS, order.dtype)]).astype(np.int32)


# Targets in 16 bits, for lookups at half the bytes: which of them may have so few, and their codes on the device.


_MOST_RATIO = (MOST_ERROR / (2 * ERROR)) ** 2  # of range^2 to S
#: Why targets are looked up in 32 bits.
GAPS = "data have gaps, or too few rows for neighbours"
TOO_WIDE = (
    "they do not vary, or their range is more than a fifth of the square root of the rows, times their standard "
    "deviation"
)
#: Targets of a dimension, at least, that have 16 bits: fewer take as long or longer, and texts of their own.
COMPACT_LEAST = 128
TOO_FEW = f"fewer than {COMPACT_LEAST} targets have their dimension, and gain nothing by 16 bits"
_PARTS: int = VALUES["column_parts"]
_LANES: int = VALUES["library_parts"]
_SCALES = 3  # numbers of a column


@dataclass(frozen=True)
class Codes:
    """Targets in 16 bits on the device."""

    # [step][stride], as ``clkernels/compact.clh`` has it.
    values: Buffer
    # [stride], about the mean of each column, in its own unit.
    centres: Buffer
    made_by: CompactTargets


class CompactTargets:
    """Makes codes of the targets that lie on a device.

    Parameters
    ----------
    pool : Pool
        Which holds them.
    n_steps : int
        Steps of the targets.
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


# Targets that sampled cross maps predict, centred once for all libraries.


_TOGETHER = 256  # targets that are centred at once, for the memory that it takes


class FutureTargets:
    """What each row is to predict, for several targets.

    Parameters
    ----------
    values : ndarray (n_targets, n_steps) of float64
        The target's value at t + Tp in row t, NaN where there is none.

    Attributes
    ----------
    present : ndarray of bool (n_targets, n_steps)
        Where there is one.
    pattern : ndarray of int (n_targets,)
        Targets that are present in the same rows have the same number.
    """

    def __init__(self, values: NDArray[np.float64]) -> None:
        self.values, self.present = values, np.isfinite(values)
        self.pattern = patterns(self.present)
        self._centred: NDArray[Any] | None = None
        self._known = np.zeros(len(values), bool)  # rows of it that have been computed

    def centred(self, targets: NDArray[np.int_], dtype: DTypeLike) -> NDArray[Any]:
        """Targets (n, n_steps) around their means and below 1 in magnitude; ``GAP`` where there is none."""
        if self._centred is None or self._centred.dtype != dtype:
            self._centred = np.full(self.values.shape, GAP, dtype)
            self._known[:] = False
        missing = np.unique(targets[~self._known[targets]])
        for number in np.unique(self.pattern[missing]):
            alike = missing[self.pattern[missing] == number]
            for first in range(0, len(alike), _TOGETHER):
                self._centre(alike[first : first + _TOGETHER], self._centred)
        self._known[missing] = True
        return self._centred[targets]

    def _centre(self, targets: NDArray[np.int_], out: NDArray[Any]) -> None:
        """Targets that are present in the same rows."""
        present = self.present[targets[0]]
        if present.any():
            values = np.ascontiguousarray(self.values[targets][:, present])
            values -= values.mean(axis=1, keepdims=True)
            reach = np.maximum(values.max(axis=1, keepdims=True), -values.min(axis=1, keepdims=True))
            rows = np.full((len(targets), out.shape[1]), GAP, out.dtype)
            rows[:, present] = np.ldexp(values, -np.frexp(reach)[1])
            out[targets] = rows


def patterns(masks: NDArray[np.bool_]) -> NDArray[np.int_]:
    """Numbers (n,) of masks (n, n_steps), the same for masks that are alike, in the order in which they appear."""
    if masks.all():
        return np.zeros(len(masks), int)
    number_of: dict[bytes, int] = {}
    return np.array([number_of.setdefault(mask.tobytes(), len(number_of)) for mask in masks], int)
