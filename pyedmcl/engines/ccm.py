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
from .ccm_columns import ColumnKernels, Data
from .subsets import Columns, Link, columns_of, split_sizes, stream_keys

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
        Rows whose coordinates are all there.
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
    aims : ndarray (n_targets, n_steps) of float64
        What row t is to predict (the target's value at t + Tp), NaN where there is none.
    allowed : ndarray of bool (n_steps,), optional
        Rows that may be drawn.
    least : int
        Neighbours without which a row is not predicted, at most k.
    request : SearchRequest, optional
        How the sorted neighbours of all rows are searched, which sub-libraries are then scanned for.

    Attributes
    ----------
    searched : list of dict
        What searched, why, and how good it was.
    """

    def __init__(
        self, executor: Executor, states: States, aims: NDArray[np.float64], allowed: Mask | None = None, *,
        least: int = 1, request: SearchRequest | None = None,
    ) -> None:  # fmt: skip
        self.executor = executor
        self.states, self.problem = states, states.problem
        self.n = states.problem.n_library
        self.aims = aims
        self.k, self.E = self.problem.ks[0], self.problem.dims[0]
        # Drawn rows of each library and target: all states that lead to something known.
        self.drawable = states.embedded if allowed is None else states.embedded & allowed
        self._known = np.isfinite(aims)
        self._gapless = bool(self._known[:, self._span()].all()) and allowed is None
        self._allowed = allowed
        info = executor.info
        self._pool = Pool(executor)
        self._device = ColumnKernels(executor, self.problem, self._pool, least)
        self._limit = budget(info)
        self.parameters = self._device.parameters
        self.grade = ""
        self._request = request or SearchRequest()
        self._searcher: Searcher | None = None
        self.searched: list[dict[str, Any]] = []

    def _span(self) -> slice:
        """Rows whose target lies inside the series."""
        return slice(max(-self.problem.Tp, 0), max(min(self.n, self.n - self.problem.Tp), 0))

    def legal(self, link: Link) -> Mask:
        """Rows (n_steps,) that may be drawn for a link."""
        out: Mask = self.drawable[link.library] & self._known[link.target]
        return out

    def release(self) -> None:
        """Give the device memory back."""
        if self._searcher is not None:
            self._searcher.release()
        self._pool.release()

    def skill(
        self, links: Sequence[Link], sizes: Sequence[int], samples: int, seed: int, members: Mask | None = None
    ) -> NDArray[np.float64]:
        """rho (n_links, n_sizes, samples); NaN where fewer than three rows are predicted or nothing varies.

        Parameters
        ----------
        links : sequence of Link
        sizes : sequence of int
            Different library sizes, each at most the number of legal rows of any link.
        samples : int
        seed : int
        members : ndarray of bool (n_links, n_sizes, samples, n_steps), optional
            Sub-libraries drawn by somebody else: ``sizes`` legal rows each.
        """
        out = np.full((len(links), len(sizes), samples), np.nan)
        if not len(links):
            return out
        keys = stream_keys(seed, sizes)
        for chosen, library_mask in self._groups(links):
            libraries = sorted({links[i].library for i in chosen})
            rows, legal = self._legal_rows(links, chosen)
            direct, entries = self._split(sizes, min(n for n, _ in legal))
            at = {library: place for place, library in enumerate(libraries)}
            moved = {i: Link(at[links[i].library], links[i].target, links[i].stream) for i in chosen}
            local = [moved.get(i, links[i]) for i in range(len(links))]
            searcher, series = self._open(libraries, entries)
            data = self._data(series, rows)
            for first, last, tables in self._parts(searcher, series, entries, library_mask):
                here = [c for c, i in enumerate(chosen) if first <= local[i].library < last]
                of = [chosen[c] for c in here]
                columns = columns_of(local, of, sizes, keys, samples, [legal[c] for c in here], first, SAMPLES)
                data.aims = self._put_aims(local, of, columns)
                self._compute(data, tables, entries, columns, direct, out, members)
            self._note(searcher)
        return out

    def members(self, link: Link, sizes: Sequence[int], samples: int, seed: int) -> Iterator[Mask]:
        """Whose rows the sub-libraries of each size hold, one size after the other: (samples, n_steps)."""
        rows, legal = self._legal_rows([link], [0])
        device, rows_of = self._device, self._device.put("rows_of", rows)
        for size, key in zip(sizes, stream_keys(seed, sizes), strict=True):
            columns = columns_of([link], [0], [size], key[None], samples, legal, 0, SAMPLES)
            n = len(columns.numbers)
            words = np.empty((n, device.word_stride), np.uint16)
            drawn = device.draw(device.put("columns", columns.numbers), columns.numbers, rows_of)
            self.executor.download(drawn, words)
            bits = (words[:, None, : self.n] >> np.arange(SAMPLES, dtype=np.uint16)[:, None]) & 1
            # Rows that cannot be drawn are never written.
            yield (bits.reshape(n * SAMPLES, self.n)[:samples] > 0) & self.legal(link)

    def _groups(self, links: Sequence[Link]) -> list[tuple[list[int], Mask | None]]:
        """Links that share a search, and the rows that may be neighbours in it; None where all may."""
        if self._gapless:
            return [(list(range(len(links))), None)]
        span = self._span()
        groups: dict[bytes, tuple[list[int], Mask | None]] = {}
        for i, link in enumerate(links):
            mask = np.ones(self.n, bool)
            mask[span] = self._known[link.target][span]
            if self._allowed is not None:
                mask[span] &= self._allowed[span]
            key = mask.tobytes()
            if key not in groups:
                groups[key] = ([], None if mask.all() else mask)
            groups[key][0].append(i)
        return list(groups.values())

    def _legal_rows(
        self, links: Sequence[Link], chosen: Sequence[int]
    ) -> tuple[NDArray[np.int32], list[tuple[int, int]]]:
        """Lists of legal rows one behind another, and (length, begin) of each chosen link's."""
        lists: list[NDArray[np.int32]] = []
        known: dict[bytes, tuple[int, int]] = {}
        legal, end = [], 0
        for i in chosen:
            mask = self.legal(links[i])
            key = mask.tobytes()
            if key not in known:
                rows = np.flatnonzero(mask).astype(np.int32)
                known[key] = (len(rows), end)
                lists.append(rows)
                end += len(rows)
            legal.append(known[key])
        return np.concatenate([*lists, np.zeros(1, np.int32)]), legal

    def _split(self, sizes: Sequence[int], n_legal: int) -> tuple[Mask, int]:
        # A table of one library must fit into a quarter of the memory and into one buffer.
        room = min(self._limit.total // 4, self._limit.largest)
        most = room // max(self.n * (4 + self.problem.itemsize), 1)
        return split_sizes(sizes, max(n_legal, 1), self.E, self.k, most)

    def _open(self, libraries: Sequence[int], entries: int) -> tuple[Searcher, SearchSeries]:
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

    def _data(self, series: SearchSeries, rows: NDArray[np.int32]) -> Data:
        rows_of = self._device.put("rows_of", rows)
        return Data(series.library, series.query, series.strides, rows_of, series.library)

    def _parts(
        self, searcher: Searcher, series: SearchSeries, entries: int, library_mask: Mask | None
    ) -> Iterator[tuple[int, int, Tables | None]]:
        """Ranges of libraries with the tables of their sorted neighbours, where lists of so many entries are needed."""
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

    def _put_aims(self, links: Sequence[Link], of: Sequence[int], columns: Columns) -> Buffer:
        """Targets of some links, centred on the rows that are predicted, one row of the buffer each."""
        values = np.full((len(of), self._device.aim_stride), GAP, self.problem.dtype)
        for place, i in enumerate(of):
            aim = self.aims[links[i].target]
            known = self._known[links[i].target]
            mean = aim[known].mean() if known.any() else 0.0
            centred = aim[known] - mean
            reach = float(np.abs(centred).max(initial=0.0))
            values[place, : self.n][known] = np.ldexp(centred, -int(np.frexp(reach)[1]))
        where = np.zeros(len(links), np.int32)
        where[list(of)] = np.arange(len(of))
        columns.numbers[:, 1] = where[columns.link]
        return self._device.put("aims", values)

    def _compute(
        self, data: Data, tables: Tables | None, entries: int, columns: Columns, direct: Mask, out: NDArray[np.float64],
        members: Mask | None,
    ) -> None:  # fmt: skip
        if tables is not None:
            self._device.prepare(tables, entries)
        each = self._device.column_bytes
        size = columns.numbers[:, 4].astype(np.int64)
        lists = np.where(direct[columns.size], 4 * size * columns.numbers[:, 6], 0)
        most = min(self._limit.total // 4, self._limit.largest)
        if each + int(lists.max()) > most:
            raise DeviceMemoryError(
                f"sixteen samples of {self.n:,} rows need {each + int(lists.max()):,} bytes; {most:,} may be used "
                f"for them on {self.executor.info.name}. Raise PYEDMCL_MEMORY_LIMIT or PYEDMCL_MEMORY_FRACTION."
            )
        # As many columns at a time as memory allows.
        batch = np.cumsum(each + lists) // min(most, _MOST_BYTES)
        for number in np.unique(batch):
            part = columns.take(np.flatnonzero(batch == number))
            given = None if members is None else self._words(part, members)
            rho = self._device.skill(data, tables, entries, part, direct, given)
            for place in range(SAMPLES):
                there = part.numbers[:, 6] > place
                samples = part.numbers[there, 5] + place
                out[part.link[there], part.size[there], samples] = rho[there, place]

    def _words(self, columns: Columns, members: Mask) -> NDArray[np.uint16]:
        """Given members as the words of columns."""
        out = np.zeros((len(columns.numbers), self._device.word_stride), np.uint16)
        first = columns.numbers[:, 5]
        for place in range(SAMPLES):
            there = columns.numbers[:, 6] > place
            bits = members[columns.link[there], columns.size[there], first[there] + place]
            out[there, : self.n] |= bits.astype(np.uint16) << np.uint16(place)
        return out
