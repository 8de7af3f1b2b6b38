"""One device's pass over rows of a recurrence matrix, tile by tile, to the end of all lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isqrt
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..device.common import spare_bytes
from ..device.memory import budget
from ..device.quirks import quirks_for
from ..errors import DeviceMemoryError
from ..kernels import spec
from ..kernels.build import build
from ..launch.staging import open_size, round_up
from ..tuning.parameters import adjusted, parameters
from .counts import COUNT, FIELDS, Counts, Histogram, Partial, identity_lines, sum_of
from .problem import Padding, Sides

if TYPE_CHECKING:
    from ..device.executor import Buffer, Event, Executor
    from ..device.info import DeviceInfo
    from .problem import RqaProblem


# What a device keeps of the lines of one matrix, and how it lies in memory.
#
# A segment is what is kept of a line; ``clkernels/segments.clh`` explains it, and :mod:`.counts` names its fields.


#: Kinds of counted lines: diagonal, black and white vertical, white at the border of the matrix.
LINE_KINDS = 4
#: The first of these are counted by a walk over tiles; those at the border are counted when all rows have been seen.
WALKED_KINDS = 3
_SEGMENT_BYTES = 4 * FIELDS


@dataclass(frozen=True)
class LineBuffers:
    """What a device keeps of one matrix."""

    # diagonals, rows, columns: Segments of all lines, int32 [fields][lines].
    diagonals: Buffer
    rows: Buffer
    columns: Buffer
    # counts, sums: Lines by kind and length, [LINE_KINDS][longest + 1]. ``counts`` (uint32) has those that were counted
    # since ``recurrence_fold`` ran last, which adds them to ``sums`` (uint64).
    counts: Buffer
    sums: Buffer

    @staticmethod
    def sizes(lines: Sequence[int], longest: int) -> dict[str, int]:
        """Bytes of each buffer.

        Parameters
        ----------
        lines : (int, int, int)
            Diagonals, rows and columns that segments are kept of.
        longest : int
            Length of the longest line that is possible.
        """
        lengths = LINE_KINDS * (longest + 1)
        sizes = dict(zip(("diagonals", "rows", "columns"), map(segment_bytes, lines), strict=True))
        return {**sizes, "counts": 4 * lengths, "sums": 8 * lengths}

    @classmethod
    def allocated(cls, allocate: Callable[[int], Buffer], lines: Sequence[int], longest: int) -> LineBuffers:
        """New buffers of these :meth:`sizes`."""
        return cls(**{name: allocate(nbytes) for name, nbytes in cls.sizes(lines, longest).items()})

    def clear(self, executor: Executor, kernels: Mapping[str, Any]) -> None:
        """Forget all lines and counts; ``kernels`` has the entries ``recurrence_clear`` and ``recurrence_zero``."""
        for segments in (self.diagonals, self.rows, self.columns):
            n = lines_in(segments)
            executor.launch(kernels["recurrence_clear"], open_size(n), None, segments=segments, n=n)
        for numbers in (self.counts, self.sums):
            n = numbers.nbytes // 4
            executor.launch(kernels["recurrence_zero"], open_size(n), None, numbers=numbers, n=n)


def segment_bytes(lines: int) -> int:
    """Bytes of the segments of ``lines`` lines."""
    return _SEGMENT_BYTES * lines


def lines_in(segments: Buffer) -> int:
    """How many lines a buffer has segments of."""
    return segments.nbytes // _SEGMENT_BYTES


def field_offset(segments: Buffer, field: int, line: int = 0) -> int:
    """The byte at which a field of a line's segment lies."""
    return 4 * (field * lines_in(segments) + line)


# Counts of a whole matrix on the device that walked it: only what the counts hold comes to the host.


# (work-items of a group, groups at most): each work-item takes some lines, since a group has counts of its own to add.
_SHAPES = {"cpu": (1, 32), "gpu": (128, 1024)}
_TOTALS = 5


class Finish:
    """Finishes the lines of ``problem``'s matrices, where a sweep has seen all rows.

    Parameters
    ----------
    longest : int
        Length of the longest line that is possible.
    """

    def __init__(self, executor: Executor, problem: RqaProblem, longest: int) -> None:
        self.executor, self.problem, self.lengths = executor, problem, longest + 1
        self._wg, groups = _SHAPES[quirks_for(executor.info).defaults_for]
        self._groups = min(groups, -(-self.lengths // self._wg))
        entries = ("finish_join", "finish_begin", "finish_diagonals", "finish_columns", "finish_end")
        values = {"wg": self._wg}
        self._kernels = {name: build(executor, spec("recurrence_finish"), values, name) for name in entries}
        self._longest = executor.allocate(4 * LINE_KINDS)
        self._totals = executor.allocate(8 * _TOTALS * self._groups)

    def counts(self, buffers: LineBuffers, identity: NDArray[np.bool_] | None) -> Counts:
        """Of one radius, whose counts since the last fold are zero.

        Parameters
        ----------
        buffers : LineBuffers
            What all tiles gave; the segments of the columns are changed.
        identity : ndarray of bool, optional
            Recurrent cells of the main diagonal where its lines count: once, others twice.
        """
        p = self.problem
        self._launch(buffers)
        longest = self.executor.download(self._longest, np.empty(LINE_KINDS, np.int32)).tolist()
        diagonals, black, white, border = (
            self._histogram(buffers.sums, kind, end) for kind, end in enumerate(longest)
        )
        per_diagonal = self._black_cells(buffers.diagonals)
        totals = self.executor.download(self._totals, np.empty((self._groups, _TOTALS), np.uint64))
        filled, first, last, end, points = (int(total) for total in totals.sum(axis=0))
        if p.symmetric:
            diagonals *= 2
            per_diagonal = np.concatenate([per_diagonal[:0:-1], per_diagonal])
        if identity is not None:
            diagonals = sum_of(diagonals, identity_lines(identity))
        return Counts(
            n_rows=p.n_rows, n_columns=p.n_columns, points=points, diagonals=diagonals, verticals=black, whites=white,
            white_borders=border, columns=self._black_cells(buffers.columns).astype(np.int64),
            per_diagonal=per_diagonal.astype(np.int64), period_sum=last - first,
            period_count=int(black.sum()) - filled, gap_sum=end - first - filled, gap_count=points - filled,
        )  # fmt: skip

    def histograms(self, buffers: LineBuffers) -> NDArray[np.int64]:
        """What all tiles gave (3, longest + 1), up to the longest line; the counts since the last fold are zero."""
        self._sum(buffers, begin=True)
        longest = self.executor.download(self._longest, np.empty(LINE_KINDS, np.int32)).tolist()[:WALKED_KINDS]
        out = np.zeros((WALKED_KINDS, max(longest) + 1), np.int64)
        for kind, end in enumerate(longest):
            out[kind, : end + 1] = self._histogram(buffers.sums, kind, end)
        return out

    def join(self, a: Buffer, b: Buffer, n: int, counts: Buffer, *, verticals: bool, held: tuple[int, int]) -> None:
        """Segments ``a`` of ``n`` lines become those of their rows and of the rows behind them, which ``b`` has.

        Parameters
        ----------
        counts : Buffer
            Of all lines; those that become final are added.
        verticals : bool
            Columns or rows; else diagonals.
        held : (int, int)
            The first line that ``b`` has, and how many it has.
        """
        p = self.problem
        self.executor.launch(
            self._kernels["finish_join"], (self._groups * self._wg,), (self._wg,), a=a, b=b, n=n,
            first=held[0], held=held[1], k_first=p.k_first, theiler=p.line_window, verticals=verticals, counts=counts,
            n_lengths=self.lengths,
        )  # fmt: skip

    def _launch(self, buffers: LineBuffers) -> None:
        p, launch, kernels = self.problem, self.executor.launch, self._kernels
        counts, n = buffers.counts, self.lengths
        size, local = (self._groups * self._wg,), (self._wg,)
        self._begin(buffers)
        launch(
            kernels["finish_diagonals"], size, local, segments=buffers.diagonals, n=lines_in(buffers.diagonals),
            k_first=p.k_first, theiler=p.line_window, lengths=counts,
        )  # fmt: skip
        launch(
            kernels["finish_columns"], size, local, columns=buffers.columns, rows=buffers.rows, n=p.n_columns,
            n_rows=p.n_rows, symmetric=p.symmetric, counts=counts, n_lengths=n, totals=self._totals,
        )  # fmt: skip
        self._sum(buffers)

    def _sum(self, buffers: LineBuffers, *, begin: bool = False) -> None:
        """Add the counts since the last fold to the sums, and find the longest lines."""
        n = self.lengths
        if begin:
            self._begin(buffers)
        self.executor.launch(
            self._kernels["finish_end"], (self._groups * self._wg, LINE_KINDS), (self._wg, 1), counts=buffers.counts,
            sums=buffers.sums, longest=self._longest, n=n,
        )  # fmt: skip

    def _begin(self, buffers: LineBuffers) -> None:
        # A matrix of two points has fewer lengths than kinds of lines, each of which begins without a longest one.
        size = open_size(max(self.lengths, LINE_KINDS))
        self.executor.launch(
            self._kernels["finish_begin"], size, None, counts=buffers.counts, longest=self._longest, n=self.lengths
        )

    def _histogram(self, sums: Buffer, kind: int, longest: int) -> Histogram:
        """Up to the longest line; length 0 counts for nothing."""
        histogram = self.executor.download(sums, np.empty(longest + 1, np.int64), 8 * kind * self.lengths)
        histogram[0] = 0
        return histogram

    def _black_cells(self, segments: Buffer) -> NDArray[np.int32]:
        counts = np.empty(lines_in(segments), np.int32)
        return self.executor.download(segments, counts, field_offset(segments, COUNT))

    def release(self) -> None:
        """Give the device memory back."""
        self._longest.release()
        self._totals.release()


Identity = Callable[[int], NDArray[np.bool_] | None]
#: Says how many cells are done.
Report = Callable[[int], None]

_LEAST_EDGE = 32
# A tile whose buffers are too large to be kept for the next call has to repay that they are made anew: it may have this
# many cells for each row of the matrix. On an H100 an edge of 32,768 instead of 65,536 took 0.7 to 0.8 of the time at
# 50,000 and 110,000 points, and as long at 250,000; at 1,043,112 points an edge of 131,072 was best.
_CELLS_A_ROW = 1 << 15
# Cells until 32-bit counts are folded into 64-bit sums: no kind of line is on more than half of the cells.
_FOLD_CELLS = 6 << 30
_WAIT_TILES = 8  # a queue holds no more, so that Ctrl-C is heard


class Tile(NamedTuple):
    """32 * ``n_words`` rows from ``i0`` on, and the diagonals from ``k0`` on: cells (i, i + k)."""

    i0: int
    n_words: int
    k0: int
    n_diagonals: int

    @property
    def cells(self) -> int:
        """Cells, also those behind the last row and column of the matrix."""
        return 32 * self.n_words * self.n_diagonals


class TileSweep:
    """Counts rows of the matrix of ``problem`` on one device.

    Parameters
    ----------
    x, y : ndarray or tuple of ndarray
        Series or points; pairs where the problem is joint. ``y`` is None where it is symmetric.
    tile : int, optional
        Edge of a tile in cells, else the tuned one; made smaller where memory does not suffice.
    """

    def __init__(self, executor: Executor, problem: RqaProblem, x: Any, y: Any, tile: int | None = None) -> None:
        self.executor, self.problem = executor, problem
        pairs = [(problem, x, y)]
        if problem.joint is not None:
            others = (None, None) if y is None else y
            pairs = [(problem, x[0], others[0]), (problem.joint, x[1], others[1])]
        self._bits_values = [self._values_of(p, second_partner=place > 0) for place, (p, _, _) in enumerate(pairs)]
        # The words of the last partner are those of the joint matrix.
        self._rows_made = bool(self._bits_values[-1]["transposed"])
        self._transpose_values = dict(parameters(spec("recurrence_transpose"), {}, executor.info).parameters)
        self._lines_values = dict(parameters(spec("recurrence_lines"), {}, executor.info).parameters)
        self.edge = self._edge(tile)
        # Tiles reach past the last row and column, by a word and by what a group stages.
        reach = max((partner.m - 1) * partner.tau for partner, _, _ in pairs)
        padding = Padding(self.edge + 64, 2 * self.edge + reach + 1536)
        self._held: list[Buffer] = []
        self.sides: list[Sides] = []
        try:
            for partner, rows, columns in pairs:
                self.sides.append(Sides(executor, partner, rows, columns, padding))
            self._allocate()
            self._build()
        except BaseException:
            self.release()
            raise

    @property
    def used(self) -> dict[str, dict[str, Any]]:
        """Parameters of each kernel."""
        names = {t.name for t in spec("recurrence_bits").tunables}
        bits = {name: value for name, value in self._bits_values[0].items() if name in names}
        return {"recurrence_bits": {**bits, "edge": self.edge}, "recurrence_transpose": self._transpose_values,
                "recurrence_lines": self._lines_values}  # fmt: skip

    def _values_of(self, p: RqaProblem, second_partner: bool) -> dict[str, Any]:
        """Specialisation and parameters of the bits of one partner."""
        exact = p.exact and p.dtype == "float32"
        corridor = p.inner is not None
        values: dict[str, Any] = {
            "m": p.coordinates, "tau": p.tau, "metric": p.metric, "dtype": p.dtype, "embedded": p.embedded,
            "exact": exact, "strict": p.strict, "corridor": corridor, "per_column": p.column_limits is not None,
            "second_partner": second_partner, "n_radii": p.n_radii,
            "limits_per_radius": (2 if exact else 1) * (2 if corridor else 1), "coordinates": p.n_features,
        }  # fmt: skip
        sizes = {"rows": p.n_rows, "columns_of_matrix": p.n_columns}
        choice = parameters(spec("recurrence_bits"), values, self.executor.info, sizes)
        values |= choice.parameters
        if not staging_fits(values, self.executor.info):
            why = "what a group stages must fit into local memory, however long the embedding"
            values |= adjusted(choice, {**choice.parameters, "staged": False}, why)
        return values

    def _edge(self, tile: int | None) -> int:
        """Edge of a tile: as asked for, or tuned and such that it pays; within the matrix, and its bits fit."""
        longest = max(self.problem.n_rows, self.problem.n_columns)
        best = tile if tile is not None else int(self._bits_values[0]["edge"])
        kept = isqrt(spare_bytes(self.executor.info))  # bits of columns take a fourth of the edge's square
        while tile is None and best > max(kept, isqrt(_CELLS_A_ROW * longest)):
            best //= 2
        edge = min(round_up(max(best, 1), _LEAST_EDGE), round_up(longest, _LEAST_EDGE))
        room = budget(self.executor.info)
        while True:
            bits, radii = edge * edge // 8, self.problem.n_radii
            if bits * max(radii, 2) <= room.largest and bits * (2 * radii + 2) <= room.total // 2:
                return edge
            if edge == _LEAST_EDGE:
                raise DeviceMemoryError(
                    f"a tile of {edge} x {edge} cells for {_radii(radii)} needs "
                    f"{bits * (2 * radii + 2):,} bytes; {room.total // 2:,} may be used for it on "
                    f"{self.executor.info.name}. Ask for fewer radii at once or raise PYEDMCL_MEMORY_LIMIT."
                )
            edge = round_up(edge // 2, _LEAST_EDGE)

    def _allocate(self) -> None:
        p, edge = self.problem, self.edge
        lines = (p.n_columns - p.k_first, p.n_rows if p.symmetric else 1, p.n_columns)
        longest = max(p.n_rows, p.n_columns)
        of_a_radius = sum(LineBuffers.sizes(lines, longest).values())
        need = p.n_radii * of_a_radius + edge * edge // 8 * (2 * p.n_radii + 2)
        room = budget(self.executor.info)
        if need > room.total:
            raise DeviceMemoryError(
                f"counts of {p.n_rows:,} x {p.n_columns:,} cells for {_radii(p.n_radii)} need {need:,} bytes on the "
                f"device; {room.total:,} may be used on {self.executor.info.name}. Ask for fewer radii at once or "
                "raise PYEDMCL_MEMORY_LIMIT."
            )
        words = edge // 32
        self._bits = self._new(4 * words * edge * p.n_radii)
        self._rows = self._new(4 * words * edge * p.n_radii)
        self._columns = self._new(4 * words * 2 * edge)
        self._longest = longest
        self._radii = [LineBuffers.allocated(self._new, lines, longest) for _ in range(p.n_radii)]

    def _build(self) -> None:
        self._bits_kernels = [build(self.executor, spec("recurrence_bits"), values) for values in self._bits_values]
        self._kernels = {
            entry: build(self.executor, spec(name), values, entry)
            for name, values, entries in (
                ("recurrence_transpose", self._transpose_values, ("transpose_to_rows", "transpose_to_columns")),
                ("recurrence_lines", self._lines_values,
                 ("recurrence_lines", "recurrence_fold", "recurrence_clear", "recurrence_zero")),
            )
            for entry in entries
        }  # fmt: skip

    def _new(self, nbytes: int) -> Buffer:
        self._held.append(self.executor.allocate(nbytes))
        return self._held[-1]

    def tiles(self, begin: int, end: int) -> list[Tile]:
        """Tiles of rows ``begin`` to ``end`` in the order that :meth:`run` takes them: further down later, and within a
        strip from the last diagonal back."""
        tiles = []
        for i0 in range(begin, end, self.edge):
            i1 = min(i0 + self.edge, end)
            k_start = 0 if self.problem.symmetric else -round_up(i1 - 1, 32)
            k_end = self.problem.n_columns - i0
            strip = [
                # Rows that the tile's first diagonal has: the further right, the fewer.
                Tile(i0, -(-(min(i1, self.problem.n_columns - k0) - i0) // 32), k0,
                     min(self.edge, round_up(k_end - k0, 32)))
                for k0 in range(k_start, k_end, self.edge)
            ]  # fmt: skip
            tiles += strip[::-1]
        return tiles

    def run(self, begin: int, end: int, report: Report | None = None) -> list[Partial]:
        """Count rows ``begin`` to ``end`` (``begin`` a multiple of 32): one :class:`Partial` per radius.

        ``report`` is given the number of cells done so far by this call.
        """
        done = self._sweep(begin, end, report)
        finish = Finish(self.executor, self.problem, self._longest)
        try:
            partials = [self._partial(buffers, begin, end, finish) for buffers in self._radii]
        finally:
            finish.release()
        if report is not None:
            report(done)
        return partials

    def counts(self, identity: Identity, report: Report | None = None) -> list[Counts]:
        """Count all rows: one :class:`Counts` per radius. ``identity`` gives the main diagonal's recurrent cells by
        radius, where they count as lines."""
        finish = Finish(self.executor, self.problem, self._longest)
        try:
            done = self._sweep(0, self.problem.n_rows, report)
            counts = [finish.counts(buffers, identity(radius)) for radius, buffers in enumerate(self._radii)]
            if report is not None:
                report(done)
            return counts
        finally:
            finish.release()

    def _sweep(self, begin: int, end: int, report: Report | None) -> int:
        """Walk all tiles; how many cells they have. They are not counted before something is downloaded."""
        for buffers in self._radii:
            buffers.clear(self.executor, self._kernels)
        waiting = unfolded = done = 0
        for tile in self.tiles(begin, end):
            self._find_bits(tile, end)
            for radius, buffers in enumerate(self._radii):
                bits_begin = radius * tile.n_words * tile.n_diagonals
                self._transpose(tile, bits_begin)
                event = self._walk(tile, bits_begin, buffers)
            unfolded += tile.cells
            if unfolded + self.edge**2 > _FOLD_CELLS:
                self._fold()
                unfolded = 0
            waiting, done = waiting + 1, done + tile.cells
            if waiting == _WAIT_TILES:
                event.wait()
                waiting = 0
                if report is not None:
                    report(done)
        self._fold()
        return done

    def _find_bits(self, tile: Tile, i_end: int) -> None:
        """Words along diagonals of all radii; those of the second partner are combined with those of the first."""
        p = self.problem
        for values, kernel, side in zip(self._bits_values, self._bits_kernels, self.sides, strict=True):
            wg = values["wg"]
            groups = -(-tile.n_diagonals // (wg * values["lanes"])), -(-tile.n_words // values["words"])
            self.executor.launch(
                kernel, (groups[0] * wg, groups[1]), (wg, 1), **tile._asdict(), x=side.x, y=side.y, x64=side.x64,
                y64=side.y64, limits=side.limits, limits64=side.limits64, x_stride=side.x_stride,
                y_stride=side.y_stride, y_front=side.front, limit_stride=side.limit_stride,
                theiler=p.theiler if p.theiler_everywhere else 0, i_end=i_end, n_columns=p.n_columns,
                bits=self._bits, rows=self._rows, **({"n_radii": p.n_radii} if p.n_radii > 1 else {}),
            )  # fmt: skip

    def _transpose(self, tile: Tile, begin: int) -> None:
        """Words along rows, where the bits' kernel has not made them, and words along columns."""
        blocks = tile.n_diagonals // 32
        size = {
            "n_words": tile.n_words, "n_diagonals": tile.n_diagonals, "begin": begin,
            "columns_left": self.problem.n_columns - tile.i0 - tile.k0,
        }  # fmt: skip
        if not self._rows_made:
            self._launch("transpose_to_rows", open_size(blocks, tile.n_words), None, bits=self._bits,
                         rows=self._rows, **size)  # fmt: skip
        if self._transpose_values["staged"]:
            wg = self._transpose_values["wg"]
            across, local = round_up(blocks + 1, wg), (wg, 1)
        else:
            (across,), local = open_size(blocks + tile.n_words), None
        self._launch(
            "transpose_to_columns", (across, tile.n_words), local, rows=self._rows, columns=self._columns,
            own_diagonal=0 if self.problem.symmetric and tile.k0 == 0 else -1, **size,
        )  # fmt: skip

    def _walk(self, tile: Tile, bits_begin: int, buffers: LineBuffers) -> Event:
        """Runs along diagonals, rows (of a symmetric matrix) and columns."""
        p, wg = self.problem, self._lines_values["wg"]
        together = wg * self._lines_values["lanes"]
        n_rows, n_columns = 32 * tile.n_words, tile.n_diagonals + 32 * tile.n_words
        groups = [-(-tile.n_diagonals // together), -(-n_rows // together) if p.symmetric else 0,
                  -(-n_columns // together)]  # fmt: skip
        return self._launch(
            "recurrence_lines", (sum(groups) * wg,), (wg,), **tile._asdict(), bits=self._bits, rows=self._rows,
            columns=self._columns, n_rows=p.n_rows, n_columns=p.n_columns, k_first=p.k_first, k_end=p.n_columns,
            theiler=p.line_window, groups_diagonals=groups[0], groups_rows=groups[1],
            diagonal_segments=buffers.diagonals, row_segments=buffers.rows, column_segments=buffers.columns,
            histograms=buffers.counts, longest=self._longest, bits_begin=bits_begin,
        )  # fmt: skip

    def _launch(
        self, entry: str, size: tuple[int, ...], local: tuple[int, ...] | None, /, **arguments: Any
    ) -> Event:
        return self.executor.launch(self._kernels[entry], size, local, **arguments)

    def _fold(self) -> None:
        n = WALKED_KINDS * (self._longest + 1)
        for buffers in self._radii:
            self._launch("recurrence_fold", open_size(n), None, counts=buffers.counts, sums=buffers.sums, n=n)

    def _partial(self, buffers: LineBuffers, begin: int, end: int, finish: Finish) -> Partial:
        lines, held = [], {}
        for kind, (first, stop) in lines_of_rows(self.problem, begin, end).items():
            buffer: Buffer = getattr(buffers, kind)
            segments = np.empty((FIELDS, stop - first), np.int32)
            for field, row in enumerate(segments):
                self.executor.download(buffer, row, field_offset(buffer, field, first))
            held[kind] = segments
            lines.append((first, lines_in(buffer)))
        return Partial(begin, end, histograms=finish.histograms(buffers), lines=np.array(lines), **held)

    def release(self) -> None:
        """Give the device memory back."""
        for side in self.sides:
            side.release()
        for buffer in self._held:
            buffer.release()
        self._held.clear()


def staging_fits(values: Mapping[str, Any], info: DeviceInfo) -> bool:
    """Whether half of the local memory holds what a group of ``recurrence_bits`` with these values stages."""
    reach = 0 if values["embedded"] else (values["m"] - 1) * values["tau"]
    staged = values["coordinates"] * (2 * (32 * values["words"] + reach) + values["wg"])
    return bool(staged * np.dtype(values["dtype"]).itemsize <= quirks_for(info).local_bytes // 2)


def lines_of_rows(p: RqaProblem, begin: int, end: int) -> dict[str, tuple[int, int]]:
    """Kind of lines -> the range of those that cells of rows ``begin`` to ``end`` can be on."""
    if p.symmetric:  # cells on and above the main diagonal
        n = p.n_columns
        return {"diagonals": (0, n - begin), "rows": (begin, end), "columns": (begin, n)}
    diagonals = p.n_rows - end, p.n_rows + p.n_columns - 1 - begin
    return {"diagonals": diagonals, "rows": (0, 1), "columns": (0, p.n_columns)}


def _radii(n: int) -> str:
    return "one radius" if n == 1 else f"{n} radii"
