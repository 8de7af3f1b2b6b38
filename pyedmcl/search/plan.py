"""From a search's numbers to what a device does: pure arithmetic, picklable, no OpenCL object.

A search for neighbours is described once (:class:`SearchProblem`) and cut into passes over ranges of embedding
dimensions. Each pass (:class:`KnnPass`) knows its specialisation, the sizes of its buffers, and its launches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..launch.staging import round_up

# Columns before row 0 and behind the last row are padded to this many elements: vector loads may pass the ends.
_ALIGN = 16
TILE_LAGS = 8  # rows of a tile that shares sums along diagonals, a lag apart
_APART = 7  # row groups per tile of a long library at least
SHARERS = 8  # work-items that share a query row where rows are few
_FULL_GROUPS = 4  # work-groups for each compute unit: with more, sharing rows takes longer


@dataclass(frozen=True)
class SearchProblem:
    """A search for the nearest neighbours of states."""

    # Embedding dimensions E, ascending.
    dims: tuple[int, ...]
    # Number of neighbours, k, for each E.
    ks: tuple[int, ...]
    # tau, Tp: Lag and horizon: a library row j may be a neighbour if j + Tp lies inside the series.
    tau: int
    Tp: int
    # Rows with |t - j| up to this are no neighbours; -1 for a cross search, where none is excluded.
    exclusion_radius: int
    # n_library, n_query: Rows of the library series and of the query series.
    n_library: int
    n_query: int
    # "float32" or "float64".
    dtype: str = "float32"
    # Whether every row has all its coordinates, which lie one behind another (see :mod:`pyedmcl.search.tables`).
    # Otherwise states are lags of one series, and the first rows have none.
    coordinates: bool = False

    @property
    def itemsize(self) -> int:
        return int(np.dtype(self.dtype).itemsize)

    def k(self, E: int) -> int:
        """Neighbours of a state in dimension ``E``."""
        return self.ks[self.dims.index(E)]

    @property
    def simplexes(self) -> int:
        """How many times the E + 1 neighbours of a simplex are searched, in the largest dimension and rounded.

        It is 1 for most predictions, and more where sub-libraries will be drawn from the neighbours.
        """
        return max(round(max(self.ks) / (max(self.dims) + 1)), 1)

    @property
    def front(self) -> int:
        """Columns before row 0, so that a vector that ends with row 0 can be read with its oldest lag."""
        return round_up((max(self.dims) - 1) * self.tau, _ALIGN) + _ALIGN

    def first_state(self, E: int) -> int:
        """The first row that can have a state of dimension ``E``."""
        return 0 if self.coordinates else (E - 1) * self.tau

    @property
    def library_begin(self) -> int:
        """First row that may be a neighbour in the smallest dimension."""
        return max(self.first_state(min(self.dims)), -self.Tp, 0)

    @property
    def library_end(self) -> int:
        """One past the last row that may be a neighbour."""
        return max(min(self.n_library, self.n_library - self.Tp), 0)

    def stride(self, n_steps: int) -> int:
        """Columns of one padded series of ``n_steps``."""
        return self.front + round_up(n_steps + 2 * _ALIGN, _ALIGN)

    @property
    def overrun(self) -> int:
        """Elements behind the last series that a kernel may read, whatever they hold: tiles are not cut at its end."""
        return 0 if self.coordinates else TILE_LAGS * self.tau

    def restrict(self, dims: Sequence[int]) -> SearchProblem:
        """The same search for some of its dimensions."""
        if tuple(dims) == self.dims:
            return self
        if self.coordinates:
            raise ValueError(f"a search among coordinates has one dimension, {self.dims}, and {tuple(dims)} is another")
        return replace(self, dims=tuple(dims), ks=tuple(self.k(E) for E in dims))


def table_stride(k: int, emit: str) -> int:
    """Columns of a neighbour table: weights are padded to four so that the lookup can load them as vectors."""
    return round_up(k, 4) if emit == "weights" else k


def _groups_for(k: int) -> int:
    """Row groups whose minima bound the k-th distance: with some 2.5 k of them about 1.25 k rows are collected."""
    return max(5 * k // 2 + 4, 15) | 1


def with_enough_groups(parameters: Mapping[str, Any], problem: SearchProblem) -> Mapping[str, Any]:
    """Parameters for a search with far more than the E + 1 neighbours that parameters are mostly tuned for.

    The bound comes from some 2.5 k row groups. With hardly more groups than neighbours it holds back few rows, and with
    fewer groups than neighbours none, so that all rows would have to be sorted.
    """
    if problem.simplexes == 1:
        return parameters
    k, n = max(problem.ks), max(problem.library_end - problem.library_begin, 1)
    share, unroll = int(parameters["bound_share"]), int(parameters["unroll"])
    while share * unroll * _groups_for(k) > n and (share > 1 or unroll > 1):
        share, unroll = (share - 1, unroll) if share > 1 else (share, unroll // 2)
    # Staged rows are read four at a time.
    tile = int(parameters["tile"]) if unroll % 4 == 0 else 0
    return {**parameters, "bound_share": share, "unroll": unroll, "tile": tile}


@dataclass(frozen=True)
class KnnPass:
    """The kernel ``knn`` over the library, for a range of dimensions."""

    # Restricted to the pass's dimensions.
    problem: SearchProblem
    # "neighbours" (row, squared distance) or "weights" (row, normalised simplex weight).
    emit: str
    # Tuned parameters of the kernel.
    parameters: Mapping[str, Any]
    # Scalar work-items that share a query row.
    sharers: int = 1

    @property
    def _buffers(self) -> int:
        """Query rows that a work-group has scratch memory for, each of them once for each sharer."""
        return int(self.parameters["lanes"] * self.parameters["wg"])

    @property
    def rows_per_tile(self) -> int:
        """Query rows of a work-group."""
        return self._buffers // self.sharers

    def shared(self, n_libraries: int, units: int) -> KnnPass:
        """This pass with as many sharers of a row as keep a device of ``units`` compute units busy with few libraries.

        There are two numbers of sharers only, one and :data:`SHARERS`, since each has a text of its own.
        """
        problem, wg = self.problem, int(self.parameters["wg"])
        steps = -(-(problem.library_end - problem.library_begin) // int(self.parameters["unroll"]))
        most = units * _FULL_GROUPS * wg
        pays = problem.n_query * n_libraries * SHARERS <= most and steps >= 2 * SHARERS
        possible = self.parameters["lanes"] == 1 and wg % SHARERS == 0
        return replace(self, sharers=SHARERS) if pays and possible else self

    @property
    def tiles(self) -> int:
        """Query tiles of a library."""
        return -(-self.problem.n_query // self.rows_per_tile)

    @property
    def _most_groups(self) -> int:
        """Row groups at most: as many as bound the distance well, and room for an odd number in each tile."""
        return _groups_for(max(self.problem.ks)) * 4 // 3

    @cached_property
    def merged(self) -> tuple[int, ...]:
        """How many row groups count as one in each dimension: with fewer neighbours, fewer minima need be looked at."""
        groups = [_groups_for(k) for k in self.problem.ks]
        return tuple(max((2 * max(groups) + g) // (2 * g), 1) for g in groups)

    @cached_property
    def capacities(self) -> tuple[int, ...]:
        """Entries, of two numbers each, of every dimension's candidate buffer.

        Before candidates are collected the buffer holds the minima of row groups. Its size does not depend on the
        series' length, so that one compiled kernel serves all lengths.
        """
        share, unroll = int(self.parameters["bound_share"]), int(self.parameters["unroll"])
        return tuple(
            round_up(max(-(-self._most_groups // (2 * merged)), k + 5 * k * share // 8 + 8 + unroll), 4)
            for k, merged in zip(self.problem.ks, self.merged, strict=True)
        )

    @cached_property
    def _row_groups(self) -> tuple[int, int]:
        """Row groups of the bound (``templates/knn_bound.mako``): of a library tile, and those there is room for.

        An odd number of row groups per tile keeps a periodic series from falling into a few of them. Few row groups per
        tile would keep neighbours in time together, which makes a bound loose.

        For other programs ``kernels/specs/search.py`` has the same as formulas, which
        ``tests/export/test_kernel_source.py``
        compares with these.
        """
        p, unroll, share = self.problem, self.parameters["unroll"], self.parameters["bound_share"]
        n = max(p.library_end - p.library_begin, 1)
        enough = _groups_for(max(p.ks))
        if not self.parameters["tile"]:
            groups = max(min(enough, -(-n // (unroll * share))), 1)
            return groups, groups
        tile = self.parameters["tile"]
        tiles, steps = -(-n // (tile * share)), -(-min(tile, n) // unroll)
        per_tile = max(min(-(-enough // tiles) | 1, steps, self._most_groups), 1)
        if tiles * per_tile > self._most_groups:
            per_tile = max(min(max(per_tile, _APART), steps, self._most_groups), 1)
        return per_tile, min(tiles, max(self._most_groups // per_tile, 1)) * per_tile

    @property
    def groups_per_tile(self) -> int:
        return self._row_groups[0]

    @property
    def groups_per_round(self) -> int:
        return self._row_groups[1]

    @property
    def scratch_bytes(self) -> int:
        """Scratch memory of one work-group.

        It is ``GROUP_SCRATCH`` of ``templates/knn.cl.mako``, as ``tests/search/test_scratch.py`` asserts. For other
        programs ``kernels/specs/search.py`` has the same as a formula.
        """
        nbytes = 2 * sum(self.capacities) * self.problem.itemsize
        if self.parameters["lanes"] == 1:  # rows that are noted for the end of a tile, within which two bytes do
            nbytes += int(self.parameters["hot"]) * (2 if self.parameters["tile"] else 4)
        return nbytes * self._buffers

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """Columns of the table of each dimension."""
        return tuple(table_stride(k, self.emit) for k in self.problem.ks)

    def stride(self, E: int) -> int:
        """Columns of the table of dimension ``E``."""
        return self.strides[self.problem.dims.index(E)]

    @property
    def table_tile(self) -> int:
        """Query rows whose weights lie side by side, neighbour by neighbour.

        These are the rows of a work-item, so that it stores whole vectors. Entry (t, i) of a table of stride k is at
        ``t // tile * tile * k + i * tile + t % tile``.
        """
        return int(self.parameters["lanes"]) if self.emit == "weights" else 1

    @property
    def table_rows(self) -> int:
        """Query rows of a table, in whole tiles."""
        return round_up(self.problem.n_query, self.table_tile)

    def table_bytes(self, n_libraries: int) -> int:
        """Rows and values of all dimensions for ``n_libraries``."""
        return sum(self.strides) * self.table_rows * n_libraries * (4 + self.problem.itemsize)

    def table_begin(self, E: int, n_libraries: int) -> int:
        """Element at which the table of ``E`` begins."""
        before = self.strides[: self.problem.dims.index(E)]
        return sum(before) * self.table_rows * n_libraries

    def values(self, masked: bool) -> dict[str, Any]:
        """Specialisation and tuned parameters for the template; ``masked`` where there is a penalty per library row."""
        p = self.problem
        return {
            **self.parameters, "dims": p.dims, "counts": p.ks, "tau": p.tau, "dtype": p.dtype, "emit": self.emit,
            "masked": masked, "capacities": self.capacities, "merged": self.merged, "sharers": self.sharers,
        }  # fmt: skip

    def tile_cost(self) -> float:
        """Lane operations of a query tile, roughly.

        Each of two sweeps takes 2 E and a few per dimension for each pair; sorting comes on top.
        """
        p = self.problem
        n = max(p.library_end - p.library_begin, 1)
        sweeps = float(4 * max(p.dims) + 4 * len(p.dims) + 2) * n
        sorting = sum(8.0 * k * min(2 * k, n) for k in p.ks)
        return (sweeps + sorting) * self.rows_per_tile + 1e4 * len(p.dims)


def split_dims(dims: Sequence[int], most: int) -> list[tuple[int, ...]]:
    """Ascending dimensions cut into ranges of about equal length, at most ``most`` each."""
    ordered = sorted(set(dims))
    if len(ordered) == 1:
        return [(int(ordered[0]),)]
    n = max(-(-len(ordered) // most), 1)
    return [tuple(int(E) for E in part) for part in np.array_split(np.array(ordered, int), n) if len(part)]
