"""Cross-map skill of many random sub-libraries, on the device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..device.memory import budget
from ..errors import DeviceMemoryError
from ..kernels import spec
from ..kernels.build import build
from ..kernels.specs.maps import CCM_CHUNK, SAMPLES, SUMS
from ..kernels.texts import GAP
from ..launch.progress import report_part
from ..launch.staging import Pacer, Pool, open_size, require_rho, round_up
from ..search.choose import SearchRequest, add, without_search
from ..search.plan import SearchProblem
from ..search.searcher import Searcher, open_searcher
from ..search.tables import SearchSeries, Tables
from ..tuning.parameters import parameters
from .targets import FutureTargets, patterns

if TYPE_CHECKING:
    from ..device.executor import Buffer, Executor


# Random sub-libraries as plain numbers: who is drawn from what, and how far a scan for their members has to reach.


# Lengths of sorted neighbour lists: few, since each has a kernel of its own.
ENTRIES = (16, 32, 48, 64, 96, 128, 192, 256, 384, 512)
# The chance that a row's sorted neighbours hold too few members of a sample; such rows are searched anew.
SHORT = 3e-3


class Field(IntEnum):
    """The numbers that describe a column of samples to the kernels: macros ``COLUMN_*`` of ``clkernels/ccm.clh``."""

    TABLE = 0  # library, among those of the neighbour table at hand
    FUTURE = 1  # row of the future targets
    CHOICES = 2  # how many rows may be drawn
    ROWS = 3  # where their list begins
    SIZE = 4  # rows to draw
    SAMPLE = 5  # number of the first sample
    SAMPLES = 6  # how many samples
    KEY0 = 7  # of the random stream
    KEY1 = 8
    LIBRARY = 9
    TARGET = 10
    LISTS = 11  # where the column's lists of members begin; -1 where it has none
    WORDS = 12  # draw whose words of membership the column has


@dataclass(frozen=True)
class CcmPair:
    """A library series that is to predict a target series from random parts of itself."""

    # library, target: Columns of the data given to :class:`pyedmcl.engines.ccm.SampledSkill`.
    library: int
    target: int
    # (int, int). Numbers that choose the random stream, beside seed, library size and sample.
    stream: tuple[int, int]


class Of(IntEnum):
    """Columns of a table of pairs (n, 4): the fields of :class:`CcmPair`."""

    LIBRARY = 0
    TARGET = 1
    STREAM = 2  # and 3


def table_of(pairs: Sequence[CcmPair] | NDArray[np.int_]) -> NDArray[np.int_]:
    """Pairs as a table of :class:`Of` columns, which is what many of them are handled as."""
    if isinstance(pairs, np.ndarray):
        return pairs
    return np.array([(pair.library, pair.target, *pair.stream) for pair in pairs], int).reshape(-1, len(Of) + 1)


@lru_cache(maxsize=4096)
def reach(k: int, size: int, n: int, chance: float = SHORT) -> int:
    """Nearest neighbours that hold k members of a random sub-library but for a small chance.

    The number of trials until the k-th success has a negative binomial distribution; drawing without replacement only
    makes it narrower.

    Parameters
    ----------
    size, n : int
        Rows that are drawn, and rows that they are drawn from.
    """
    if size >= n:
        return min(k, n)
    share = size / n
    most = int((k + 6 * np.sqrt(k) + 24) / share) + k  # far beyond any chance of interest
    trials = np.arange(k, most)
    steps = np.concatenate([[0.0], np.log(trials[:-1] / (trials[:-1] - k + 1.0)) + np.log1p(-share)])
    done = np.cumsum(np.exp(k * np.log(share) + np.cumsum(steps)))
    return min(int(trials[min(int(np.searchsorted(done, 1.0 - chance)), len(trials) - 1)]), n)


def split_sizes(
    sizes: Sequence[int], n_rows: int, E: int, k: int, most_entries: int
) -> tuple[NDArray[np.bool_], int]:
    """Which library sizes are computed from distances to all members, and how many neighbours the others need sorted.

    Parameters
    ----------
    n_rows : int
        Rows that are drawn from.
    most_entries : int
        Neighbours of each row that there is memory for.

    Returns
    -------
    direct : ndarray of bool (n_sizes,)
    entries : int
        One of :data:`ENTRIES`; 0 where all sizes are direct.
    """
    reached = np.array([reach(k, size, n_rows) for size in sizes])
    # Operations per row and sample: a member costs its distance and at times an insertion; a scan goes on until the
    # slowest of sixteen samples is content, and its longest list has to be sorted.
    typical = np.array([reach(k, size, n_rows, 0.05) for size in sizes])
    direct = np.array([size * (2 * E + k + 3) for size in sizes]) < typical * (2 * k + 4) + 2 * reached
    direct |= reached > min(ENTRIES[-1], most_entries)
    entries = 0
    if not direct.all():
        longest = int(reached[~direct].max())
        entries = next(entry for entry in ENTRIES if entry >= longest)
        if entries > most_entries:
            direct |= reached > max([e for e in ENTRIES if e <= most_entries], default=0)
            entries = 0 if direct.all() else next(e for e in ENTRIES if e >= int(reached[~direct].max()))
    return direct, entries


def stream_keys(seed: int, sizes: Sequence[int]) -> NDArray[np.uint32]:
    """Keys (n_sizes, 2) of the random streams of each library size."""
    return np.array(
        [np.random.SeedSequence(entropy=seed, spawn_key=(size,)).generate_state(2, np.uint32) for size in sizes]
    ).reshape(-1, 2)


@dataclass(frozen=True)
class Columns:
    """Columns of up to sixteen samples as the kernels read them, and where their results go."""

    # ndarray of int32 (n, len(Field)). By :class:`Field`.
    numbers: NDArray[np.int32]
    # pair, size: ndarray of int (n,). Which pair and which library size.
    pair: NDArray[np.int_]
    size: NDArray[np.int_]
    # ndarray of int (n,). Columns with the same number draw the same rows: those of pairs that have the rows to draw
    # from and the stream in common, such as the windows of a series, or a library and the surrogates of a target.
    draw: NDArray[np.int_]

    def take(self, which: NDArray[np.int_]) -> Columns:
        """Some of them."""
        return Columns(self.numbers[which], self.pair[which], self.size[which], self.draw[which])

    def by_pair(self, rho: NDArray[Any], samples: int) -> NDArray[np.float64]:
        """What all columns gave (n, width), as (n_pairs, n_sizes, samples)."""
        width = rho.shape[1]
        shape = int(self.pair.max()) + 1, int(self.size.max()) + 1, -(-samples // width)
        out = np.empty((*shape, width))
        out[self.pair, self.size, self.numbers[:, Field.SAMPLE] // width] = rho
        return out.reshape(*shape[:2], -1)[..., :samples]


def columns_of(
    pairs: NDArray[np.int_], sizes: Sequence[int], keys: NDArray[np.uint32], samples: int,
    row_lists: NDArray[np.int_], first_library: int, width: int,
) -> Columns:  # fmt: skip
    """Columns of some pairs, the smallest libraries, which take longest, first.

    Parameters
    ----------
    pairs : ndarray of int (n, 4)
        By :class:`Of`.
    sizes, keys
        Library sizes and their keys.
    row_lists : ndarray of int (n, 2)
        Of each pair: how many rows may be drawn, and where their list begins.
    first_library : int
        Library of the first neighbour table.
    width : int
        Samples of a column.
    """
    starts = np.arange(0, samples, width)
    order = np.argsort(sizes, kind="stable")
    shape = (len(order), len(pairs), len(starts))
    out = np.zeros((*shape, len(Field)), np.int32)
    out[..., Field.TABLE] = (pairs[:, Of.LIBRARY] - first_library)[None, :, None]
    out[..., Field.CHOICES : Field.ROWS + 1] = row_lists[None, :, None]
    out[..., Field.SIZE] = np.array(sizes)[order][:, None, None]
    out[..., Field.SAMPLE] = starts
    out[..., Field.SAMPLES] = np.minimum(samples - starts, width)
    out[..., Field.KEY0 : Field.KEY1 + 1] = keys[order].view(np.int32)[:, None, None]
    out[..., Field.LIBRARY : Field.TARGET + 1] = pairs[:, Of.STREAM :][None, :, None]
    pair = np.broadcast_to(np.arange(len(pairs))[None, :, None], shape).reshape(-1)
    size = np.broadcast_to(order[:, None, None], shape).reshape(-1)
    drawn_from = np.concatenate([row_lists, pairs[:, Of.STREAM :]], axis=1)
    like = np.unique(drawn_from, axis=0, return_inverse=True)[1].reshape(-1)
    kind = np.arange(len(order) * len(starts)).reshape(len(order), 1, len(starts))
    draw = (kind * len(pairs) + like[None, :, None]).reshape(-1)
    return Columns(out.reshape(-1, len(Field)), pair, size, draw)


# Columns of random sub-libraries on the device: drawn, scanned or compared with all their members, and scored.


@dataclass
class LaidOut:
    """What the kernels read, on the device."""

    # library, query: States in the layout of the search.
    library: Buffer
    query: Buffer
    # (int, int). Of both.
    strides: tuple[int, int]
    # Lists of rows that may be drawn.
    rows_of: Buffer
    # What rows lead to.
    future_targets: Buffer


class ColumnKernels:
    """The kernels for one search.

    Parameters
    ----------
    problem : SearchProblem
        Its number of neighbours is the k of a prediction.
    least : int
        Neighbours without which a row is not predicted.
    predicted : (int, int), optional
        First of the rows that are predicted, and one past the last; all by default.
    """

    def __init__(
        self, executor: Executor, problem: SearchProblem, pool: Pool, least: int = 1,
        predicted: tuple[int, int] | None = None,
    ) -> None:  # fmt: skip
        self.executor, self.problem, self._pool, self.least = executor, problem, pool, least
        self.n, self.k, self.E = problem.n_library, problem.ks[0], problem.dims[0]
        kind = self.E, self.k, problem.dtype
        self._pacers = {name: Pacer(executor.info, name, *kind) for name in ("ccm", "ccm_direct")}
        begin, end = predicted or (0, self.n)
        self.t_begin = max(problem.first_state(self.E), -problem.Tp, begin)
        self.t_end = max(min(end, self.n, self.n - problem.Tp), 0)
        self.n_chunks = max(-(-(self.t_end - self.t_begin) // CCM_CHUNK), 1)
        self.future_stride = round_up(self.n + 16, 16)
        self.word_stride = round_up(self.n + 1, 32)
        self.parameters: dict[str, Any] = {}
        self._known: dict[str, dict[str, Any]] = {}

    @property
    def column_bytes(self) -> int:
        """Memory of a column: its words and its sums."""
        return int(self.word_stride * 2 + self.n_chunks * SUMS * SAMPLES * self.problem.itemsize)

    def _values(self, name: str) -> dict[str, Any]:
        """Specialisation and tuned parameters of a kernel."""
        if name not in self._known:
            values = {"E": self.E, "k": self.k, "dtype": self.problem.dtype}
            specialisation = {key: values[key] for key in spec(name).specialisation}
            choice = parameters(spec(name), specialisation, self.executor.info, {"rows": self.n})
            self.parameters[name] = dict(choice.parameters)
            self._known[name] = {**specialisation, **choice.parameters}
        return self._known[name]

    def _kernel(self, name: str, entry: str | None = None) -> Any:
        return build(self.executor, spec(name), self._values(name), entry)

    def prepare(self, tables: Tables, entries: int) -> None:
        """Bring sorted neighbours into the form that scans read."""
        kernel = self._kernel("ccm", "ccm_prepare")
        total = tables.n_libraries * self.n * entries
        step = CCM_CHUNK << 20
        for begin in range(0, total, step):
            end = min(begin + step, total)
            self.executor.launch(
                kernel, open_size(-(-(end - begin) // CCM_CHUNK)), None, near=tables.rows, dist=tables.values,
                begin=begin, end=end, n_rows=self.n,
            )  # fmt: skip

    def draw(self, held: Buffer, numbers: NDArray[np.int32], rows_of: Buffer) -> Buffer:
        """Words of membership (n_columns, word_stride) of columns that were put."""
        n, values = len(numbers), self._values("ccm_draw")
        words = self._pool.get("words", n * self.word_stride * 2)
        wg, items = int(values["wg"]), n * (1 if values["lanes"] > 1 else SAMPLES)
        most_choices = int(numbers[:, Field.CHOICES].max())
        self.executor.launch(
            self._kernel("ccm_draw"), (round_up(items, wg),), (wg,), columns=held, rows_of=rows_of, n_columns=n,
            n_rows=self.n, stride=self.word_stride, most_choices=most_choices, members=words,
        )  # fmt: skip
        return words

    def skill(
        self, data: LaidOut, tables: Tables | None, entries: int, columns: Columns, direct: NDArray[np.bool_],
        words: NDArray[np.uint16] | None = None,
    ) -> NDArray[Any]:  # fmt: skip
        """rho (n_columns, SAMPLES) of columns that fit into memory together.

        Parameters
        ----------
        tables : Tables or None
            Prepared, with ``entries`` neighbours of each row; None where all sizes are direct.
        direct : ndarray of bool (n_sizes,)
            Library sizes whose members are all looked at.
        words : ndarray (n_columns, word_stride), optional
            Members that the caller has drawn.
        """
        n, numbers, is_listed = len(columns.numbers), columns.numbers, direct[columns.size]
        # Columns that draw the same rows share words and lists; those of the caller's members have their own.
        draw = np.arange(n) if words is not None else columns.draw
        _, firsts, draw_of = np.unique(draw, return_index=True, return_inverse=True)
        cells = numbers[firsts, Field.SIZE].astype(np.int64) * numbers[firsts, Field.SAMPLES] * is_listed[firsts]
        numbers[:, Field.WORDS] = draw_of
        numbers[:, Field.LISTS] = np.where(is_listed, (np.cumsum(cells) - cells)[draw_of], -1)
        held, drawn = self._pool.put("columns", numbers), self._pool.put("draws", numbers[firsts])
        members = self.draw(drawn, numbers[firsts], data.rows_of) if words is None else self._pool.put("words", words)
        sums = self._pool.get("sums", n * self.n_chunks * SUMS * SAMPLES * self.problem.itemsize)
        if cells.any():
            lists = self._list(drawn, cells, data.rows_of, members)
            self._direct(data, held, numbers, np.flatnonzero(is_listed), lists, sums)
        if tables is not None and not is_listed.all():
            scanned = np.flatnonzero(~is_listed).astype(np.int32)
            self._scan(data, tables, held, scanned, members, sums, entries)
        rho = self._pool.get("rho", n * SAMPLES * self.problem.itemsize)
        items = n * (SAMPLES // int(self._values("ccm")["lanes"]))
        self.executor.launch(
            self._kernel("ccm", "ccm_rho"), open_size(items), None, sums=sums, n_columns=n,
            n_chunks=self.n_chunks, rho=rho,
        )  # fmt: skip
        skills = self.executor.download(rho, np.empty((n, SAMPLES), self.problem.dtype))
        require_rho(self.executor, skills, "ccm")
        return skills

    def _scan(
        self, data: LaidOut, tables: Tables, held: Buffer, scanned: NDArray[np.int32], words: Buffer, sums: Buffer,
        entries: int,
    ) -> None:  # fmt: skip
        values = self._values("ccm")
        fixed = {
            "near": tables.rows, "dist": tables.values, "entries": entries, "rows_of": data.rows_of, "members": words,
            "stride": self.word_stride, "column_of": self._pool.put("scanned", scanned), "n_scanned": len(scanned),
            "n_rows": self.n, "E": self.E, **self._common(data, held, sums),
        }  # fmt: skip
        per_column = SAMPLES // int(values["lanes"])
        cost = CCM_CHUNK * int(values["lanes"]) * (2.0 * self.k + 4) * (2 * self.k + entries / 4)
        self._launch("ccm", fixed, len(scanned) * per_column * self.n_chunks, cost)

    def _common(self, data: LaidOut, held: Buffer, sums: Buffer) -> dict[str, Any]:
        """Arguments that both kernels of skill take."""
        problem = self.problem
        return {
            "library": data.library, "library_stride": data.strides[0], "front": problem.front,
            "future_targets": data.future_targets, "future_stride": self.future_stride, "columns": held,
            "t_begin": self.t_begin, "t_end": self.t_end,
            "tau": problem.tau, "exclusion_radius": problem.exclusion_radius, "least": self.least,
            "n_chunks": self.n_chunks, "sums": sums,
        }  # fmt: skip

    def _list(self, drawn: Buffer, cells: NDArray[np.int64], rows_of: Buffer, words: Buffer) -> Buffer:
        """Members of the samples of draws as lists of rows, ``cells`` of each draw."""
        lists = self._pool.get("lists", int(cells.sum()) * 4)
        total = int(np.flatnonzero(cells).max()) + 1
        self.executor.launch(
            self._kernel("ccm_draw", "ccm_list"), open_size(total * SAMPLES), None, columns=drawn, rows_of=rows_of,
            n_columns=total, stride=self.word_stride, members=words, lists=lists,
        )  # fmt: skip
        return lists

    def _direct(
        self, data: LaidOut, held: Buffer, numbers: NDArray[np.int32], listed: NDArray[np.int_], lists: Buffer,
        sums: Buffer,
    ) -> None:  # fmt: skip
        numbers = numbers[listed]
        samples = self._samples_of(listed, numbers)
        n = len(samples)
        fixed = {
            "query": data.query, "query_stride": data.strides[1], "lists": lists,
            "sample_of": self._pool.put("listed", samples), "n_sampled": n,
            **self._common(data, held, sums),
        }  # fmt: skip
        cost = CCM_CHUNK * float(numbers[:, Field.SIZE].mean()) * (2 * self.E + 2 * self.k + 2)
        self._launch("ccm_direct", fixed, n * self.n_chunks, cost)

    @staticmethod
    def _samples_of(listed: NDArray[np.int_], numbers: NDArray[np.int32]) -> NDArray[np.int32]:
        """All samples of some columns, as column * SAMPLES + number of the sample in its column."""
        places = np.arange(SAMPLES)
        every = listed[:, None] * SAMPLES + places
        samples: NDArray[np.int32] = every[places < numbers[:, Field.SAMPLES, None]].astype(np.int32)
        return samples

    def _launch(self, name: str, fixed: dict[str, Any], items: int, cost: float) -> None:
        kernel, wg, pacer = self._kernel(name), int(self._values(name)["wg"]), self._pacers[name]
        begin, rows_of_item = 0, CCM_CHUNK * (int(self._values(name)["lanes"]) if name == "ccm" else 1)
        while begin < items:
            end = min(begin + max(pacer.units(cost), wg), items)
            event = self.executor.launch(kernel, (round_up(end - begin, wg),), (wg,), begin=begin, end=end, **fixed)
            pacer.launched(event, cost * (end - begin))
            report_part(end, items, items * rows_of_item, begin, "predictions")
            begin = end


Mask = NDArray[np.bool_]
_MOST_BYTES = 1 << 32  # offsets of lists are 32-bit


@dataclass(frozen=True)
class States:
    """States of the library series as the search reads them."""

    # Its number of neighbours is the k of a prediction.
    problem: SearchProblem
    # library, query: ndarray (n_series, stride). In the layout of the search; see :mod:`pyedmcl.search.tables`.
    library: NDArray[Any]
    query: NDArray[Any]
    # ndarray of bool (n_series, n_steps). Rows that have all their coordinates.
    embedded: Mask


class SampledSkill:
    """rho of targets predicted from random sub-libraries.

    Parameters
    ----------
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
            Many pairs are best given as a table, see :class:`pyedmcl.engines.ccm.Of`.
        sizes : sequence of int
            Different library sizes, each at most the number of rows that may be drawn for any pair.
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
            See :class:`pyedmcl.engines.ccm.Of`.
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
