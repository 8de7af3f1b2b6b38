"""S-map: locally weighted linear fits of many query rows and several theta at once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..launch.progress import report_part
from ..launch.replay import replayed
from ..series.scaling import near_one, squares
from .smap_device import Fitted, Library, Solved, Sweeps, basis_of, numbers_of, series_of

if TYPE_CHECKING:
    from ..device.executor import Executor

Doubles = NDArray[np.float64]

# What a prediction may be off by, in parts of the targets' range, as the device estimates it (within a factor of three
# to five of the truth); rows beyond are fitted again.
ALLOWED_ERROR = {"float32": 1e-6, "float64": 1e-8}
# A program that spells out all sums of more regressors than this takes a compiler too long.
_MOST_SPELT = 48
_MOST_PENALTY = 2.0**500  # no slope is left, and its products are numbers
_ROUNDING = float(np.finfo(np.float64).eps)
# Sums of a small call, whose copies and launches may be gone through again, at most.
_SMALL_SUMS = 1 << 23


@dataclass(frozen=True)
class _Chosen:
    """Layout, parameters and their grade that a device was found to fit with."""

    layout: str
    parameters: dict[str, Any]
    grade: str

    @classmethod
    def of(cls, sweeps: Sweeps) -> _Chosen:
        return cls(sweeps.layout, sweeps.parameters, sweeps.grade)


@dataclass(frozen=True)
class Fits:
    """Local fits per theta and query row."""

    # predicted, variance: ndarray (n_thetas, n). NaN where a row has no neighbour.
    predicted: Doubles
    variance: Doubles
    # ndarray (n_thetas, n, D + 1). Intercept and slopes, in the data's units.
    coefficients: Doubles
    # ndarray (n_thetas, n, D + 1) or None. Of the weighted regressors with their column of ones, descending.
    singular_values: Doubles | None
    # How many fits were redone by singular values on the host.
    redone: int

    @classmethod
    def empty(cls, n_thetas: int, n: int, width: int, singular_values: bool) -> Fits:
        """All NaN."""
        flat, deep = (n_thetas, n), (n_thetas, n, width)
        sizes = np.full(deep, np.nan) if singular_values else None
        return cls(np.full(flat, np.nan), np.full(flat, np.nan), np.full(deep, np.nan), sizes, 0)

    def arrays(self) -> list[Doubles]:
        """Those that are there."""
        every = (self.predicted, self.variance, self.coefficients, self.singular_values)
        return [array for array in every if array is not None]


class LocalFits:
    """A library on the device, ready to be fitted around any query rows.

    Parameters
    ----------
    library : ndarray (m, D) of float64
        Coordinates of the library rows, finite; at least one row.
    target : ndarray (m,)
        What each of them leads to; rows whose target is NaN count as neighbours but enter no fit.
    rows : ndarray of int (m,)
        Row numbers, ascending.
    exclusion_radius : int
        Library rows with |t - j| up to this are left out of the fit at row t; -1 where none is.
    knn : int, optional
        Only the ``knn`` nearest are used; all by default.
    alpha : float
        Ridge penalty on the squared slopes; 0 for least squares.
    dtype : str
        What distances and weights are computed in; sums of products are float64 anyway.
    once : bool
        Only one set of rows is fitted around. The library then goes to the device with these rows.
    """

    def __init__(
        self, executor: Executor, library: Doubles, target: Doubles, rows: NDArray[np.int64], *,
        exclusion_radius: int, knn: int | None = None, alpha: float = 0.0, dtype: str = "float32", once: bool = False,
    ) -> None:  # fmt: skip
        self.executor = executor
        self.dtype = dtype
        # The products of a fit are those of numbers near 1; what was fitted is brought back to the data's units.
        (library, of_points), (target, of_target) = near_one(library), near_one(target)
        self._exponents = of_points, of_target
        if alpha:
            alpha = min(float(np.ldexp(alpha, -2 * self._exponents[0])), _MOST_PENALTY)
        self.library = Library(library, target, rows, exclusion_radius, knn, alpha)
        fitted = np.isfinite(target)
        self.basis = basis_of(*(each if fitted.all() else each[fitted] for each in (library, target)))
        self._sweeps: Sweeps | None = None
        self._chosen: _Chosen | None = None
        if not once:
            self._loaded()  # so that memory that is lacking is told of now

    @property
    def device(self) -> Sweeps:
        """The library on the device."""
        return self._loaded()

    def _loaded(self) -> Sweeps:
        """The library on the device, which it is taken to where it is not there yet."""
        if self._sweeps is None:
            self._sweeps = Sweeps(self.executor, self.library, self.basis, self.dtype)
            try:
                self._sweeps.load()
            except BaseException:
                self.release()
                raise
            self._chosen = _Chosen.of(self._sweeps)
        return self._sweeps

    @property
    def chosen(self) -> _Chosen:
        """How it is fitted."""
        if self._chosen is None:
            self._chosen = _Chosen.of(self.device)
        return self._chosen

    @property
    def parameters(self) -> dict[str, Any]:
        """Tuned parameters of the sums' kernel."""
        return self.chosen.parameters

    @property
    def grade(self) -> str:
        return self.chosen.grade

    @property
    def regressors(self) -> int:
        return self.basis.rank + 1

    def release(self) -> None:
        """Give the device memory back."""
        if self._sweeps is not None:
            self._sweeps.pool.release()

    def fit(self, points: Doubles, rows: NDArray[np.int64], thetas: Doubles, *, singular_values: bool = False) -> Fits:
        """Fit around each query.

        Parameters
        ----------
        points : ndarray (n, D)
            Coordinates, finite.
        rows : ndarray of int (n,)
            Row numbers, for the exclusion.
        thetas : ndarray (n_thetas,)
        """
        n, dims = points.shape
        if self._exponents[0]:
            points = np.ldexp(points, -self._exponents[0])
        flat, deep = (len(thetas), n), (len(thetas), n, dims + 1)
        sizes_of = np.empty(deep) if singular_values else None
        out = Fits(np.empty(flat), np.empty(flat), np.empty(deep), sizes_of, 0)
        bad = self._at_once(points, rows, thetas, out) if self._sweeps is None and not singular_values else None
        if bad is None:
            self.device.pool.constant("thetas", thetas.astype(self.dtype))
            bad = self._pass(points, rows, thetas, out, np.arange(n), self.device.layout)
        if self.chosen.layout == "shared" and self.regressors <= _MOST_SPELT and bad.any():
            # Centred sums keep more digits: these rows once more in the other layout.
            self.device.pool.constant("thetas", thetas.astype(self.dtype))
            again = np.flatnonzero(bad.any(axis=0))
            bad[:, again] = self._pass(points, rows, thetas, out, again, "lanes")[:, again]
        for s, t in np.argwhere(bad):
            c, predicted, variance, sizes = self.library.fit(
                points[t], int(rows[t]), float(thetas[s]), singular_values=singular_values, unit=self._exponents[0]
            )
            out.predicted[s, t], out.variance[s, t], out.coefficients[s, t] = predicted, variance, c
            if out.singular_values is not None:
                out.singular_values[s, t] = sizes
        return self._in_units(replace(out, redone=int(bad.sum())))

    def _in_units(self, fits: Fits) -> Fits:
        """Fits of scaled values in the units of the data; singular values are made in these."""
        of_points, of_target = self._exponents
        if of_target:
            np.ldexp(fits.predicted, of_target, out=fits.predicted)
            fits.variance[:] = squares(fits.variance, of_target)
            np.ldexp(fits.coefficients, of_target, out=fits.coefficients)
        if of_points:
            slopes = fits.coefficients[..., 1:]
            np.ldexp(slopes, -of_points, out=slopes)
        return fits

    def _at_once(
        self, points: Doubles, rows: NDArray[np.int64], thetas: Doubles, out: Fits
    ) -> NDArray[np.bool_] | None:
        """As :meth:`_pass` for all rows, by copies and launches of a call before; None where these may not be kept."""
        lib, basis, n, dims = self.library, self.basis, len(points), points.shape[1]
        sums = len(thetas) * n * self.regressors * (self.regressors + 1) // 2
        if lib.alpha or basis.flat or not np.isfinite(lib.y).all() or sums > _SMALL_SUMS:
            return None
        inputs, places = {"target": lib.y, "shift": basis.shift, "basis": basis.by_rows}, []
        for name, x in (("library", lib.x), ("points", points)):
            delays = series_of(x)
            inputs[name] = x if delays is None else delays[0]
            places.append(None if delays is None else tuple(delays[1].values()))
        fitted = Fitted.empty(len(thetas), n, dims, out.coefficients)

        def work(executor: Executor) -> _Chosen | None:
            sweeps = Sweeps(executor, lib, basis, self.dtype)
            try:
                if sweeps.block(sweeps.layout, len(thetas), n) < n:
                    return None
                sweeps.load()
                sweeps.pool.constant("thetas", thetas.astype(self.dtype))
                sweeps.run(points, rows, len(thetas), sweeps.layout, fitted)
                return _Chosen.of(sweeps)
            finally:
                sweeps.pool.release()

        key = (
            "smap", *places, lib.x.shape, points.shape, self.regressors, self.dtype, lib.radius, lib.knn,
            lib.rows.tobytes(), rows.tobytes(), thetas.tobytes(),
        )  # fmt: skip
        self._chosen = replayed(self.executor, key, inputs, fitted.arrays(), work, numbers_of(basis))
        if self._chosen is None:
            return None
        report_part(n, n, n, 0, "predictions")
        return self._take(fitted.solved(), points, out, slice(0, n))

    def _pass(
        self, points: Doubles, rows: NDArray[np.int64], thetas: Doubles, out: Fits, chosen: NDArray[np.int64],
        layout: str,
    ) -> NDArray[np.bool_]:  # fmt: skip
        """Fit the chosen rows on the device, in blocks; says which of all fits (n_thetas, n) cannot be trusted."""
        bad = np.zeros(out.predicted.shape, bool)
        step, every = self.device.block(layout, len(thetas), len(chosen)), len(chosen) == len(points)
        for a in range(0, len(chosen), step):
            at: Any = slice(a, a + step) if every else chosen[a : a + step]
            queries = points[at]
            into = Fitted.empty(len(thetas), len(queries), queries.shape[1], out.coefficients[:, at] if every else None)
            solved = self.device.run(queries, rows[at], len(thetas), layout, into)
            bad[:, at] = self._take(solved, queries, out, at)
            if out.singular_values is not None:
                sizes = self._singular_values(queries, thetas, layout)
                sizes[:, solved.counts == 0] = np.nan
                out.singular_values[:, at] = sizes
            report_part(min(a + step, len(chosen)), len(chosen), len(chosen), a, "predictions")
        return bad

    def _take(self, solved: Solved, points: Doubles, out: Fits, at: Any) -> NDArray[np.bool_]:
        """Keep a block's fits; says which of them cannot be trusted."""
        basis, predicted, coefficients = self.basis, solved.predicted, solved.coefficients
        if basis.rank < points.shape[1]:  # of least norm; and a query may lie off the library's plane
            coefficients -= (coefficients @ basis.null) @ basis.null.T
            predicted = coefficients[..., 0] + np.einsum("snd,nd->sn", coefficients[..., 1:], points)
        bad: NDArray[np.bool_] = ~(solved.doubt * _ROUNDING <= ALLOWED_ERROR[self.dtype]) | ~np.isfinite(predicted)
        if not basis.sound:
            bad[:] = True
        none = solved.counts == 0
        bad[:, none] = False
        for values, target in ((predicted, out.predicted), (solved.variance, out.variance),
                               (coefficients, out.coefficients)):  # fmt: skip
            if none.any():
                values[:, none] = np.nan
            if not np.may_share_memory(values, target):
                target[:, at] = values
        return bad

    def _singular_values(self, points: Doubles, thetas: Doubles, layout: str) -> Doubles:
        """Of W (1, x) from the moments: those of a root of their matrix, taken back to the data's coordinates."""
        n, K, basis = len(points), self.regressors, self.basis
        packed = self.device.moments(n, len(thetas), layout)
        gram = np.zeros((len(thetas), n, K, K))
        for b in range(K):
            for a in range(b + 1):
                gram[..., a, b] = gram[..., b, a] = packed[..., b * (b + 1) // 2 + a]
        back = np.zeros((n, K, points.shape[1] + 1))
        back[:, 0, 0] = 1.0
        back[:, 0, 1:] = basis.shift
        if layout == "lanes":
            back[:, 0, 1:] += basis.regressors(points) @ basis.inverse
        back[:, 1:, 1:] = basis.inverse
        if self._exponents[0]:
            np.ldexp(back[..., 1:], self._exponents[0], out=back[..., 1:])
        squares, vectors = np.linalg.eigh(gram)
        roots = np.sqrt(np.maximum(squares, 0))[..., None] * np.swapaxes(vectors, -1, -2)
        sizes = np.zeros((len(thetas), n, back.shape[2]))
        values = np.linalg.svd(roots @ back, compute_uv=False)
        sizes[..., : values.shape[-1]] = values
        nearest, rate = (self.device.get(name, (n,), self.dtype).astype(np.float64) for name in ("nearest", "rate"))
        out: Doubles = sizes * np.exp(-thetas[:, None] * nearest * rate)[..., None]
        return out
