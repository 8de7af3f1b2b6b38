"""Skill of blocks of libraries against all targets by local linear fits, on the device."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.build import build
from ..device.memory import budget, memory_share
from ..device.quirks import quirks_for
from ..errors import DeviceMemoryError
from ..kernels import spec
from ..kernels.smap_map import MOST_COLUMNS, MOST_ROWS, MOST_STEP, local_numbers, tile_columns, tile_rows
from ..launch.invariants import require_rho
from ..launch.pacing import Pacer
from ..launch.pool import Pool
from ..launch.sizes import open_size, round_up
from ..launch.staging import Staging
from ..tuning.parameters import adjusted, parameters

if TYPE_CHECKING:
    from ..device.executor import Executor

_PIECES = 6  # numbers of a tile of rows, by target
_LIBRARIES_MOST = 4096  # at a time; a dimension of a launch
_SUMS_BYTES_MOST = 256 << 20
_SHARE_OF_DOUBLE = 0.25  # of memory, for what is done again in float64


@dataclass(frozen=True)
class SmapMapData:
    """What a map of local linear fits is computed from.

    Attributes
    ----------
    values : ndarray (n_steps, n_targets)
        All targets, from :func:`pyedmcl.data.condition.condition` for the working precision.
    libraries : ndarray (n_steps, n_series) of float64
        All libraries: regressors are made in double.
    exponents : ndarray of int (n_series,)
        ``libraries`` are the data times ``2**-exponent``, less a shift.
    E : ndarray of int (n_targets,)
        Embedding dimension of each target.
    tau, Tp, exclusion_radius : int
    gap_pattern : ndarray of int (n_targets,)
        0 for targets without gaps, else the number of the target's gap pattern.
    library_masks : mapping
        Pattern number -> library rows (n_steps,) that may be neighbours; see :mod:`pyedmcl.edm.masks`.
    gaps : bool
        Whether any prediction or observation may be missing.
    thetas : tuple of float
        Localisations; a map for each.
    ridge : float
        Penalty on the squared slopes, in units of the data.
    in_double : ndarray (n_steps, n_targets) of float64, optional
        The targets for what is done again in float64; ``libraries`` by default.
    """

    values: NDArray[Any]
    libraries: NDArray[np.float64]
    exponents: NDArray[np.int_]
    E: NDArray[np.int_]
    tau: int
    Tp: int
    exclusion_radius: int
    gap_pattern: NDArray[np.int_]
    library_masks: Any
    gaps: bool
    thetas: tuple[float, ...]
    ridge: float = 0.0
    in_double: NDArray[np.float64] | None = None


@dataclass(frozen=True)
class _Class:
    """Targets of one dimension and pattern of gaps, adjacent columns, and how the kernels treat them."""

    E: int
    pattern: int
    begin: int
    end: int
    gram: dict[str, Any]
    map: dict[str, Any]

    @property
    def sums_stride(self) -> int:
        return round_up(self.end - self.begin, tile_columns(self.map))


class SmapMap:
    """All-pairs skill by S-map: one small system for each library row, which serves all targets.

    Parameters
    ----------
    executor : Executor
    data : SmapMapData

    Raises
    ------
    DeviceMemoryError
        Targets, or one library, do not fit on the device.
    """

    def __init__(self, executor: Executor, data: SmapMapData) -> None:
        self.executor, self._data = executor, data
        self._n_steps, self.n = data.values.shape
        self.dtype = data.values.dtype.name
        self._item = data.values.itemsize
        self._pool = Pool(executor)
        self._pacers = {name: Pacer(executor.info) for name in ("white", "gram", "map")}
        self._staged: list[Staging] = []
        try:
            room = self._load_targets()
            self._series = Staging(executor, data.libraries, room=room // 8)
            self._staged.append(self._series)
            self._classes = [self._class(*key) for key in self._keys]
            self._batch = self._libraries_at_once(room)
        except BaseException:
            self.release()
            raise

    def _load_targets(self) -> int:
        """Targets time-major, those of one dimension and pattern of gaps side by side; returns the bytes left."""
        data, limit = self._data, budget(self.executor.info)
        self._stride = round_up(self.n, 16)
        # Steps and vectors of columns reach behind the last row.
        rows = round_up(self._n_steps + MOST_STEP + -(-MOST_COLUMNS // self._stride), 16)
        nbytes, most = rows * self._stride * self._item, min(limit.largest, limit.total * 3 // 4)
        if nbytes > most:
            raise DeviceMemoryError(
                f"{self.n:,} targets of {self._n_steps:,} steps need {nbytes:,} bytes on the device; {most:,} may be "
                f"used for them on {self.executor.info.name} (raise PYEDMCL_MEMORY_FRACTION or PYEDMCL_MEMORY_LIMIT)"
            )
        order = np.lexsort((np.arange(self.n), data.E, data.gap_pattern))
        column_of = np.empty(self.n, np.int32)
        column_of[order] = np.arange(self.n)
        scored = (np.maximum((data.E - 1) * data.tau, -data.Tp) + data.Tp, min(self._n_steps, self._n_steps + data.Tp))
        room = int(limit.total - nbytes)
        staging = Staging(self.executor, data.values, scored=scored, room=room // 8)
        self._staged.append(staging)
        self._targets = self._pool.get("targets", nbytes)
        staging.targets(column_of, self._stride, self._targets, rows)
        self._put("target_of", order.astype(np.int32))
        pairs = np.stack([data.gap_pattern[order], data.E[order]], axis=1)
        edges = [0, *(np.flatnonzero((pairs[1:] != pairs[:-1]).any(axis=1)) + 1).tolist(), self.n]
        self._keys = [
            (int(pairs[a, 1]), int(pairs[a, 0]), a, b) for a, b in itertools.pairwise(edges)
        ]
        return room

    def _class(self, E: int, pattern: int, begin: int, end: int) -> _Class:
        info, sizes = self.executor.info, {"rows": self._n_steps, "targets": end - begin}
        given: dict[str, Any] = {"E": E, "gaps": self._data.gaps, "dtype": self.dtype}
        solving = {**given, "penalised": self._data.ridge > 0}
        choice = parameters(spec("smap_map"), given, info, sizes)
        chosen = dict(choice.parameters)
        local = quirks_for(info).local_bytes
        while chosen["target_tiles"] > 1 and tile_columns(chosen) // 2 >= end - begin:
            chosen["target_tiles"] //= 2
        for name, least in (("target_tiles", 1), ("step", 8)):
            while chosen[name] > least and local_numbers({**given, **chosen}) * self._item > local:
                chosen[name] //= 2
        adjusted(choice, chosen, "tiles are no wider than the targets, and must fit into local memory")
        gram = parameters(spec("smap_gram"), solving, info, sizes).parameters
        return _Class(E, pattern, begin, end, {**solving, **gram}, {**given, **chosen})

    def _extent(self, E: int) -> tuple[int, int, int]:
        """First row of a map, rows, and rows with padding."""
        data = self._data
        first, end = max((E - 1) * data.tau, -data.Tp), min(self._n_steps, self._n_steps - data.Tp)
        return first, end - first, round_up(end - first, MOST_ROWS)

    def _libraries_at_once(self, room: int) -> int:
        """Libraries whose states, fits and sums fit on the device."""
        most, largest = 0, 0
        for each in self._classes:
            _, m, padded = self._extent(each.E)
            sums = -(-m // tile_rows(each.map)) * _PIECES * each.sums_stride * self._item
            parts = (
                8 * (each.E + 1) * padded, round_up(2 * each.E + 1, 4) * padded * self._item,
                (2 * each.E + 1) * padded * self._item, (each.E + 3) * padded * self._item, sums,
                8 * self._n_steps, self.n * self._item,
            )  # fmt: skip
            most, largest = max(most, sum(parts)), max(largest, *parts)
            most = max(most, -(-sums * room // (2 * _SUMS_BYTES_MOST)))
        limit = budget(self.executor.info)
        if most > room // 2 or largest > limit.largest:
            raise DeviceMemoryError(
                f"one library of {self._n_steps:,} steps needs {most:,} bytes on the device; {room // 2:,} may be used "
                f"on {self.executor.info.name} (raise PYEDMCL_MEMORY_FRACTION or PYEDMCL_MEMORY_LIMIT)"
            )
        return max(min(room // 2 // most, limit.largest // largest, _LIBRARIES_MOST), 1)

    def _put(self, name: str, values: NDArray[Any]) -> Any:
        values = np.ascontiguousarray(values)
        return self.executor.upload(values, self._pool.get(name, max(values.nbytes, 1)))

    @property
    def parameters(self) -> dict[str, Any]:
        """Tuned parameters of the kernels, as the widest class of targets has them."""
        widest = max(self._classes, key=lambda each: each.end - each.begin)
        tuned = {"smap_gram": widest.gram, "smap_map": widest.map}
        return {name: {t.name: values[t.name] for t in spec(name).tunables} for name, values in tuned.items()}

    def skill(
        self, a: int, b: int, out: Sequence[NDArray[Any]], report: Callable[[int], None] | None = None
    ) -> Sequence[NDArray[Any]]:
        """rho (b - a, n_targets) of libraries a to b against all targets, for each theta, into ``out`` (contiguous).

        ``report`` is called with the libraries that are done, batch by batch.
        """
        for first in range(a, b, self._batch):
            n = min(self._batch, b - first)
            self._skill(first, n, [layer[first - a : first - a + n] for layer in out])
            if report is not None:
                report(first - a + n)
        return out

    def _skill(self, a: int, n: int, out: Sequence[NDArray[Any]]) -> None:
        series = self._pool.get("series", n * self._n_steps * 8)
        self._series.series(a, a + n, 0, self._n_steps, self._n_steps, series)
        strength = np.ldexp(np.full(n, self._data.ridge), -2 * self._data.exponents[a : a + n])
        self._put("strength", np.minimum(strength, 1e300))
        thetas = self._data.thetas
        self._put("doubtful", np.zeros(n, np.int32))
        rho = self._pool.get("rho", n * self.n * self._item)
        again: list[tuple[int, NDArray[np.int_]]] = []
        for place, theta in enumerate(thetas):
            for each in self._classes:
                if len(self._classes) > 1 or place == 0 or min(theta, 1.0) != min(thetas[place - 1], 1.0):
                    self._put("allowed", self._allowed(each))
                    self._whiten(each, n, theta)
                self._fit(each, n, theta)
                self._map(each, n, rho)
            self.executor.download(rho, out[place])
            doubtful = self.executor.download(self._pool.get("doubtful", 0), np.empty(n, np.int32))
            if doubtful.any() and self.dtype == "float32":
                again.append((place, np.flatnonzero(doubtful)))
                self._put("doubtful", np.zeros(n, np.int32))
        for place, libraries in again:
            self._in_double(a, libraries, thetas[place], out[place])
        for layer in out:
            require_rho(self.executor, layer, "smap_map")

    def _in_double(self, a: int, libraries: NDArray[np.int_], theta: float, out: NDArray[Any]) -> None:
        """Once more, and in float64, for libraries (places in ``out``) whose fits are too nearly singular."""
        targets = self._data.libraries if self._data.in_double is None else self._data.in_double
        data = replace(self._data, values=targets, thetas=(theta,))
        with memory_share(_SHARE_OF_DOUBLE):
            other = SmapMap(self.executor, data)
        try:
            for run in np.split(libraries, np.flatnonzero(np.diff(libraries) > 1) + 1):
                found = np.empty((len(run), self.n))
                other.skill(a + int(run[0]), a + int(run[-1]) + 1, [found])
                out[run[0] : run[-1] + 1] = found
        finally:
            other.release()

    def _allowed(self, each: _Class) -> NDArray[np.uint8]:
        """Library rows that the pattern of gaps of a class allows, from its first row on."""
        first, m, _ = self._extent(each.E)
        mask = self._data.library_masks.get(each.pattern)
        return np.ones(m, np.uint8) if mask is None else mask[first : first + m].astype(np.uint8)

    def _states(self, each: _Class, n: int) -> dict[str, Any]:
        """The buffers of a class's states, and its rows."""
        _, m, padded = self._extent(each.E)
        state = round_up(2 * each.E + self._data.gaps, 4)
        sizes = {"states": state, "columns": 2 * each.E + self._data.gaps}
        buffers = {name: self._pool.get(name, n * padded * size * self._item) for name, size in sizes.items()}
        return {**buffers, "n_rows": m, "n_padded": padded}

    def _penalty(self, each: _Class, n: int) -> Any:
        return self._pool.get("penalty", n * each.E**2 * 8)

    def _whiten(self, each: _Class, n: int, theta: float) -> None:
        given = {name: each.gram[name] for name in ("E", "gaps", "penalised", "dtype")}
        values = parameters(spec("smap_white"), given, self.executor.info, {"rows": self._n_steps}).parameters
        kernel = build(self.executor, spec("smap_white"), {**given, **values})
        first, m, padded = self._extent(each.E)
        wg, pacer, cost = int(values["wg"]), self._pacers["white"], 4.0 * m * each.E * (2 * each.E + 6)
        done = 0
        while done < n:
            some = min(pacer.units(cost), n - done)
            event = self.executor.launch(
                kernel, (some * wg,), (wg,), series=self._pool.get("series", 0), first_library=done,
                series_stride=self._n_steps, first=first, lag=self._data.tau, allowed=self._pool.get("allowed", 0),
                theta=theta, strength=self._pool.get("strength", 0), penalty=self._penalty(each, n),
                work=self._pool.get("work", n * (each.E + 1) * padded * 8), **self._states(each, n),
            )  # fmt: skip
            pacer.launched(event, cost * some)
            done += some

    def _fit(self, each: _Class, n: int, theta: float) -> None:
        kernel = build(self.executor, spec("smap_gram"), each.gram)
        E, wg, (_, m, padded) = each.E, int(each.gram["wg"]), self._extent(each.E)
        rows, pacer = wg * int(each.gram["lanes"]), self._pacers["gram"]
        tiles, begin = -(-m // rows), 0
        cost = float(rows) * m * n * (6 * E + 12 + (E + 1) * (E + 2) // 2)
        while begin < tiles:
            some = min(pacer.units(cost), tiles - begin)
            event = self.executor.launch(
                kernel, (some * wg, n), (wg, 1), first_tile=begin, radius=min(self._data.exclusion_radius, 2**29),
                theta=theta, penalty=self._penalty(each, n),
                fits=self._pool.get("fits", n * padded * (E + 3) * self._item),
                doubtful=self._pool.get("doubtful", 0), **self._states(each, n),
            )  # fmt: skip
            pacer.launched(event, cost * some)
            begin += some

    def _map(self, each: _Class, n: int, rho: Any) -> None:
        get, launch = self._pool.get, self.executor.launch
        entries = "smap_map", "smap_score"
        kernel, score = (build(self.executor, spec("smap_map"), each.map, entry) for entry in entries)
        first, m, _ = self._extent(each.E)
        rows, columns = tile_rows(each.map), tile_columns(each.map)
        wg = int(each.map["target_lanes"] * each.map["row_lanes"])
        tiles, blocks, stride = -(-m // rows), -(-(each.end - each.begin) // columns), each.sums_stride
        where: dict[str, Any] = {
            "column_begin": each.begin, "column_end": each.end, "sums_stride": stride, "n_tiles": tiles,
            "sums": get("sums", n * tiles * _PIECES * stride * self._item),
        }  # fmt: skip
        pacer, begin = self._pacers["map"], 0
        cost = float(rows) * m * n * (2 * (each.end - each.begin) + blocks * (5 * each.E + 12))
        while begin < tiles:
            some = min(pacer.units(cost), tiles - begin)
            event = launch(
                kernel, (blocks * wg, some, n), (wg, 1, 1), fits=get("fits", 0), first_tile=begin,
                radius=min(self._data.exclusion_radius, 2**29), targets=self._targets, target_stride=self._stride,
                first=first + self._data.Tp, **where, **self._states(each, n),
            )  # fmt: skip
            pacer.launched(event, cost * some)
            begin += some
        launch(
            score, open_size(each.end - each.begin, n), None, target_of=get("target_of", 0), first_library=0,
            rho_stride=self.n, rho=rho, **where,
        )  # fmt: skip

    def release(self) -> None:
        """Give the device memory back."""
        self._pool.release()
        for staging in self._staged:
            staging.release()
