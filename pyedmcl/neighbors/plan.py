"""From a problem's numbers to what a device does: pure arithmetic, picklable, no OpenCL object.

A search for neighbours is described once (:class:`Search`), cut into passes over ranges of embedding dimensions, and
each pass (:class:`Pass`) knows its specialisation, its buffers' sizes and its launches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..launch.sizes import round_up

# Columns before row 0 and behind the last row are padded to this many elements: vector loads may pass the ends.
_ALIGN = 16
_APART = 7  # groups per tile of a long library at least


@dataclass(frozen=True)
class Search:
    """A search for the nearest neighbours of delay-embedded rows.

    Attributes
    ----------
    dims : tuple of int
        Embedding dimensions E, ascending.
    counts : tuple of int
        Neighbours k for each E.
    tau, Tp : int
        Lag; prediction interval (a library row j is legal if j + Tp lies inside the series).
    exclusion_radius : int
        Rows with |t - j| up to this are no neighbours; -1 for a cross search, where none is excluded.
    n_library, n_query : int
        Steps of the library series and of the query series.
    dtype : str
        "float32" or "float64".
    """

    dims: tuple[int, ...]
    counts: tuple[int, ...]
    tau: int
    Tp: int
    exclusion_radius: int
    n_library: int
    n_query: int
    dtype: str = "float32"

    @property
    def itemsize(self) -> int:
        return int(np.dtype(self.dtype).itemsize)

    @property
    def simplexes(self) -> int:
        """Neighbours that are asked for, in those of a simplex of the largest dimension (E + 1), rounded."""
        return max(round(max(self.counts) / (max(self.dims) + 1)), 1)

    @property
    def front(self) -> int:
        """Columns before row 0, so that a vector that ends with row 0 can be read with its oldest lag."""
        return round_up((max(self.dims) - 1) * self.tau, _ALIGN) + _ALIGN

    @property
    def library_begin(self) -> int:
        """First row that can be legal for the smallest dimension."""
        return max((min(self.dims) - 1) * self.tau, -self.Tp, 0)

    @property
    def library_end(self) -> int:
        """One past the last row that can be legal."""
        return max(min(self.n_library, self.n_library - self.Tp), 0)

    def stride(self, n_steps: int) -> int:
        """Columns of one padded series of ``n_steps``."""
        return self.front + round_up(n_steps + 2 * _ALIGN, _ALIGN)

    def restrict(self, dims: Sequence[int]) -> Search:
        """The same search for some of its dimensions."""
        of = dict(zip(self.dims, self.counts, strict=True))
        return Search(
            tuple(dims), tuple(of[E] for E in dims), self.tau, self.Tp, self.exclusion_radius,
            self.n_library, self.n_query, self.dtype,
        )  # fmt: skip


def table_stride(k: int, emit: str) -> int:
    """Columns of a neighbour table: weights are padded to four so that the lookup can load them as vectors."""
    return round_up(k, 4) if emit == "weights" else k


def _groups_for(k: int) -> int:
    """Groups of library rows whose minima bound the k-th distance: with some 2.5 k about 1.25 k rows are collected."""
    return max(5 * k // 2 + 4, 15) | 1


def with_enough_groups(parameters: Mapping[str, Any], search: Search) -> Mapping[str, Any]:
    """Parameters for a search with far more than E + 1 neighbours, which most are tuned for.

    The bound comes from some 2.5 k groups of rows: with hardly more groups than neighbours it holds back few rows,
    and with fewer none, so that all rows have to be sorted.
    """
    if search.simplexes == 1:
        return parameters
    k, n = max(search.counts), max(search.library_end - search.library_begin, 1)
    share, unroll = int(parameters["bound_share"]), int(parameters["unroll"])
    while share * unroll * _groups_for(k) > n and (share > 1 or unroll > 1):
        share, unroll = (share - 1, unroll) if share > 1 else (share, unroll // 2)
    # Staged rows are read four at a time.
    tile = int(parameters["tile"]) if unroll % 4 == 0 else 0
    return {**parameters, "bound_share": share, "unroll": unroll, "tile": tile}


@dataclass(frozen=True)
class Pass:
    """One sweep over the library for a range of dimensions.

    Attributes
    ----------
    search : Search
        Restricted to the pass's dimensions.
    emit : str
        "neighbours" (row, squared distance) or "weights" (row, normalised simplex weight).
    masked : bool
        Whether a penalty per library row is given (targets with gaps).
    parameters : mapping
        Tuned: lanes, wg, unroll, tile.
    """

    search: Search
    emit: str
    masked: bool
    parameters: Mapping[str, Any]

    @property
    def rows_per_task(self) -> int:
        return int(self.parameters["lanes"] * self.parameters["wg"])

    @property
    def tiles(self) -> int:
        """Tasks per library: tiles of query rows."""
        return -(-self.search.n_query // self.rows_per_task)

    @property
    def _most_groups(self) -> int:
        """Groups of library rows at most: what is wanted, and room for an odd number in each tile."""
        return _groups_for(max(self.search.counts)) * 4 // 3

    @property
    def merged(self) -> tuple[int, ...]:
        """How many groups make one for each dimension: the fewer neighbours, the fewer minima have to be looked at."""
        wanted = [_groups_for(k) for k in self.search.counts]
        return tuple(max((2 * max(wanted) + g) // (2 * g), 1) for g in wanted)

    @property
    def capacities(self) -> tuple[int, ...]:
        """Entries, of two numbers, of each dimension's candidate buffer; it holds the minima of groups before.

        Independent of the series' length, so that one compiled kernel serves all lengths.
        """
        share, unroll = int(self.parameters["bound_share"]), int(self.parameters["unroll"])
        return tuple(
            round_up(max(-(-self._most_groups // (2 * merged)), k + 5 * k * share // 8 + 8 + unroll), 4)
            for k, merged in zip(self.search.counts, self.merged, strict=True)
        )

    @cached_property
    def _bound(self) -> tuple[int, int]:
        """(groups per tile, groups until the first one goes on).

        An odd number of groups per tile keeps a periodic series from falling into a few of them; few groups per tile
        keep neighbours in time together, which makes a bound loose.
        """
        s, unroll, share = self.search, self.parameters["unroll"], self.parameters["bound_share"]
        n = max(s.library_end - s.library_begin, 1)
        wanted = _groups_for(max(s.counts))
        if not self.parameters["tile"]:
            groups = max(min(wanted, -(-n // (unroll * share))), 1)
            return groups, groups
        tile = self.parameters["tile"]
        tiles, steps = -(-n // (tile * share)), -(-min(tile, n) // unroll)
        per_tile = max(min(-(-wanted // tiles) | 1, steps, self._most_groups), 1)
        if tiles * per_tile > self._most_groups:
            per_tile = max(min(max(per_tile, _APART), steps, self._most_groups), 1)
        return per_tile, min(tiles, max(self._most_groups // per_tile, 1)) * per_tile

    @property
    def groups_per_tile(self) -> int:
        return self._bound[0]

    @property
    def groups_per_round(self) -> int:
        return self._bound[1]

    @property
    def scratch_bytes(self) -> int:
        """Scratch memory of one work-group."""
        places = 2 * sum(self.capacities) * self.search.itemsize
        if self.parameters["lanes"] == 1:  # the rows noted: in a tile two bytes are enough
            places += int(self.parameters["hot"]) * (2 if self.parameters["tile"] else 4)
        return places * self.rows_per_task

    @property
    def strides(self) -> tuple[int, ...]:
        return tuple(table_stride(k, self.emit) for k in self.search.counts)

    @property
    def table_tile(self) -> int:
        """Query rows whose weights lie side by side, neighbour by neighbour: those of a work-item, so that it stores
        whole vectors. Entry (t, i) of a table of stride k is at ``t // tile * tile * k + i * tile + t % tile``."""
        return int(self.parameters["lanes"]) if self.emit == "weights" else 1

    @property
    def table_rows(self) -> int:
        """Query rows of a table, in whole tiles."""
        return round_up(self.search.n_query, self.table_tile)

    def table_bytes(self, n_libraries: int) -> int:
        """Rows and values of all dimensions for ``n_libraries``."""
        return sum(self.strides) * self.table_rows * n_libraries * (4 + self.search.itemsize)

    def table_begin(self, E: int, n_libraries: int) -> int:
        """Element at which the table of ``E`` begins."""
        before = self.strides[: self.search.dims.index(E)]
        return sum(before) * self.table_rows * n_libraries

    @property
    def values(self) -> dict[str, Any]:
        """Specialisation and tuned parameters for the template."""
        s = self.search
        return {
            **self.parameters, "dims": s.dims, "counts": s.counts, "tau": s.tau, "dtype": s.dtype, "emit": self.emit,
            "masked": self.masked, "capacities": self.capacities, "merged": self.merged,
        }  # fmt: skip

    def task_cost(self) -> float:
        """Lane operations of a task, roughly: two sweeps of 2 E and a few per dimension for each pair, then sorting."""
        s = self.search
        n = max(s.library_end - s.library_begin, 1)
        sweeps = float(4 * max(s.dims) + 4 * len(s.dims) + 2) * n
        sorting = sum(8.0 * k * min(2 * k, n) for k in s.counts)
        return (sweeps + sorting) * self.rows_per_task + 1e4 * len(s.dims)


def split_dims(dims: Sequence[int], most: int) -> list[tuple[int, ...]]:
    """Ascending dimensions cut into ranges of about equal length, at most ``most`` each."""
    ordered = sorted(set(dims))
    n = max(-(-len(ordered) // most), 1)
    return [tuple(int(E) for E in part) for part in np.array_split(np.array(ordered, int), n) if len(part)]
