"""S-map on the device: locally weighted linear fits of many query rows and several theta at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.build import build
from ..device.memory import budget
from ..device.quirks import quirks_for
from ..errors import DeviceMemoryError
from ..kernels import spec
from ..plan import round_up
from ..tuning.policy import parameters
from .pacing import Pacer
from .pool import Pool
from .smap_basis import Basis, basis_of
from .smap_exact import Library

if TYPE_CHECKING:
    from ..device.executor import Buffer, Executor

Doubles = NDArray[np.float64]

# The least pivot of a scaled system that is trusted. Sums of doubles are good to some 1e-15, predictions then to 1e-7.
TRUSTED_PIVOT = 1e-8
_NO_ROW = -(2**30)  # farther from every row than any radius
_MOST_MOMENTS = 256 << 20
_QUERY_ALIGN = 256


@dataclass(frozen=True)
class Fits:
    """Local fits per theta and query row.

    Attributes
    ----------
    predicted, variance : ndarray (n_thetas, n)
        NaN where a row has no neighbour.
    coefficients : ndarray (n_thetas, n, D + 1)
        Intercept and slopes, in the data's units.
    singular_values : ndarray (n_thetas, n, D + 1) or None
        Of the weighted regressors with their column of ones, descending.
    redone : int
        How many fits were redone by singular values on the host.
    """

    predicted: Doubles
    variance: Doubles
    coefficients: Doubles
    singular_values: Doubles | None
    redone: int


class LocalFits:
    """A library on the device, ready to be fitted around any query rows.

    Parameters
    ----------
    executor : Executor
    library : ndarray (m, D) of float64
        Coordinates of the legal library rows, finite; at least one row.
    target : ndarray (m,)
        What each of them leads to; rows whose target is NaN count as neighbours but enter no fit.
    rows : ndarray of int (m,)
        Row numbers, ascending.
    exclusion_radius : int
        Library rows with |t - j| up to this are left out of the fit at row t; -1 where none is.
    knn : int, optional
        Only the nearest so many are used; all by default.
    alpha : float
        Ridge penalty on the squared slopes; 0 for least squares.
    dtype : str
        What distances and weights are computed in; sums of products are float64 anyway.
    """

    def __init__(
        self, executor: Executor, library: Doubles, target: Doubles, rows: NDArray[np.int64], *,
        exclusion_radius: int, knn: int | None = None, alpha: float = 0.0, dtype: str = "float32",
    ) -> None:  # fmt: skip
        self.executor = executor
        self.dtype = dtype
        self.library = Library(library, target, rows, exclusion_radius, knn, alpha)
        self._fitted = np.isfinite(target)
        self.basis: Basis = basis_of(library[self._fitted], target[self._fitted])
        self.regressors = self.basis.rank + 1
        self.limited = knn is not None and knn < len(rows)
        self._whole: Any = np.int64 if dtype == "float64" else np.int32
        self._pool = Pool(executor)
        given: dict[str, Any] = {"coordinates": library.shape[1], "regressors": self.regressors}
        given |= {"limited": self.limited, "dtype": dtype}
        sizes, info = {"library": len(rows)}, executor.info
        chosen = parameters(spec("smap"), given, info, sizes)
        self.parameters: dict[str, Any] = dict(chosen.parameters)
        self.grade = chosen.grade
        self._scale = {**given, **parameters(spec("smap_scale"), given, info, sizes).parameters}
        self._moments = {**given, **self.parameters}
        self._rows = int(self.parameters["lanes"] * self.parameters["wg"])
        self._solve = {**given, "rows": self._rows, "penalised": alpha > 0}
        self._solve |= parameters(spec("smap_solve"), self._solve, info, sizes).parameters
        kind = quirks_for(info).device_class
        self._pacers = {name: Pacer(kind) for name in ("scale", "moments")}
        try:
            self._upload()
        except BaseException:
            self.release()
            raise

    def _upload(self) -> None:
        lib, basis = self.library, self.basis
        fitted = self._fitted
        aim = (lib.y[fitted] - basis.aim_shift) / basis.aim_scale
        regressors = np.column_stack([basis.regressors(lib.x[fitted]), aim])
        penalty = np.zeros((self.regressors, self.regressors))
        penalty[1:, 1:] = lib.alpha * basis.map.T @ basis.map
        self._put("library", basis.coordinates(lib.x, self.dtype))
        self._put("library_rows", lib.rows.astype(np.int32))
        self._put("regressors", regressors)
        if not fitted.all():
            self._put("fitted", basis.coordinates(lib.x[fitted], self.dtype))
            self._put("fitted_rows", lib.rows[fitted].astype(np.int32))
        self._put("penalty", penalty)

    def _put(self, name: str, values: NDArray[Any]) -> Buffer:
        values = np.ascontiguousarray(values)
        return self.executor.upload(values, self._pool.get(name, max(values.nbytes, 1)))

    def release(self) -> None:
        """Give the device memory back."""
        self._pool.release()

    def fit(self, points: Doubles, rows: NDArray[np.int64], thetas: Doubles, *, singular_values: bool = False) -> Fits:
        """Fit around each query.

        Parameters
        ----------
        points : ndarray (n, D)
            Coordinates, finite.
        rows : ndarray of int (n,)
            Row numbers, for the exclusion.
        thetas : ndarray (n_thetas,)
        singular_values : bool

        Raises
        ------
        DeviceMemoryError
            Not even a block of some rows fits on the device.
        """
        n, dims = points.shape
        shape = (len(thetas), n)
        out = Fits(
            np.empty(shape), np.empty(shape), np.empty((*shape, dims + 1)),
            np.empty((*shape, dims + 1)) if singular_values else None, 0,
        )  # fmt: skip
        self._put("thetas", thetas.astype(self.dtype))
        redone, step = 0, self._block(len(thetas))
        for a in range(0, n, step):
            b = min(a + step, n)
            redone += self._fit_block(points[a:b], rows[a:b], thetas, out, slice(a, b))
        return Fits(out.predicted, out.variance, out.coefficients, out.singular_values, redone)

    @property
    def _entries(self) -> int:
        return self.regressors * (self.regressors + 1) // 2 + self.regressors + 3

    def _block(self, n_thetas: int) -> int:
        """Query rows at a time, as memory for their moments allows."""
        allowed = budget(self.executor.info)
        room = min(_MOST_MOMENTS, allowed.largest, allowed.total // 4)
        each = self._entries * n_thetas * int(self.parameters["parts"]) * 8
        align = self._align
        if room < each * align:
            raise DeviceMemoryError(
                f"the sums of {align} rows for {n_thetas} theta need {each * align:,} bytes; {room:,} may be used on "
                f"{self.executor.info.name}. Ask for fewer theta at once or raise PYEDMCL_MEMORY_LIMIT."
            )
        return room // each // align * align

    @property
    def _align(self) -> int:
        per_scale = int(self._scale["wg"]) // int(self._scale["slices"]) * int(self._scale["lanes"])
        return int(np.lcm(self._rows, per_scale))

    def _fit_block(
        self, points: Doubles, rows: NDArray[np.int64], thetas: Doubles, out: Fits, at: slice
    ) -> int:
        n, n_thetas, K = len(points), len(thetas), self.regressors
        padded = round_up(n, self._align)
        self._queries(points, rows, padded)
        counts = self._scales(n, padded)
        self._sums(padded, n_thetas)
        fits = self._solved(padded, n_thetas)[:, :, :n]
        found = np.moveaxis(fits[:, :K], 1, 2).copy()
        # The kernel's regressors are centred on the query: its intercept is the prediction.
        z = self.basis.regressors(points)
        found[..., 0] -= np.einsum("snd,nd->sn", found[..., 1:], z)
        coefficients = self.basis.coefficients(found)
        if self.basis.rank < points.shape[1]:
            predicted = coefficients[..., 0] + np.einsum("snd,nd->sn", coefficients[..., 1:], points)
            scaled = (predicted - self.basis.aim_shift) / self.basis.aim_scale
        else:
            scaled = fits[:, 0]
            predicted = self.basis.aim_shift + self.basis.aim_scale * scaled
        weight, first, second = fits[:, K + 1], fits[:, K + 2], fits[:, K + 3]
        with np.errstate(invalid="ignore", divide="ignore"):
            spread = (second - 2 * scaled * first + scaled**2 * weight) / weight
        out.predicted[:, at] = predicted
        out.variance[:, at] = np.maximum(spread, 0) * self.basis.aim_scale**2
        out.coefficients[:, at] = coefficients
        if out.singular_values is not None:
            out.singular_values[:, at] = self._singular_values(points, padded, thetas)
        bad = ~(fits[:, K] > TRUSTED_PIVOT) | ~np.isfinite(predicted)
        none = counts == 0
        for target in (out.predicted, out.variance, out.coefficients, out.singular_values):
            if target is not None:
                target[:, at][:, none] = np.nan
        bad[:, none] = False
        for s, t in np.argwhere(bad):
            c, predicted_t, variance, sizes = self.library.fit(points[t], int(rows[t]), float(thetas[s]))
            place = at.start + t
            out.predicted[s, place], out.variance[s, place], out.coefficients[s, place] = predicted_t, variance, c
            if out.singular_values is not None:
                out.singular_values[s, place] = sizes
        return int(bad.sum())

    def _queries(self, points: Doubles, rows: NDArray[np.int64], padded: int) -> None:
        filled = np.concatenate([np.arange(len(points)), np.full(padded - len(points), len(points) - 1)])
        radius = self.library.radius
        reach = rows + min(radius, 2**29) if radius >= 0 else np.full(len(rows), _NO_ROW)
        self._put("query", self.basis.coordinates(points, self.dtype)[filled].T)
        self._put("query_z", self.basis.regressors(points)[filled].T)
        self._put("query_rows", reach[filled].astype(self._whole))

    def _scales(self, n: int, padded: int) -> NDArray[np.int32]:
        get, i, item = self._pool.get, np.int32, np.dtype(self.dtype).itemsize
        lib, m = self.library, len(self.library.rows)
        kernel = build(self.executor, spec("smap_scale"), self._scale)
        wg = int(self._scale["wg"])
        per_group = wg // int(self._scale["slices"]) * int(self._scale["lanes"])
        outs = (
            get("nearest", padded * item), get("rate", padded * item), get("count", padded * 4),
            get("limit_squared", padded * item), get("limit_row", padded * item),
        )  # fmt: skip
        fixed = (
            get("query", 0), get("query_rows", 0), i(padded), get("library", 0), get("library_rows", 0), i(m),
            i(min(max(lib.radius, 0), 2**29)), i(min(lib.knn or m, m)), i(int(lib.rows[-1]).bit_length() + 1),
        )  # fmt: skip
        sweeps = 1 + (8 * item + 34 if self.limited else 0)
        cost = float(2 * lib.x.shape[1] + 12) * m * per_group * sweeps
        pacer, begin, tiles = self._pacers["scale"], 0, padded // per_group
        while begin < tiles:
            end = min(begin + pacer.units(cost), tiles)
            event = self.executor.launch(kernel, ((end - begin) * wg,), (wg,), (*fixed, i(begin), *outs))
            pacer.launched(event, cost * (end - begin))
            begin = end
        counts = np.empty(n, np.int32)
        self.executor.download(outs[2], counts)
        return counts

    def _sums(self, padded: int, n_thetas: int) -> None:
        get, i, p = self._pool.get, np.int32, self.parameters
        lib, m, wg, parts = self.library, int(self._fitted.sum()), int(p["wg"]), int(p["parts"])
        whole = m == len(lib.rows)
        tiles = padded // self._rows
        moments = get("moments", padded * n_thetas * self._entries * parts * 8)
        kernel = build(self.executor, spec("smap"), self._moments)
        shared = bool(p["tile"])
        tasks = tiles * parts * (1 if shared else n_thetas)
        per_theta = float(20 + 2 * self._entries)
        cost = self._rows * (m / parts) * (2 * lib.x.shape[1] + 8 + per_theta * (n_thetas if shared else 1))
        fixed = (
            get("query", 0), get("query_rows", 0), i(padded), get("library" if whole else "fitted", 0),
            get("library_rows" if whole else "fitted_rows", 0), get("regressors", 0), get("query_z", 0), i(m),
            i(min(max(lib.radius, 0), 2**29)), get("nearest", 0), get("rate", 0), get("limit_squared", 0),
            get("limit_row", 0), get("thetas", 0), i(n_thetas), i(parts), i(0), i(tiles),
        )  # fmt: skip
        pacer, begin = self._pacers["moments"], 0
        while begin < tasks:
            end = min(begin + pacer.units(cost), tasks)
            event = self.executor.launch(kernel, ((end - begin) * wg,), (wg,), (*fixed, i(begin), moments))
            pacer.launched(event, cost * (end - begin))
            begin = end

    def _solved(self, padded: int, n_thetas: int) -> Doubles:
        get, i = self._pool.get, np.int32
        kernel = build(self.executor, spec("smap_solve"), self._solve)
        wg, systems = int(self._solve["wg"]), padded * n_thetas
        fits = get("fits", n_thetas * (self.regressors + 4) * padded * 8)
        groups = min(systems, self.executor.info.compute_units * 64)
        self.executor.launch(
            kernel, (groups * wg,), (wg,),
            (get("moments", 0), i(self.parameters["parts"]), i(n_thetas), i(padded), get("penalty", 0),
             get("nearest", 0), get("rate", 0), get("thetas", 0), fits),
        )  # fmt: skip
        return self.executor.download(fits, np.empty((n_thetas, self.regressors + 4, padded)))

    def _singular_values(self, points: Doubles, padded: int, thetas: Doubles) -> Doubles:
        """Of W (1, x) from the moments: those of a root of their matrix, taken back to the data's coordinates."""
        n, K, parts = len(points), self.regressors, int(self.parameters["parts"])
        shape = (parts, padded // self._rows, len(thetas), self._entries, self._rows)
        moments = self.executor.download(self._pool.get("moments", 0), np.empty(shape)).sum(axis=0)
        packed = np.moveaxis(moments, 1, 0).swapaxes(2, 3).reshape(len(thetas), padded, self._entries)[:, :n]
        gram = np.zeros((len(thetas), n, K, K))
        for b in range(K):
            for a in range(b + 1):
                gram[..., a, b] = gram[..., b, a] = packed[..., b * (b + 1) // 2 + a]
        back = np.zeros((n, K, self.library.x.shape[1] + 1))
        back[:, 0, 0] = 1.0
        back[:, 0, 1:] = self.basis.shift + self.basis.regressors(points) @ self.basis.inverse
        back[:, 1:, 1:] = self.basis.inverse
        squares, vectors = np.linalg.eigh(gram)
        roots = np.sqrt(np.maximum(squares, 0))[..., None] * np.swapaxes(vectors, -1, -2)
        sizes = np.zeros((len(thetas), n, back.shape[1]))
        found = np.linalg.svd(roots @ back, compute_uv=False)
        sizes[..., : found.shape[-1]] = found
        item = np.dtype(self.dtype)
        nearest, rate = (
            self.executor.download(self._pool.get(name, 0), np.empty(n, item)) for name in ("nearest", "rate")
        )
        top = np.exp(-thetas[:, None] * nearest.astype(float) * rate.astype(float))
        out: Doubles = sizes * top[..., None]
        return out
