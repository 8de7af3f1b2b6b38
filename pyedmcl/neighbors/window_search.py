"""Neighbours within windows that overlap: the distance of a pair of rows is found once for all windows that hold it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.build import build
from ..device.memory import budget
from ..device.quirks import quirks_for
from ..kernels import spec
from ..launch.pacing import Pacer
from ..launch.pool import Pool
from ..launch.progress import report_part
from .choose import SearchRequest, decided_beforehand
from .coordinates import lay_out
from .plan import SearchProblem
from .tables import Tables, TableSpace

if TYPE_CHECKING:
    from ..device.executor import Executor
    from ..device.info import DeviceInfo

_LANES = 16  # query rows of a work-item: a vector
_LEAST_OVERLAP = 4  # windows that hold a row
_MOST_NEIGHBORS = 12  # whose lists stay in registers
_KEPT_BYTES = 64 << 20
_GROUPS = 4  # for each core, so that they share the work evenly


@dataclass(frozen=True)
class Overlapping:
    """Rows of series, and windows along them.

    Attributes
    ----------
    values : ndarray (n_rows, n_libraries)
        Conditioned; NaN for gaps, which lie in no window.
    starts : ndarray of int (n_windows,)
        First row of each window, ascending.
    """

    values: NDArray[Any]
    starts: NDArray[np.int_]


def windows_share(
    info: DeviceInfo, problem: SearchProblem, request: SearchRequest, n_windows: int, n_rows: int
) -> bool:
    """Whether windows are better searched together than each by itself.

    On processors: 4.3 times as fast with Intel's runtime for 200 windows of 300 rows, 10 rows apart, E = 3, in turn. A
    query lies between the first and the last library row of each of its windows, hence Tp = 0.
    """
    if quirks_for(info).scalar_work_items or problem.Tp != 0 or problem.coordinates:
        return False
    if max(problem.ks) > _MOST_NEIGHBORS or n_windows * problem.n_library < _LEAST_OVERLAP * n_rows:
        return False
    return decided_beforehand(request, info, problem) == []


class WindowSearch:
    """Tables of all libraries of all windows: library i of window w has place w * n_libraries + i.

    Parameters
    ----------
    executor : Executor
    problem : SearchProblem
        Of one window.
    data : Overlapping
    data_bytes : int
        Size of all windows together, as for :class:`~pyedmcl.neighbors.tables.TableSpace`.
    pool : Pool
    """

    def __init__(
        self, executor: Executor, problem: SearchProblem, data: Overlapping, *, data_bytes: int, pool: Pool
    ) -> None:
        self._executor, self._problem, self._data, self._pool = executor, problem, data, pool
        self._data_bytes = data_bytes
        self._pacers = {E: Pacer(executor.info, "windows", E, problem.dtype) for E in problem.dims}
        n_rows = len(data.values)
        rows = SearchProblem(problem.dims, problem.ks, problem.tau, 0, -1, n_rows, n_rows, problem.dtype)
        self._front, self._stride = rows.front, rows.stride(n_rows)
        self._tiles = -(-n_rows // _LANES)
        values = lay_out(data.values, rows, n_rows, n_rows)
        held = pool.get("rows of windows", values.nbytes + 4 * _LANES * problem.itemsize)
        self._series = executor.upload(values, held)
        starts = np.ascontiguousarray(data.starts, np.int32)
        self._starts = executor.upload(starts, pool.get("starts of windows", starts.nbytes))
        self.parameters: dict[str, Any] = {}
        self.decisions: list[dict[str, Any]] = []

    def tables(self) -> Iterator[Tables]:
        """Tables of weights of each dimension in turn, of as many libraries as there is memory for."""
        n = len(self._data.starts) * self._data.values.shape[1]
        for E in self._problem.dims:
            space = TableSpace(
                self._executor, self._problem.restrict((E,)), "weights", data_bytes=self._data_bytes, pool=self._pool
            )
            self.parameters = space.parameters
            yield from space.tables(n, self._fill)

    def _fill(self, tables: Tables) -> None:
        """Write the tables of some libraries."""
        problem, knn_pass, n = tables.problem, tables.knn_pass, self._data.values.shape[1]
        E, k, width = problem.dims[0], problem.ks[0], problem.n_library
        lost = problem.first_state(E)
        # Only windows of which these tables hold libraries.
        held = tables.first // n, -(-(tables.first + tables.n_libraries) // n)
        cover = np.clip(self._cover(lost, width), *held).astype(np.int32)
        most = max(int((cover[:, 1] - cover[:, 0]).max()), 1)
        values = {"E": E, "tau": problem.tau, "k": k, "lanes": _LANES, "dtype": problem.dtype}
        kernel = build(self._executor, spec("window_knn"), values)
        list_bytes = most * 2 * k * _LANES * problem.itemsize
        limit = budget(self._executor.info)
        room = min(_KEPT_BYTES, limit.total // 8, limit.largest)
        groups = max(min(_GROUPS * self._executor.info.compute_units, room // list_bytes), 1)
        fixed: dict[str, Any] = {
            "series": self._series, "stride": self._stride, "front": self._front, "starts": self._starts,
            "width": width, "lost": lost, "radius": min(problem.exclusion_radius, width),
            "cover": self._executor.upload(cover, self._pool.get("cover of windows", cover.nbytes)),
            "n_tiles": self._tiles, "n_libraries": n, "first": tables.first,
            "last": tables.first + tables.n_libraries, "out_row": tables.rows, "out_value": tables.values,
            "table_begin": tables.begin(E), "table_rows": knn_pass.table_rows, "k_stride": knn_pass.stride(E),
            "tile": knn_pass.table_tile, "kept": self._pool.get("lists of windows", groups * list_bytes), "most": most,
        }  # fmt: skip
        tasks, pacer, begin = n * self._tiles, self._pacers[E], 0
        cost = _LANES * (2.0 * width * (2 * E + 3) + most * 12.0 * k)
        while begin < tasks:
            end = min(begin + max(pacer.units(cost), groups), tasks)
            event = self._executor.launch(
                kernel, (min(groups, end - begin),), (1,), task_begin=begin, task_end=end, **fixed
            )  # fmt: skip
            pacer.launched(event, cost * (end - begin))
            report_part(end, tasks, self._tiles * _LANES, begin)
            begin = end

    def _cover(self, lost: int, width: int) -> NDArray[np.int_]:
        """Of each tile of rows the first window that holds one of its states, and one past the last."""
        starts, t0 = self._data.starts, np.arange(self._tiles) * _LANES
        first = np.searchsorted(starts, t0 - width, side="right")
        last = np.searchsorted(starts, t0 + _LANES - 1 - lost, side="right")
        return np.stack([first, np.maximum(last, first)], axis=1)
