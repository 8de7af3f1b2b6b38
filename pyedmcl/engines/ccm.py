"""Cross-map skill of many random sub-libraries, on the device: neighbours are sorted once, then only scanned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.sentinels import GAP
from ..device.memory import budget
from ..errors import DeviceMemoryError
from ..kernels.ccm import SAMPLES
from ..launch.pool import Pool
from ..neighbors.choose import SearchRequest
from ..neighbors.plan import SearchProblem
from ..neighbors.records import add, without_search
from ..neighbors.searcher import Searcher, open_searcher
from ..neighbors.series import SearchSeries
from ..neighbors.tables import Tables
from .ccm_columns import ColumnKernels, LaidOut
from .future_targets import FutureTargets, patterns
from .sub_libraries import CcmPair, Columns, Field, Of, columns_of, split_sizes, stream_keys, table_of

if TYPE_CHECKING:
    from ..device.executor import Buffer, Executor

Mask = NDArray[np.bool_]
_MOST_BYTES = 1 << 32  # offsets of lists are 32-bit


@dataclass(frozen=True)
class States:
    """States of the library series as the search reads them.

    Attributes
    ----------
    problem : SearchProblem
        Its number of neighbours is the k of a prediction.
    library, query : ndarray (n_series, stride)
        In the layout of the search; see :mod:`pyedmcl.neighbors.coordinates`.
    embedded : ndarray of bool (n_series, n_steps)
        Rows that have all their coordinates.
    """

    problem: SearchProblem
    library: NDArray[Any]
    query: NDArray[Any]
    embedded: Mask


class SampledSkill:
    """rho of targets predicted from random sub-libraries.

    Parameters
    ----------
    executor : Executor
    states : States
    future_targets : ndarray (n_targets, n_steps) of float64, or FutureTargets
        What row t is to predict (the target's value at t + Tp), NaN where there is none. Engines that are opened one
        after the other for the same targets share the object.
    library_mask : ndarray of bool (n_steps,), optional
        Rows that may be drawn, and be neighbours.
    least : int
        Neighbours without which a row is not predicted, at most k.
    request : SearchRequest, optional
        How the sorted neighbours of all rows are searched, which sub-libraries are then scanned for.
    predicted : (int, int), optional
        First of the rows that are predicted, and one past the last; all by default.

    Attributes
    ----------
    searched : list of dict
        What searched, why, and how good it was.
    """

    def __init__(
        self, executor: Executor, states: States, future_targets: NDArray[np.float64] | FutureTargets,
        library_mask: Mask | None = None, *, least: int = 1, request: SearchRequest | None = None,
        predicted: tuple[int, int] | None = None,
    ) -> None:  # fmt: skip
        self.executor = executor
        self.states, self.problem = states, states.problem
        self.n = states.problem.n_library
        self._targets = future_targets if isinstance(future_targets, FutureTargets) else FutureTargets(future_targets)
        self.k, self.E = self.problem.ks[0], self.problem.dims[0]
        self._present = self._targets.present
        self._gapless = bool(self._present[:, self._span()].all()) and library_mask is None
        self._library_mask = library_mask
        info = executor.info
        self._pool = Pool(executor)
        self._device = ColumnKernels(executor, self.problem, self._pool, least, predicted)
        self._limit = budget(info)
        self.parameters = self._device.parameters
        self.grade = ""
        self._request = request or SearchRequest()
        self._searcher: Searcher | None = None
        self.searched: list[dict[str, Any]] = []

    def _span(self) -> slice:
        """Rows whose target lies inside the series."""
        return slice(max(-self.problem.Tp, 0), max(min(self.n, self.n - self.problem.Tp), 0))

    def library_mask(self, pair: CcmPair) -> Mask:
        """Rows (n_steps,) that may be drawn for a pair: states of the library that lead to a value of the target."""
        return self._mask(pair.library, pair.target)

    def _mask(self, library: int, target: int) -> Mask:
        mask: Mask = self.states.embedded[library] & self._present[target]
        return mask if self._library_mask is None else mask & self._library_mask

    def release(self) -> None:
        """Give the device memory back."""
        if self._searcher is not None:
            self._searcher.release()
        self._pool.release()

    def skill(
        self, pairs: Sequence[CcmPair] | NDArray[np.int_], sizes: Sequence[int], samples: int, seed: int,
        members: Mask | None = None,
    ) -> NDArray[np.float64]:  # fmt: skip
        """rho (n_pairs, n_sizes, samples); NaN where fewer than three rows are predicted or nothing varies.

        Parameters
        ----------
        pairs : sequence of CcmPair, or ndarray of int (n_pairs, 4)
            Many pairs are best given as a table, see :class:`pyedmcl.engines.sub_libraries.Of`.
        sizes : sequence of int
            Different library sizes, each at most the number of rows that may be drawn for any pair.
        samples : int
        seed : int
        members : ndarray of bool (n_pairs, n_sizes, samples, n_steps), optional
            Sub-libraries that the caller has drawn: as many rows as ``sizes`` says, of those that may be drawn.
        """
        table, keys = table_of(pairs), stream_keys(seed, sizes)
        out = np.full((len(table), len(sizes), samples), np.nan)
        for numbers, library_mask in self._groups(table):
            local = table[numbers]
            rows, row_lists = self._row_lists(local)
            libraries, local[:, Of.LIBRARY] = np.unique(local[:, Of.LIBRARY], return_inverse=True)
            direct, entries = self._split(sizes, int(row_lists[:, 0].min()))
            searcher, series = self._open(libraries, entries)
            data = self._data(series, rows)
            for first, last, tables in self._parts(searcher, series, entries, library_mask):
                places = np.flatnonzero((first <= local[:, Of.LIBRARY]) & (local[:, Of.LIBRARY] < last))
                part = local[places]
                columns = columns_of(part, sizes, keys, samples, row_lists[places], first, SAMPLES)
                at_hand = self._at_hand(data, libraries, first, last)
                at_hand.future_targets = self._put_targets(part, columns)
                drawn = None if members is None else members[numbers[places]]
                rho = self._compute(at_hand, tables, entries, columns, direct, drawn)
                out[numbers[places]] = columns.by_pair(rho, samples)
            self._note(searcher)
        return out

    def members(self, pair: CcmPair, sizes: Sequence[int], samples: int, seed: int) -> Iterator[Mask]:
        """Whose rows the sub-libraries of each size hold, one size after the other: (samples, n_steps)."""
        for size in sizes:
            yield self.drawn(table_of([pair]), [size], samples, seed)[0, 0]

    def drawn(self, table: NDArray[np.int_], sizes: Sequence[int], samples: int, seed: int) -> Mask:
        """Whose rows the sub-libraries of some pairs hold: (n_pairs, n_sizes, samples, n_steps).

        Parameters
        ----------
        table : ndarray of int (n_pairs, 4)
            See :class:`pyedmcl.engines.sub_libraries.Of`.
        sizes, samples, seed
            As for :meth:`skill`.
        """
        rows, row_lists = self._row_lists(table)
        device, rows_of = self._device, self._pool.put("rows_of", rows)
        columns = columns_of(table, sizes, stream_keys(seed, sizes), samples, row_lists, 0, SAMPLES)
        n = len(columns.numbers)
        words = np.empty((n, device.word_stride), np.uint16)
        self.executor.download(device.draw(self._pool.put("columns", columns.numbers), columns.numbers, rows_of), words)
        out = np.empty((len(table), len(sizes), samples, self.n), bool)
        for place in range(SAMPLES):
            filled = columns.numbers[:, Field.SAMPLES] > place
            bits = words[filled, : self.n] >> np.uint16(place) & np.uint16(1)
            out[columns.pair[filled], columns.size[filled], columns.numbers[filled, Field.SAMPLE] + place] = bits
        # Rows that cannot be drawn are never written.
        masks = [self._mask(library, target) for library, target in table[:, : Of.STREAM].tolist()]
        out &= np.array(masks)[:, None, None]
        return out

    def _groups(self, table: NDArray[np.int_]) -> list[tuple[NDArray[np.int_], Mask | None]]:
        """Pairs that share a search, and the rows that may be neighbours in it; None where all may."""
        if self._gapless or not len(table):
            return [(np.arange(len(table)), None)] if len(table) else []
        span = self._span()
        pattern = self._targets.pattern[table[:, Of.TARGET]]
        groups: dict[bytes, tuple[list[NDArray[np.int_]], Mask | None]] = {}
        for number, first in zip(*np.unique(pattern, return_index=True), strict=True):
            mask = np.ones(self.n, bool)
            mask[span] = self._present[table[first, Of.TARGET]][span]
            if self._library_mask is not None:
                mask[span] &= self._library_mask[span]
            pairs, _ = groups.setdefault(mask.tobytes(), ([], None if mask.all() else mask))
            pairs.append(np.flatnonzero(pattern == number))
        return [(np.sort(np.concatenate(pairs)), mask) for pairs, mask in groups.values()]

    def _row_lists(self, table: NDArray[np.int_]) -> tuple[NDArray[np.int32], NDArray[np.int_]]:
        """Lists of rows that may be drawn, one behind another, and (length, begin) of that of each pair."""
        embedded = patterns(self.states.embedded)[table[:, Of.LIBRARY]]
        kind = embedded * len(self._present) + self._targets.pattern[table[:, Of.TARGET]]
        _, firsts, list_of = np.unique(kind, return_index=True, return_inverse=True)
        lists = [np.flatnonzero(self._mask(*table[i, : Of.STREAM])).astype(np.int32) for i in firsts]
        lengths = np.array([len(rows) for rows in lists])
        begins = np.cumsum(lengths) - lengths
        return np.concatenate([*lists, np.zeros(1, np.int32)]), np.stack([lengths, begins], axis=1)[list_of]

    def _split(self, sizes: Sequence[int], n_rows: int) -> tuple[Mask, int]:
        # A table of one library must fit into a quarter of the memory and into one buffer.
        room = min(self._limit.total // 4, self._limit.largest)
        most = room // max(self.n * (4 + self.problem.itemsize), 1)
        return split_sizes(sizes, max(n_rows, 1), self.E, self.k, most)

    def _open(self, libraries: NDArray[np.int_], entries: int) -> tuple[Searcher, SearchSeries]:
        """The searcher of sorted neighbours, and the libraries on the device."""
        if self._searcher is not None:
            self._searcher.release()
        longest = replace(self.problem, ks=(max(entries, 1),))
        # Lists that are not needed are not searched for: there is nothing to choose.
        request = self._request if entries else None
        searcher = self._searcher = open_searcher(
            self.executor, longest, "neighbours", request, room=self._limit.total // 2, pool=self._pool
        )
        self.parameters["knn"], self.grade = searcher.parameters, searcher.grade
        library = self.states.library[libraries]
        query = library if self.states.query is self.states.library else self.states.query[libraries]
        return searcher, searcher.load_layouts(library, query)

    def _data(self, series: SearchSeries, rows: NDArray[np.int32]) -> LaidOut:
        rows_of = self._pool.put("rows_of", rows)
        return LaidOut(series.library, series.query, series.strides, rows_of, series.library)

    def _at_hand(self, data: LaidOut, libraries: NDArray[np.int_], first: int, last: int) -> LaidOut:
        """The data of the libraries of one part alone, as columns number them where tables are cut by memory."""
        if not first:
            return data
        of_library = self._put_states("library at hand", self.states.library[libraries[first:last]])
        of_query = of_library
        if self.states.query is not self.states.library:
            of_query = self._put_states("query at hand", self.states.query[libraries[first:last]])
        return replace(data, library=of_library, query=of_query)

    def _put_states(self, name: str, states: NDArray[Any]) -> Buffer:
        states = np.ascontiguousarray(states)
        behind = self.problem.overrun * self.problem.itemsize
        return self.executor.upload(states, self._pool.get(name, states.nbytes + behind))

    def _parts(
        self, searcher: Searcher, series: SearchSeries, entries: int, library_mask: Mask | None
    ) -> Iterator[tuple[int, int, Tables | None]]:
        """Ranges of libraries with the tables of their sorted neighbours, where lists of ``entries`` are needed."""
        if not entries:
            yield 0, series.n, None
            return
        for tables in searcher.tables(series, library_mask):
            searcher.spare()  # scans need the room
            yield tables.first, tables.first + tables.n_libraries, tables

    def _note(self, searcher: Searcher) -> None:
        """Keep what searched."""
        why = "sub-libraries are so small that rows are compared with all their members"
        add(self.searched, searcher.decisions or without_search(self.E, self._request, why))

    def _put_targets(self, pairs: NDArray[np.int_], columns: Columns) -> Buffer:
        """The targets of some pairs, centred on the rows that are predicted, each once."""
        targets, row_of = np.unique(pairs[:, Of.TARGET], return_inverse=True)
        values = np.full((len(targets), self._device.future_stride), GAP, self.problem.dtype)
        values[:, : self.n] = self._targets.centred(targets, self.problem.dtype)
        columns.numbers[:, Field.FUTURE] = row_of[columns.pair]
        return self._pool.put("future_targets", values)

    def _compute(
        self, data: LaidOut, tables: Tables | None, entries: int, columns: Columns, direct: Mask, members: Mask | None
    ) -> NDArray[Any]:
        """rho (n_columns, SAMPLES)."""
        if tables is not None:
            self._device.prepare(tables, entries)
        needed = self._device.column_bytes
        size = columns.numbers[:, Field.SIZE].astype(np.int64)
        lists = np.where(direct[columns.size], 4 * size * columns.numbers[:, Field.SAMPLES], 0)
        most = min(self._limit.total // 4, self._limit.largest)
        if needed + int(lists.max()) > most:
            raise DeviceMemoryError(
                f"sixteen samples of {self.n:,} rows need {needed + int(lists.max()):,} bytes; {most:,} may be used "
                f"for them on {self.executor.info.name}. Raise PYEDMCL_MEMORY_LIMIT or PYEDMCL_MEMORY_FRACTION."
            )
        # As many columns at a time as memory allows.
        batch = np.cumsum(needed + lists) // min(most, _MOST_BYTES)
        parts = []
        for number in np.unique(batch):
            part = columns.take(np.flatnonzero(batch == number))
            words = None if members is None else self._words(part, members)
            parts.append(self._device.skill(data, tables, entries, part, direct, words))
        return np.concatenate(parts)

    def _words(self, columns: Columns, members: Mask) -> NDArray[np.uint16]:
        """Members that the caller has drawn, as the words of columns."""
        out = np.zeros((len(columns.numbers), self._device.word_stride), np.uint16)
        first = columns.numbers[:, Field.SAMPLE]
        for place in range(SAMPLES):
            filled = columns.numbers[:, Field.SAMPLES] > place
            bits = members[columns.pair[filled], columns.size[filled], first[filled] + place]
            out[filled, : self.n] |= bits.astype(np.uint16) << np.uint16(place)
        return out

