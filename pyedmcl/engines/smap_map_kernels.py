"""The kernels of maps of local linear fits: their memory, and how they are launched one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..device.quirks import quirks_for
from ..kernels import spec
from ..kernels.build import build
from ..kernels.specs.smap import MOST_ROWS, fit, on_matrix_units, record_numbers, tile_columns, tile_rows
from ..launch.staging import Pacer, Pool, open_size, round_up
from ..tuning.parameters import adjusted, parameters

if TYPE_CHECKING:
    from ..device.executor import Buffer, Executor


#     series of libraries (in double)
#       whiten   smap_white  -> states of each library, with regressors in which it is white
#       solve    smap_gram   -> fits: for each row the numbers g that make it a weighted sum over the library's rows
#       map      smap_map    -> predictions of all targets of a class, reduced to sums by tile
#                smap_score  -> rho (libraries, targets)
#       weigh    smap_slopes -> what each row of a library adds to the mean slopes of its fits, where these are wanted
#
# Each step takes a batch of libraries at once, and leaves what it made in buffers of the pool, where the next one finds
# it.


ASKED = 2  # the bit of rows that are predicted, beside that of rows that may be neighbours
_PIECES = 6  # numbers of a tile of rows, by target
_MOST_RADIUS = 2**29  # so that row + radius is an int; no series is longer


@dataclass(frozen=True)
class MapShape:
    """What a map of local linear fits is like, whatever its series hold."""

    n_steps: int
    n_targets: int
    tau: int
    Tp: int
    exclusion_radius: int
    # Whether any prediction or observation may be missing.
    gaps: bool
    # Whether slopes are penalised.
    penalised: bool
    # Whether mean slopes are wanted.
    slopes: bool
    # Of states, distances and products.
    dtype: str
    # Where the device has matrix units, these may multiply with less precision.
    compact: bool

    @property
    def item(self) -> int:
        """Bytes of a number."""
        return np.dtype(self.dtype).itemsize

    def extent(self, E: int) -> tuple[int, int, int]:
        """First row of a map, rows, and rows with padding."""
        first, end = max((E - 1) * self.tau, -self.Tp), min(self.n_steps, self.n_steps - self.Tp)
        return first, end - first, round_up(end - first, MOST_ROWS)


@dataclass(frozen=True)
class TargetClass:
    """Targets of one dimension and pattern of gaps, adjacent columns, and how the kernels treat them."""

    E: int
    pattern: int
    # begin, end: Columns.
    begin: int
    end: int
    # gram, map: Specialisation and parameters of the kernels of these names.
    gram: dict[str, Any]
    map: dict[str, Any]
    #: What :meth:`MapKernels.bytes_of_library` has found.
    needs: dict[str, int] = field(default_factory=dict, repr=False, compare=False)

    @property
    def n(self) -> int:
        return self.end - self.begin

    @property
    def sums_stride(self) -> int:
        return round_up(self.n, tile_columns(self.map))


class MapKernels:
    """Launches for batches of libraries.

    Parameters
    ----------
    pool : Pool
        Holds "series" (libraries, n_steps) in double and, where slopes are penalised, "strength" before
        :meth:`whiten`, and "doubtful" before :meth:`solve`.
    """

    def __init__(self, executor: Executor, pool: Pool, shape: MapShape) -> None:
        self.executor, self.shape, self._pool = executor, shape, pool
        self._pacers: dict[tuple[str, int], Pacer] = {}
        self._radius = min(shape.exclusion_radius, _MOST_RADIUS)

    def _pacer(self, name: str, E: int) -> Pacer:
        if (name, E) not in self._pacers:
            self._pacers[name, E] = Pacer(self.executor.info, f"smap_{name}", E, self.shape.dtype)
        return self._pacers[name, E]

    def class_of(self, E: int, pattern: int, begin: int, end: int) -> TargetClass:
        """The class of some columns, with parameters of the kernels that suit their number."""
        shape, info = self.shape, self.executor.info
        sizes = {"rows": shape.n_steps, "targets": end - begin}
        specialisation: dict[str, Any] = {"E": E, "gaps": shape.gaps, "dtype": shape.dtype}
        solving = {**specialisation, "penalised": shape.penalised, "slopes": shape.slopes}
        anywhere = {**specialisation, "matrix_units": False, "halves": False}
        choice = parameters(spec("smap_map"), anywhere, info, sizes)
        specialisation["matrix_units"] = self.on_matrix_units
        specialisation["halves"] = halves = self.on_matrix_units and shape.compact
        chosen = dict(choice.parameters)
        if self.on_matrix_units:
            chosen = on_matrix_units(E, end - begin, halves)
        else:
            for name in ("target_tiles", "vectors"):
                while chosen[name] > 1 and tile_columns(chosen) // 2 >= end - begin:
                    chosen[name] //= 2
        fit(chosen, specialisation, quirks_for(info).local_bytes // shape.item)
        why = "tiles are no wider than the targets, and must fit into local memory"
        if self.on_matrix_units:
            why += "; matrix units prescribe the rest"
        adjusted(choice, chosen, why)
        gram = parameters(spec("smap_gram"), solving, info, sizes).parameters
        return TargetClass(E, pattern, begin, end, {**solving, **gram}, {**specialisation, **chosen})

    @property
    def on_matrix_units(self) -> bool:
        """Whether predictions are made on matrix units."""
        return self.shape.dtype == "float32" and quirks_for(self.executor.info).matrix_units

    def bytes_of_library(self, each: TargetClass) -> dict[str, int]:
        """What one library needs on the device, by buffer."""
        if each.needs:
            return each.needs
        shape, E = self.shape, each.E
        _, m, padded = shape.extent(E)
        slopes = {"records": record_numbers(E) * padded * shape.item, "slopes": 8 * E * padded} if shape.slopes else {}
        each.needs.update(slopes | {
            "work": 8 * (E + 1) * padded,
            "states": round_up(2 * E + shape.gaps, 4) * padded * shape.item,
            "columns": (2 * E + shape.gaps) * padded * shape.item,
            "fits": (E + 3) * padded * shape.item,
            "sums": -(-m // tile_rows(each.map)) * _PIECES * each.sums_stride * shape.item,
            "series": 8 * shape.n_steps,
            "uses": shape.n_steps,
            "rho": shape.n_targets * shape.item,
        })  # fmt: skip
        return each.needs

    def reserve(self, classes: Sequence[TargetClass], n: int) -> None:
        """Make buffers for n libraries as large as any class needs them, so that none is replaced on the way."""
        for name in ("work", "states", "columns", "fits", "sums"):
            self._pool.get(name, n * max(self.bytes_of_library(each)[name] for each in classes))
        self._penalty(max(classes, key=lambda each: each.E), n)

    def _states(self, each: TargetClass, n: int) -> dict[str, Any]:
        """The buffers of a class's states, and its rows."""
        _, m, padded = self.shape.extent(each.E)
        need = self.bytes_of_library(each)
        buffers = {name: self._pool.get(name, n * need[name]) for name in ("states", "columns")}
        return {**buffers, "n_rows": m, "n_padded": padded}

    def _penalty(self, each: TargetClass, n: int) -> Buffer:
        return self._pool.get("penalty", n * each.E**2 * 8)

    def whiten(
        self, each: TargetClass, n: int, theta: float, library_mask: NDArray[np.bool_],
        asked: NDArray[np.bool_] | None = None,
    ) -> None:  # fmt: skip
        """States of n libraries, from their series.

        Parameters
        ----------
        library_mask : ndarray of bool (n_steps,) or (n, n_steps)
            Library rows that may be neighbours: of all libraries, or of each. Looked at only where there are gaps.
        asked : ndarray of bool (n_steps,) or (n, n_steps), optional
            Rows that are predicted, likewise; all by default.
        """
        shape, pool = self.shape, self._pool
        specialisation = {name: each.gram[name] for name in ("E", "gaps", "penalised", "dtype")}
        values = parameters(spec("smap_white"), specialisation, self.executor.info, {"rows": shape.n_steps}).parameters
        kernel = build(self.executor, spec("smap_white"), {**specialisation, **values})
        first, m, _ = shape.extent(each.E)
        held = pool.get("uses", 1)
        if shape.gaps:
            uses = library_mask.astype(np.uint8) | np.uint8(ASKED) * (True if asked is None else asked)
            held = self._pool.put("uses", uses[..., first : first + m])
        wg, pacer, cost = int(values["wg"]), self._pacer("white", each.E), 4.0 * m * each.E * (2 * each.E + 6)
        work, done = pool.get("work", n * self.bytes_of_library(each)["work"]), 0
        while done < n:
            n_libraries = min(pacer.units(cost), n - done)
            event = self.executor.launch(
                kernel, (n_libraries * wg,), (wg,), series=pool.get("series", 0), first_library=done,
                series_stride=shape.n_steps, first=first, lag=shape.tau, uses=held,
                uses_stride=m if library_mask.ndim > 1 else 0, theta=theta, strength=pool.get("strength", 8),
                penalty=self._penalty(each, n), work=work, **self._states(each, n),
            )  # fmt: skip
            pacer.launched(event, cost * n_libraries)
            done += n_libraries

    def solve(self, each: TargetClass, n: int, theta: float) -> None:
        """A system for each row of n libraries whose states were made; sets "doubtful" of libraries."""
        shape = self.shape
        self._pool.changed("doubtful")
        kernel = build(self.executor, spec("smap_gram"), each.gram)
        E, wg, (_, m, _) = each.E, int(each.gram["wg"]), shape.extent(each.E)
        rows, pacer = wg * int(each.gram["lanes"]), self._pacer("gram", each.E)
        tiles, begin = -(-m // rows), 0
        cost = float(rows) * m * n * (6 * E + 12 + (E + 1) * (E + 2) // 2)
        need = self.bytes_of_library(each)
        fits, records = (self._pool.get(name, n * need.get(name, 1)) for name in ("fits", "records"))
        while begin < tiles:
            count = min(pacer.units(cost), tiles - begin)
            event = self.executor.launch(
                kernel, (count * wg, n), (wg, 1), first_tile=begin, radius=self._radius, theta=theta,
                penalty=self._penalty(each, n), fits=fits, doubtful=self._pool.get("doubtful", 0),
                records=records, **self._states(each, n),
            )  # fmt: skip
            pacer.launched(event, cost * count)
            begin += count

    def map(
        self, each: TargetClass, n: int, targets: Buffer, stride: int, target_of: Buffer, rho: Buffer, rho_stride: int
    ) -> None:
        """rho of n libraries, whose systems were solved, against the targets of a class.

        Parameters
        ----------
        targets : Buffer
            Time-major, ``stride`` numbers for each step.
        target_of : Buffer
            Place of each column among the results of a library.
        rho : Buffer
            ``rho_stride`` numbers for each library.
        """
        get, launch, shape = self._pool.get, self.executor.launch, self.shape
        entries = "smap_map", "smap_score"
        kernel, score = (build(self.executor, spec("smap_map"), each.map, entry) for entry in entries)
        first, m, _ = shape.extent(each.E)
        rows, columns = tile_rows(each.map), tile_columns(each.map)
        wg = int(each.map["target_lanes"] * each.map["row_lanes"])
        tiles, blocks = -(-m // rows), -(-each.n // columns)
        where: dict[str, Any] = {
            "column_begin": each.begin, "column_end": each.end, "sums_stride": each.sums_stride, "n_tiles": tiles,
            "sums": get("sums", n * self.bytes_of_library(each)["sums"]),
        }  # fmt: skip
        arranged = self._arranged(each, targets, stride) if self.on_matrix_units else {}
        pacer, begin = self._pacer("map", each.E), 0
        cost = float(rows) * m * n * (2 * each.n + blocks * (5 * each.E + 12))
        while begin < tiles:
            count = min(pacer.units(cost), tiles - begin)
            event = launch(
                kernel, (blocks * wg, count, n), (wg, 1, 1), fits=get("fits", 0), first_tile=begin, radius=self._radius,
                targets=targets, target_stride=stride, first=first + shape.Tp, **where, **self._states(each, n),
                **arranged,
            )  # fmt: skip
            pacer.launched(event, cost * count)
            begin += count
        launch(
            score, open_size(each.n, n), None, target_of=target_of, first_library=0, rho_stride=rho_stride, rho=rho,
            **where,
        )  # fmt: skip

    def _arranged(self, each: TargetClass, targets: Buffer, stride: int) -> dict[str, Buffer]:
        """The targets of a class as matrix units need them."""
        shape, eights = self.shape, each.sums_stride // 8
        first, m, _ = shape.extent(each.E)
        needs = {"arranged": round_up(m, int(each.map["step"])) * each.sums_stride * shape.item}
        if each.map["halves"]:
            needs["scales"] = each.sums_stride * shape.item
        made = {name: self._pool.get(name, nbytes) for name, nbytes in needs.items()}
        kernel = build(self.executor, spec("smap_map"), each.map, "smap_arrange")
        self.executor.launch(
            kernel, (eights * 256,), (256,), targets=targets, target_stride=stride, first=first + shape.Tp, n_rows=m,
            column_begin=each.begin, column_end=each.end, **made,
        )  # fmt: skip
        return made

    def weigh(self, each: TargetClass, n: int) -> NDArray[np.float64]:
        """What each row adds to the mean slopes of n libraries whose systems were solved: (n, E, rows), for z.

        The mean slopes of a target are the sum over rows of these numbers times what the rows lead to, over the number
        of rows that there are fits around.
        """
        shape, info, pool = self.shape, self.executor.info, self._pool
        specialisation = {"E": each.E, "gaps": shape.gaps, "dtype": shape.dtype}
        values = parameters(spec("smap_slopes"), specialisation, info, {"rows": shape.n_steps}).parameters
        kernel = build(self.executor, spec("smap_slopes"), {**specialisation, **values})
        E, wg, (_, m, padded) = each.E, int(values["wg"]), shape.extent(each.E)
        rows, pacer = wg * int(values["lanes"]), self._pacer("slopes", each.E)
        tiles, begin = -(-m // rows), 0
        cost = float(rows) * m * n * (6 * E + 12 + 2 * E * (E + 2))
        slopes = pool.get("slopes", n * self.bytes_of_library(each)["slopes"])
        while begin < tiles:
            count = min(pacer.units(cost), tiles - begin)
            event = self.executor.launch(
                kernel, (count * wg, n), (wg, 1), records=pool.get("records", 0), first_tile=begin, radius=self._radius,
                slopes=slopes, **self._states(each, n),
            )  # fmt: skip
            pacer.launched(event, cost * count)
            begin += count
        return self.executor.download(slopes, np.empty((n, E, padded)))[..., :m]

    def regressors(self, each: TargetClass, n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Of n libraries whose states were made: weights (n, rows) and regressors z (n, E, rows), in double."""
        _, m, padded = self.shape.extent(each.E)
        work = self.executor.download(self._pool.get("work", 0), np.empty((n, each.E + 1, padded)))
        return work[:, 0, :m], work[:, 1:, :m]


# Mean slopes of local linear fits of all targets to the lags of a library, from what each row adds to them.


Doubles = NDArray[np.float64]

# Libraries whose products with the targets are one: few enough that what they need stays in the caches.
_TOGETHER = 32


def host_bytes(rows: int, E: int) -> int:
    """What the host holds of a library of ``rows`` rows while it computes mean slopes."""
    return 8 * rows * (4 * E + 1)


class MeanSlopes:
    """The host's part: products with the targets, and the way back from white regressors to lags.

    Parameters
    ----------
    libraries : ndarray (n_steps, n_series)
    targets : ndarray (n_steps, n_targets) of float64
    exponents : (ndarray of int (n_series,), ndarray of int (n_targets,))
        Libraries and targets are the data times ``2**-exponent``.
    """

    def __init__(
        self, kernels: MapKernels, libraries: Doubles, targets: Doubles,
        exponents: tuple[NDArray[np.int_], NDArray[np.int_]],
    ) -> None:  # fmt: skip
        self._kernels, self._libraries, self._targets, self._exponents = kernels, libraries, targets, exponents
        self._held: tuple[tuple[int, int], Doubles] | None = None

    def of(
        self, each: TargetClass, a: int, n: int, columns: NDArray[np.int_], library_mask: NDArray[np.bool_],
        asked: NDArray[np.bool_],
    ) -> Doubles:  # fmt: skip
        """Mean slopes (n, targets of the class, E) of libraries a to a + n, in units of the data.

        Parameters
        ----------
        each : TargetClass
            Whose states and systems are on the device.
        columns : ndarray of int (targets of the class,)
        library_mask : ndarray of bool (n_steps,)
            Library rows that may be neighbours.
        asked : ndarray of bool (n_steps,)
            Rows that are predicted, around each of which there is a fit.
        """
        first, m, _ = self._kernels.shape.extent(each.E)
        rows = slice(first, first + m)
        of_rows, (weights, z) = self._kernels.weigh(each, n), self._kernels.regressors(each, n)
        ahead = self._ahead(each, columns)
        out = np.empty((n, len(columns), each.E))
        of_libraries, of_targets = self._exponents
        begin = a
        while begin < a + n:  # groups begin at multiples of their size, wherever a block of libraries begins
            end = min((begin // _TOGETHER + 1) * _TOGETHER, a + n)
            part = slice(begin - a, end - a)
            lags, present = self._lags(begin, end - begin, each.E)
            fits = (present & asked[rows]).sum(axis=1)
            counted = present & library_mask[rows]
            kept = of_rows[part] if counted.all() else np.where(counted[:, None], of_rows[part], 0.0)
            of_z = _products(kept, begin % _TOGETHER, ahead) / np.maximum(fits, 1)[:, None, None]
            lags = lags if present.all() else np.where(present[:, None], lags, 0.0)
            slopes = self._of_lags(of_z, weights[part], z[part], lags)
            slopes[(fits == 0) | ~z[part].any(axis=(1, 2))] = np.nan
            units = of_targets[columns] - of_libraries[begin:end, None]
            np.ldexp(slopes, units[..., None], out=out[part])
            begin = end
        return out

    @staticmethod
    def _of_lags(of_z: Doubles, weights: Doubles, z: Doubles, lags: Doubles) -> Doubles:
        """Slopes (n, targets, E) of lags, from those (n, E, targets) of white regressors."""
        # Regressors are orthonormal under the weights, so that products with them tell what lags are made of.
        total = weights.sum(axis=1)[:, None, None]
        made_of = np.triu((z * weights[:, None]) @ lags.swapaxes(1, 2) / np.where(total > 0, total, 1.0))
        slopes: Doubles = (np.linalg.pinv(made_of, rcond=1e-15) @ of_z).swapaxes(1, 2)
        return slopes

    def _ahead(self, each: TargetClass, columns: NDArray[np.int_]) -> Doubles:
        """What rows lead to (rows, targets of the class), kept for the next libraries; 0 in gaps."""
        if self._held is None or self._held[0] != (each.begin, each.end):
            first, m, _ = self._kernels.shape.extent(each.E)
            begin = first + self._kernels.shape.Tp
            ahead = self._targets[begin : begin + m, columns]
            finite = np.isfinite(ahead)
            # Slopes do not change with a shift; around the mean there is less to round.
            mean = ahead.sum(axis=0, where=finite) / np.maximum(finite.sum(axis=0), 1)
            self._held = (each.begin, each.end), np.where(finite, ahead - mean, 0.0)
        return self._held[1]

    def _lags(self, a: int, n: int, E: int) -> tuple[Doubles, NDArray[np.bool_]]:
        """Coordinates (n, E, rows) of the states of libraries a to a + n, and which rows (n, rows) have them all."""
        shape = self._kernels.shape
        first, m, _ = shape.extent(E)
        x = self._libraries[:, a : a + n].T
        lags = np.stack([x[:, first - e * shape.tau : first - e * shape.tau + m] for e in range(E)], axis=1)
        return lags, np.asarray(np.isfinite(lags).all(axis=1))


def _products(of_rows: Doubles, place: int, ahead: Doubles) -> Doubles:
    """What rows add (n, E, rows) times what they lead to: (n, E, targets), by one product of matrices.

    The order of its sums, and so its bits, may depend on the size of the matrices and on the place of a row in them. So
    the matrix is always that of a whole group of libraries, in which the first of these has ``place``.
    """
    n, E, rows = of_rows.shape
    if n < _TOGETHER:
        padded = np.zeros((_TOGETHER, E, rows))
        padded[place : place + n] = of_rows
        of_rows = padded
    product = of_rows.reshape(_TOGETHER * E, rows) @ ahead
    products: Doubles = product.reshape(_TOGETHER, E, -1)
    return products[place : place + n] if n < _TOGETHER else products
