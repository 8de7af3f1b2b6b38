"""A device's sweep over rows of a recurrence matrix, tile by tile: divide, and recombine on the spot."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.build import build
from ..device.memory import budget
from ..device.quirks import quirks_for
from ..device.slots import in_order
from ..errors import DeviceMemoryError
from ..kernels import spec
from ..launch.sizes import round_up
from ..tuning.parameters import adjusted, parameters
from .finish import Finish
from .partial import Partial
from .sides import Padding, Sides

if TYPE_CHECKING:
    from ..device.executor import Buffer, Event, Executor
    from .counts import Counts
    from .problem import RqaProblem

Identity = Callable[[int], NDArray[np.bool_] | None]
#: Says how many cells are done.
Report = Callable[[int], None]

_LEAST_EDGE = 32
# Cells until 32-bit counts are folded into 64-bit sums: no kind of line is on more than half of the cells.
_FOLD_CELLS = 6 << 30
_WAIT_TILES = 8  # a queue holds no more, so that Ctrl-C is heard


class TileSweep:
    """Counts rows of the matrix of ``problem`` on one device.

    Parameters
    ----------
    executor : Executor
    problem : RqaProblem
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
        self._bits_values = [self._chosen(one, also=place > 0) for place, (one, _, _) in enumerate(pairs)]
        # The last partner's words are complete.
        self._turned = bool(self._bits_values[-1]["turned"])
        self._turn = dict(parameters(spec("recurrence_turn"), {}, executor.info).parameters)
        self._lines = dict(parameters(spec("recurrence_lines"), {}, executor.info).parameters)
        self.edge = self._edge(tile)
        # Tiles reach past the last row and column, by a word and by what a group stages.
        reach = max((one.m - 1) * one.tau for one, _, _ in pairs)
        padding = Padding(self.edge + 64, 2 * self.edge + reach + 1536)
        self._held: list[Buffer] = []
        self.sides: list[Sides] = []
        try:
            for one, rows, columns in pairs:
                self.sides.append(Sides(executor, one, rows, columns, padding))
            self._allocate()
        except BaseException:
            self.release()
            raise

    @property
    def k_first(self) -> int:
        """Offset of the first diagonal."""
        return 0 if self.problem.symmetric else 1 - self.problem.n_rows

    @property
    def used(self) -> dict[str, dict[str, Any]]:
        """Parameters of each kernel."""
        names = {t.name for t in spec("recurrence_bits").tunables}
        bits = {name: value for name, value in self._bits_values[0].items() if name in names}
        return {"recurrence_bits": {**bits, "edge": self.edge}, "recurrence_turn": self._turn,
                "recurrence_lines": self._lines}  # fmt: skip

    def _chosen(self, one: RqaProblem, also: bool) -> dict[str, Any]:
        exact = one.exact and one.dtype == "float32"
        corridor = one.inner is not None
        values: dict[str, Any] = {
            "m": one.coordinates, "tau": one.tau, "metric": one.metric, "dtype": one.dtype,
            "embedded": one.embedded, "exact": exact, "strict": one.strict, "corridor": corridor,
            "per_column": one.column_limits is not None, "also": also, "n_radii": one.n_radii,
            "limits_per_radius": (2 if exact else 1) * (2 if corridor else 1),
            "coordinates": one.n_features,
        }  # fmt: skip
        sizes = {"rows": one.n_rows, "columns_of_matrix": one.n_columns}
        choice = parameters(spec("recurrence_bits"), values, self.executor.info, sizes)
        values |= choice.parameters
        reach = 0 if one.embedded else (one.m - 1) * one.tau
        staged = values["coordinates"] * (2 * (32 * values["words"] + reach) + values["wg"])
        if staged * np.dtype(one.dtype).itemsize > quirks_for(self.executor.info).local_bytes // 2:
            why = "what a group stages must fit into local memory, however long the embedding"
            values |= adjusted(choice, {**choice.parameters, "staged": False}, why)
        return values

    def _edge(self, tile: int | None) -> int:
        """Edge of a tile: as asked for or tuned, no longer than the matrix, and such that its bits fit."""
        longest = max(self.problem.n_rows, self.problem.n_columns)
        asked = tile if tile is not None else int(self._bits_values[0]["edge"])
        edge = min(round_up(max(asked, 1), _LEAST_EDGE), round_up(longest, _LEAST_EDGE))
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
        lines = (p.n_columns - self.k_first, p.n_rows if p.symmetric else 1, p.n_columns)
        longest = max(p.n_rows, p.n_columns)
        need = p.n_radii * (20 * sum(lines) + 48 * (longest + 1)) + edge * edge // 8 * (2 * p.n_radii + 2)
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
        self._known = [tuple(self._new(20 * n) for n in lines) for _ in range(p.n_radii)]
        self._lengths = lines
        self._longest = longest
        self._counts = [self._new(16 * (longest + 1)) for _ in range(p.n_radii)]
        self._sums = [self._new(32 * (longest + 1)) for _ in range(p.n_radii)]
        lines_spec = spec("recurrence_lines")
        entries = ("recurrence_lines", "recurrence_fold", "recurrence_clear", "recurrence_zero")
        self._kernels = {name: build(self.executor, lines_spec, self._lines, name) for name in entries}
        for name in ("turn_to_rows", "turn_to_columns"):
            self._kernels[name] = build(self.executor, spec("recurrence_turn"), self._turn, name)
        self._bits_kernels = [build(self.executor, spec("recurrence_bits"), values) for values in self._bits_values]

    def _new(self, nbytes: int) -> Buffer:
        self._held.append(self.executor.allocate(nbytes))
        return self._held[-1]

    def tiles(self, begin: int, end: int) -> list[tuple[int, int, int, int]]:
        """Tiles of rows ``begin`` to ``end``: (first row, words of rows, first diagonal, diagonals), in the order that
        :meth:`run` takes them: further down later, and within a strip from the last diagonal back."""
        tiles = []
        for i0 in range(begin, end, self.edge):
            i1 = min(i0 + self.edge, end)
            k_start = 0 if self.problem.symmetric else -round_up(i1 - 1, 32)
            k_end = self.problem.n_columns - i0
            strip = [  # rows that a tile's first diagonal has: the further right, the fewer
                (i0, -(-(min(i1, self.problem.n_columns - k0) - i0) // 32), k0,
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
        partials = [self._partial(radius, begin, end) for radius in range(self.problem.n_radii)]
        if report is not None:
            report(done)
        return partials

    def counts(self, identity: Identity, report: Report | None = None) -> list[Counts]:
        """Count all rows: one :class:`Counts` per radius. ``identity`` gives the main diagonal's recurrent cells by
        radius, where they count as lines."""
        finish = Finish(self.executor, self.problem, self._longest)
        try:
            done = self._sweep(0, self.problem.n_rows, report)
            counts = [
                finish.counts(*buffers, identity(radius))
                for radius, buffers in enumerate(zip(self._known, self._counts, self._sums, strict=True))
            ]
            if report is not None:
                report(done)
            return counts
        finally:
            finish.release()

    def _sweep(self, begin: int, end: int, report: Report | None) -> int:
        """Walk all tiles; how many cells they have. They are not counted before something is downloaded."""
        p = self.problem
        for known, counts in zip(self._known, self._counts, strict=True):
            for buffer, n in zip(known, self._lengths, strict=True):
                self._launch("recurrence_clear", (round_up(n, 64),), None, (buffer, np.uint64(n)))
            self._zero(counts)
        for sums in self._sums:
            self._zero(sums)
        waiting = unfolded = done = 0
        for i0, n_words, k0, n_diagonals in self.tiles(begin, end):
            self._find_bits(i0, n_words, k0, n_diagonals, end)
            cells = n_words * 32 * n_diagonals
            for radius in range(p.n_radii):
                at = np.uint64(radius * n_words * n_diagonals)
                self._turn_words(i0, n_words, k0, n_diagonals, at)
                event = self._walk(radius, i0, n_words, k0, n_diagonals, at)
            unfolded += cells
            if unfolded + self.edge**2 > _FOLD_CELLS:
                self._fold()
                unfolded = 0
            waiting, done = waiting + 1, done + cells
            if waiting == _WAIT_TILES:
                event.wait()
                waiting = 0
                if report is not None:
                    report(done)
        self._fold()
        return done

    def _find_bits(self, i0: int, n_words: int, k0: int, n_diagonals: int, end: int) -> None:
        i, p = np.int32, self.problem
        for values, kernel, side in zip(self._bits_values, self._bits_kernels, self.sides, strict=True):
            wg = values["wg"]
            groups = -(-n_diagonals // (wg * values["lanes"])), -(-n_words // values["words"])
            self.executor.launch(
                kernel, (groups[0] * wg, groups[1]), (wg, 1), **in_order(kernel,
                (side.x, side.y, side.x64, side.y64, side.limits, side.limits64, i(side.x_stride), i(side.y_stride),
                 i(side.front), i(i0), i(k0), i(n_words), i(n_diagonals), i(side.limit_stride),
                 i(p.theiler if p.theiler_everywhere else 0), i(end), i(p.n_columns), self._bits, self._rows)),
            )  # fmt: skip

    def _turn_words(self, i0: int, n_words: int, k0: int, n_diagonals: int, at: np.uint64) -> None:
        """Words along rows, where they are not there yet, and words along columns."""
        i, blocks = np.int32, n_diagonals // 32
        size = n_words, n_diagonals, self.problem.n_columns - i0 - k0
        if not self._turned:
            self._launch("turn_to_rows", (blocks, n_words), None,
                         (self._bits, self._rows, *map(i, size), at))  # fmt: skip
        own = i(0 if self.problem.symmetric and k0 == 0 else -1)
        if self._turn["staged"]:
            wg = self._turn["wg"]
            across, local = round_up(blocks + 1, wg), (wg, 1)
        else:
            across, local = blocks + n_words, None
        self._launch("turn_to_columns", (across, n_words), local,
                     (self._rows, self._columns, *map(i, size), own, at))  # fmt: skip

    def _walk(self, radius: int, i0: int, n_words: int, k0: int, n_diagonals: int, at: np.uint64) -> Event:
        p, i, wg = self.problem, np.int32, self._lines["wg"]
        together = wg * self._lines["lanes"]
        diagonals = -(-n_diagonals // together)
        rows = -(-32 * n_words // together) if p.symmetric else 0
        groups = diagonals + rows + -(-(n_diagonals + 32 * n_words) // together)
        return self._launch(
            "recurrence_lines", (groups * wg,), (wg,),
            (self._bits, self._rows, self._columns, i(n_words), i(n_diagonals), i(i0), i(k0), i(p.n_rows),
             i(p.n_columns), i(self.k_first), i(p.n_columns), i(max(p.theiler, 1) if p.symmetric else p.theiler),
             i(diagonals), i(rows), *self._known[radius], self._counts[radius], i(self._longest), at),
        )  # fmt: skip

    def _launch(
        self, name: str, size: tuple[int, ...], local: tuple[int, ...] | None, arguments: tuple[Any, ...]
    ) -> Event:
        kernel = self._kernels[name]
        return self.executor.launch(kernel, size, local, **in_order(kernel, arguments))

    def _fold(self) -> None:
        n = 3 * (self._longest + 1)
        for counts, sums in zip(self._counts, self._sums, strict=True):
            self._launch("recurrence_fold", (round_up(n, 64),), None, (counts, sums, np.int32(n)))

    def _partial(self, radius: int, begin: int, end: int) -> Partial:
        known = [
            self.executor.download(buffer, np.empty((5, n), np.int32))
            for buffer, n in zip(self._known[radius], self._lengths, strict=True)
        ]
        n = 3 * (self._longest + 1)
        sums = self.executor.download(self._sums[radius], np.empty(n, np.uint64))
        diagonals, rows, columns = known
        return Partial(begin, end, diagonals, rows, columns, sums.view(np.int64).reshape(3, -1))

    def _zero(self, buffer: Buffer) -> None:
        words = buffer.nbytes // 4
        self._launch("recurrence_zero", (round_up(words, 64),), None, (buffer, np.uint64(words)))

    def release(self) -> None:
        """Give the device memory back."""
        for side in self.sides:
            side.release()
        for buffer in self._held:
            buffer.release()
        self._held.clear()


def _radii(n: int) -> str:
    return "one radius" if n == 1 else f"{n} radii"
