"""Columns of random sub-libraries on the device: drawn, scanned or compared with all their members, and scored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.build import build
from ..kernels import spec
from ..kernels.ccm import CHUNK, SAMPLES, SUMS
from ..launch.invariants import require_rho
from ..launch.pacing import Pacer
from ..launch.pool import Pool
from ..launch.progress import report_part
from ..launch.sizes import open_size, round_up
from ..neighbors.plan import SearchProblem
from ..neighbors.tables import Tables
from ..tuning.parameters import parameters
from .sub_libraries import Columns, Field

if TYPE_CHECKING:
    from ..device.executor import Buffer, Executor


@dataclass
class LaidOut:
    """What the kernels read, on the device.

    Attributes
    ----------
    library, query : Buffer
        States in the layout of the search.
    strides : (int, int)
        Of both.
    rows_of : Buffer
        Lists of rows that may be drawn.
    future_targets : Buffer
        What rows lead to.
    """

    library: Buffer
    query: Buffer
    strides: tuple[int, int]
    rows_of: Buffer
    future_targets: Buffer


class ColumnKernels:
    """The kernels for one search.

    Parameters
    ----------
    executor : Executor
    problem : SearchProblem
        Its number of neighbours is the k of a prediction.
    pool : Pool
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
        self.n_chunks = max(-(-(self.t_end - self.t_begin) // CHUNK), 1)
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
        step = CHUNK << 20
        for begin in range(0, total, step):
            end = min(begin + step, total)
            self.executor.launch(
                kernel, open_size(-(-(end - begin) // CHUNK)), None, near=tables.rows, dist=tables.values,
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
        data : LaidOut
        tables : Tables or None
            Prepared, with ``entries`` neighbours of each row; None where all sizes are direct.
        columns : Columns
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
        cost = CHUNK * int(values["lanes"]) * (2.0 * self.k + 4) * (2 * self.k + entries / 4)
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
        cost = CHUNK * float(numbers[:, Field.SIZE].mean()) * (2 * self.E + 2 * self.k + 2)
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
        begin, rows_of_item = 0, CHUNK * (int(self._values(name)["lanes"]) if name == "ccm" else 1)
        while begin < items:
            end = min(begin + max(pacer.units(cost), wg), items)
            event = self.executor.launch(kernel, (round_up(end - begin, wg),), (wg,), begin=begin, end=end, **fixed)
            pacer.launched(event, cost * (end - begin))
            report_part(end, items, items * rows_of_item, begin, "predictions")
            begin = end
