"""What S-map returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from ...io.fields import labelled
from ...io.labels import Label, common
from ...io.optional import need, pandas_for
from ...io.result import Result


@dataclass(frozen=True, repr=False)
class SmapResult(Result):
    """Locally weighted linear predictions, one entry per predicted row t; of several theta along a first axis.

    Attributes
    ----------
    time : ndarray of int (n,)
        Row number t + Tp that is predicted; of groups, counted within the group.
    observed : ndarray of float64 (n,)
        Value there, NaN where there is none.
    theta : float or ndarray (n_thetas,)
    predicted, variance : ndarray of float64 (n,) or (n_thetas, n)
        Value of the local fit at the row, and sum W (y - predicted)^2 / sum W; NaN where a row touches a gap or has no
        neighbour.
    coefficients : ndarray of float64 (n, D + 1) or (n_thetas, n, D + 1)
        Intercept, then a slope per coordinate: the row's Jacobian, in units of the target per unit of the coordinate.
    singular_values : ndarray of float64 like coefficients, or None
        Of the weighted regressors (ones, coordinates), descending; where they were asked for.
    rho, mae, rmse : float or ndarray (n_thetas,)
        Pearson correlation (NaN for fewer than 3 pairs or zero variance), mean absolute and root mean square error.
    names : tuple of str
        The D coordinates.
    E : int
    redone : int
        Local fits that were repeated by singular values in float64, since their normal equations were near singular.
    group : ndarray of numbers or text (n,), or None
        Label of each entry's group.
    dates : ndarray or None
        The times that the data have for these rows, continued beyond their ends; None where they have none.
    name : str
        What is predicted.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> result = pyedmcl.smap(network.values[:, 0], E=2, theta=[0.0, 2.0])
    >>> result.rho.round(2).tolist()  # for each theta
    [0.68, 0.98]
    >>> local = result.at(2.0)
    >>> local.names, local.coefficients.shape  # the intercept, and a slope along each of these, for each row
    (('x0(t-0)', 'x0(t-1)'), (399, 3))
    """

    series_label: ClassVar = Label("data / data", "slope of the local fit along this coordinate")
    column_labels: ClassVar = {
        **common("theta", "group", "time", "observed", "predicted", "variance", "C0", "rho", "mae", "rmse"),
        "coefficients": Label("data / data", "intercept (in the unit of the data) and slopes of the local fits"),
        "coefficient": Label("", "C0 for the intercept, else the coordinate of the slope"),
    }  # fmt: skip

    time: NDArray[np.int64]
    observed: NDArray[np.float64]
    theta: Any
    predicted: NDArray[np.float64]
    variance: NDArray[np.float64]
    coefficients: NDArray[np.float64]
    singular_values: NDArray[np.float64] | None
    rho: Any
    mae: Any
    rmse: Any
    names: tuple[str, ...]
    E: int
    redone: int = 0
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)
    group: NDArray[Any] | None = None
    dates: NDArray[Any] | None = field(default=None, repr=False)
    name: str = ""

    def at(self, theta: float) -> SmapResult:
        """The part of a sweep that belongs to one theta. Raises InputError for one that was not computed."""
        thetas = np.atleast_1d(self.theta)
        places = np.flatnonzero(thetas == theta)
        if not len(places):
            raise InputError(f"theta={theta!r} is none of those computed: {', '.join(f'{v:g}' for v in thetas)}")
        if np.ndim(self.theta) == 0:
            return self
        s = int(places[0])
        sizes = None if self.singular_values is None else self.singular_values[s]
        return replace(
            self, theta=float(thetas[s]), predicted=self.predicted[s], variance=self.variance[s],
            coefficients=self.coefficients[s], singular_values=sizes, rho=float(self.rho[s]), mae=float(self.mae[s]),
            rmse=float(self.rmse[s]),
        )  # fmt: skip

    def to_xarray(self) -> Any:
        """An xarray.Dataset over (theta,) time and coefficient: predictions, local fits and skill; over the number of
        the prediction ("row") instead of the time where groups have times of their own."""
        time = self.time if self.dates is None else self.dates
        rows = [("time", time)] if self.group is None else [("row", np.arange(len(time)))]
        several = [] if np.ndim(self.theta) == 0 else [("theta", self.theta)]
        slopes = [("coefficient", ["C0", *(f"d/d{name}" for name in self.names)])]
        parts = {name: labelled(getattr(self, name), [*several, *rows], name) for name in ("predicted", "variance")}
        parts |= {name: labelled(np.asarray(getattr(self, name)), several, name) for name in ("rho", "mae", "rmse")}
        parts["coefficients"] = labelled(self.coefficients, [*several, *rows, *slopes], "coefficients")
        parts["observed"] = labelled(self.observed, rows, "observed")
        if self.group is not None:
            parts |= {"time": labelled(time, rows, "time"), "group": labelled(self.group, rows, "group")}
        return need("xarray", "to_xarray()").Dataset(parts)

    def to_frame(self) -> Any:
        """A pandas DataFrame: (theta,) (group,) time, observed, predicted, variance, C0 and a column per slope."""
        pandas = pandas_for("to_frame()")
        frames = []
        for theta in np.atleast_1d(self.theta):
            fits = self.at(float(theta))
            columns: dict[str, Any] = {} if np.ndim(self.theta) == 0 else {"theta": np.full(len(self.time), theta)}
            columns |= {} if self.group is None else {"group": self.group}
            columns |= {name: getattr(fits, name) for name in ("time", "observed", "predicted", "variance")}
            columns["time"] = self.time if self.dates is None else self.dates
            columns["C0"] = fits.coefficients[:, 0]
            columns |= {f"d/d{name}": fits.coefficients[:, i + 1] for i, name in enumerate(self.names)}
            frames.append(pandas.DataFrame(columns))
        return frames[0] if np.ndim(self.theta) == 0 else pandas.concat(frames, ignore_index=True)

    def _best(self) -> SmapResult:
        """The part of the theta of the highest rho."""
        skill = np.atleast_1d(np.asarray(self.rho, np.float64))
        return self.at(float(np.atleast_1d(self.theta)[np.where(np.isnan(skill), -np.inf, skill).argmax()]))

    def plot(self, path: str | None = None) -> Any:
        """Observed against predicted over time, for the theta of the highest rho; saved to ``path`` if given.

        Needs matplotlib, as do the other pictures.
        """
        from ...plot import predictions

        return predictions(self._best(), path)

    def plot_coefficients(self, path: str | None = None) -> Any:
        """Intercept and slopes over time, for the theta of the highest rho; saved to ``path`` if given."""
        from ...plot.local_fits import coefficients

        return coefficients(self._best(), path)

    def plot_skill(self, path: str | None = None) -> Any:
        """rho against theta, of a sweep; saved to ``path`` if given."""
        from ...plot.libraries import skill_against_parameter

        return skill_against_parameter(self, path)


@dataclass(frozen=True, repr=False)
class NonlinearResult(Result):
    """Forecast skill against theta: a rise from theta = 0 says that the dynamics depend on the state.

    Attributes
    ----------
    theta : ndarray of float64 (n_thetas,)
    rho, mae, rmse : ndarray of float64 (n_thetas,)
    E : int

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> result = pyedmcl.predict_nonlinear(network.values[:, 0], E=2, theta=[0.0, 1.0, 4.0])
    >>> result.rho.round(2).tolist(), result.best  # skill rises with theta: the dynamics are nonlinear
    ([0.68, 0.93, 0.99], 4.0)
    >>> result.to_frame().columns.tolist()
    ['theta', 'rho', 'mae', 'rmse']
    """

    row_column: ClassVar = "theta"

    theta: NDArray[np.float64]
    rho: NDArray[np.float64]
    mae: NDArray[np.float64]
    rmse: NDArray[np.float64]
    E: int
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def best(self) -> float:
        """The theta of the highest rho, the first of a tie; NaN where no rho is defined."""
        if np.isnan(self.rho).all():
            return float("nan")
        return float(self.theta[np.where(np.isnan(self.rho), -np.inf, self.rho).argmax()])

    def to_frame(self) -> Any:
        """A pandas DataFrame with columns theta, rho, mae, rmse."""
        columns = ("theta", "rho", "mae", "rmse")
        return pandas_for("to_frame()").DataFrame({name: getattr(self, name) for name in columns})

    def plot(self, path: str | None = None) -> Any:
        """rho against theta; saved to ``path`` if given. Needs matplotlib."""
        from ...plot.libraries import skill_against_parameter

        return skill_against_parameter(self, path)
