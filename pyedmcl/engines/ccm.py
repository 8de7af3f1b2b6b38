"""Cross-map skill of many random sub-libraries, on the device: neighbours are sorted once, then only scanned."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.sentinels import GAP, GAP_SQUARED
from ..device.memory import budget
from ..errors import DeviceMemoryError
from ..kernels.ccm import SAMPLES
from ..launch.pool import Pool
from ..neighbors.choose import Choice, engine, report
from ..neighbors.exact import ExactSearch, Tables
from ..neighbors.indexed import IndexedSearch
from ..neighbors.plan import Search
from ..neighbors.searched import add, without_search
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
    search : Search
        Its count of neighbours is the k of a prediction.
    library, query : ndarray (n_series, stride)
        In the layout of the search; see :mod:`pyedmcl.neighbors.coordinates`.
    embedded : ndarray of bool (n_series, n_steps)
        Rows whose coordinates are all there.
    """

    search: Search
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
    choice : Choice, optional
        How the sorted neighbours of all rows are searched, which sub-libraries are then scanned for.

    Attributes
    ----------
    searched : list of dict
        What searched, why, and how good it was.
    """

    def __init__(
        self, executor: Executor, states: States, aims: NDArray[np.float64], allowed: Mask | None = None, *,
        least: int = 1, choice: Choice | None = None,
    ) -> None:  # fmt: skip
        self.executor = executor
        self.states, self.search = states, states.search
        self.n = states.search.n_library
        self.aims = aims
        self.k, self.E = self.search.counts[0], self.search.dims[0]
        # Drawn rows of each library and target: all states that lead to something known.
        self.drawable = states.embedded if allowed is None else states.embedded & allowed
        self._known = np.isfinite(aims)
        self._gapless = bool(self._known[:, self._span()].all()) and allowed is None
        self._allowed = allowed
        info = executor.info
        self._pool = Pool(executor)
        self._device = ColumnKernels(executor, self.search, self._pool, least)
        self._limit = budget(info)
        self.parameters = self._device.parameters
        self.grade = ""
        self._choice = choice or Choice()
        self._engine: ExactSearch | None = None
        self.searched: list[dict[str, Any]] = []

    def _span(self) -> slice:
        """Rows whose target lies inside the series."""
        return slice(max(-self.search.Tp, 0), max(min(self.n, self.n - self.search.Tp), 0))

    def legal(self, link: Link) -> Mask:
        """Rows (n_steps,) that may be drawn for a link."""
        out: Mask = self.drawable[link.library] & self._known[link.target]
        return out

    def release(self) -> None:
        """Give the device memory back."""
        if self._engine is not None:
            self._engine.release()
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
        for chosen, barred in self._groups(links):
            libraries = sorted({links[i].library for i in chosen})
            rows, legal = self._legal_rows(links, chosen)
            direct, entries = self._split(sizes, min(n for n, _ in legal))
            at = {library: place for place, library in enumerate(libraries)}
            moved = {i: Link(at[links[i].library], links[i].target, links[i].stream) for i in chosen}
            local = [moved.get(i, links[i]) for i in range(len(links))]
            data = self._load(libraries, rows)
            penalty = None if barred is None else self._device.put("penalty", barred)
            for tables in self._tables(data, entries, len(libraries), penalty):
                if isinstance(self._engine, IndexedSearch):
                    self._engine.spare()  # scans need the room
                first, last = tables.first, tables.first + tables.n_libraries
                here = [c for c, i in enumerate(chosen) if first <= local[i].library < last]
                of = [chosen[c] for c in here]
                columns = columns_of(local, of, sizes, keys, samples, [legal[c] for c in here], first, SAMPLES)
                data.aims = self._put_aims(local, of, columns)
                self._compute(data, tables, entries, columns, direct, out, members)
            self._note()
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

    def _groups(self, links: Sequence[Link]) -> list[tuple[list[int], NDArray[Any] | None]]:
        """Links that share a search, and what bars rows from it beside gaps of the library series."""
        if self._gapless:
            return [(list(range(len(links))), None)]
        span = self._span()
        groups: dict[bytes, tuple[list[int], NDArray[Any] | None]] = {}
        for i, link in enumerate(links):
            barred = ~self._known[link.target]
            if self._allowed is not None:
                barred = barred | ~self._allowed
            inside = np.zeros(self.n, bool)
            inside[span] = barred[span]
            key = inside.tobytes()
            if key not in groups:
                penalty = np.zeros(self.n + 32, self.search.dtype)
                penalty[: self.n][inside] = GAP_SQUARED
                groups[key] = ([], penalty if inside.any() else None)
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
        most = room // max(self.n * (4 + self.search.itemsize), 1)
        return split_sizes(sizes, max(n_legal, 1), self.E, self.k, most)

    def _load(self, libraries: Sequence[int], rows: NDArray[np.int32]) -> Data:
        put, states = self._device.put, self.states
        library = put("library", states.library[libraries])
        query = library if states.query is states.library else put("query", states.query[libraries])
        return Data(library, query, (states.library.shape[1], states.query.shape[1]), put("rows_of", rows), library)

    def _tables(self, data: Data, entries: int, n_libraries: int, penalty: Buffer | None) -> Iterable[Tables]:
        longest = replace(self.search, counts=(max(entries, 1),))
        # Lists that are only planned need no other search.
        self._engine = engine(self.executor, longest, "neighbours", self._choice if entries else None,
                              masked=penalty is not None, room=self._limit.total // 2, pool=self._pool)  # fmt: skip
        self.parameters["knn"], self.grade = self._engine.parameters, self._engine.grade
        if not entries:
            nothing = self._pool.get("rows", 4)
            return [Tables(nothing, nothing, 0, n_libraries, self._engine.passes[0])]
        return self._engine.tables(data.library, data.query, n_libraries, penalty)

    def _note(self) -> None:
        """Keep what searched."""
        assert self._engine is not None
        why = "sub-libraries are so small that rows are compared with all their members"
        add(self.searched, report(self._engine) or without_search(self.E, self._choice, why))

    def _put_aims(self, links: Sequence[Link], of: Sequence[int], columns: Columns) -> Buffer:
        """Targets of some links, centred on the rows that are predicted, one row of the buffer each."""
        values = np.full((len(of), self._device.aim_stride), GAP, self.search.dtype)
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
        self, data: Data, tables: Tables, entries: int, columns: Columns, direct: Mask, out: NDArray[np.float64],
        members: Mask | None,
    ) -> None:  # fmt: skip
        if entries:
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
