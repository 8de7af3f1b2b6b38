"""Simplex projection and S-map as estimators of scikit-learn: from states to what follows them.

A row of ``X`` is a state, such as the lags that :func:`pyedmcl.embed` gives, and ``y`` what is to be predicted from it:
the value some steps later, or that of another series. The rows that an estimator is fitted to are the library.
Pipelines, grid searches and cross-validation take them like any regressor; ``TimeSeriesSplit`` keeps rows in order.

Needs scikit-learn 1.6 or newer: ``pip install 'pyedmcl[sklearn]'``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .errors import missing_extra
from .forecast.simplex import simplex
from .forecast.smap import smap
from .series.reading import tell_of_numbers

try:
    from sklearn.base import BaseEstimator, RegressorMixin
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    raise missing_extra("scikit-learn>=1.6", "sklearn", "pyedmcl.estimators") from error

__all__ = ["SimplexRegressor", "SmapRegressor"]


class _StateRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """What both estimators share: the library is kept, and every prediction is a search in it."""

    _function: ClassVar[Callable[..., Any]]

    def fit(self, X: Any, y: Any) -> Any:
        """Keep states and what is to be predicted from them as the library.

        Parameters
        ----------
        X : array_like (n_rows, n_coordinates)
            Finite numbers; at least two rows.
        y : array_like (n_rows,)

        Returns
        -------
        The estimator.
        """
        states, targets = validate_data(
            self, X, y, dtype=[np.float64, np.float32], y_numeric=True, ensure_min_samples=2, copy=True
        )
        given = [*np.asarray(X).T, np.asarray(y)]
        tell_of_numbers([*states.T, targets], given, [*(f"X[:, {i}]" for i in range(len(given) - 1)), "y"])
        self.library_, self.targets_ = states, np.asarray(targets, np.float64)
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Predict from the library's nearest states.

        Parameters
        ----------
        X : array_like (n, n_coordinates)

        Returns
        -------
        ndarray of float64 (n,)
        """
        check_is_fitted(self)
        states = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        # The parameters are arguments of the function.
        forecast = self._function(
            self.library_, states, target=self.targets_, embedded=True, Tp=0, **self.get_params(deep=False)
        )
        return np.asarray(forecast.predicted)


class SimplexRegressor(_StateRegressor):
    """Simplex projection: the mean of what followed the nearest states, with weights exp(-d / d_min).

    Parameters
    ----------
    knn : int, optional
        Neighbours; the number of coordinates + 1 by default.
    dtype : {"float32", "float64"}
        What distances are computed in.
    device, tune : optional
        As for :func:`pyedmcl.simplex`.

    Attributes
    ----------
    library_ : ndarray (n_rows, n_coordinates)
    targets_ : ndarray (n_rows,)
    n_features_in_ : int
        Coordinates of a state.

    See Also
    --------
    pyedmcl.simplex : the function, for series.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.estimators import SimplexRegressor
    >>> from pyedmcl.simulate import coupled_maps
    >>> x = coupled_maps(n_series=4, n_steps=400).values[:, 0]
    >>> states, following = pyedmcl.embed(x, E=3).values[2:-1], x[3:]
    >>> model = SimplexRegressor().fit(states[:200], following[:200])
    >>> bool(model.score(states[200:], following[200:]) > 0.7)
    True
    """

    _function = staticmethod(simplex)

    def __init__(
        self, *, knn: int | None = None, dtype: str = "float32", device: Any = None, tune: str | None = None
    ) -> None:
        self.knn = knn
        self.dtype = dtype
        self.device = device
        self.tune = tune


class SmapRegressor(_StateRegressor):
    """S-map: a linear fit to the library around each state, weighted by nearness.

    Parameters
    ----------
    theta : float
        Localisation, at least 0: 0 is one linear model for all states.
    knn : int, optional
        Only the ``knn`` nearest states enter a fit; all by default.
    solver : str or estimator
        As for :func:`pyedmcl.smap`.
    alpha : float
        Penalty of the solvers that have one.
    dtype : {"float32", "float64"}
        What distances and weights are computed in.
    device, tune : optional
        As for :func:`pyedmcl.smap`.

    Attributes
    ----------
    library_ : ndarray (n_rows, n_coordinates)
    targets_ : ndarray (n_rows,)
    n_features_in_ : int
        Coordinates of a state.

    See Also
    --------
    pyedmcl.smap : the function, for series, which also gives the coefficients of each fit.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.estimators import SmapRegressor
    >>> from pyedmcl.simulate import coupled_maps
    >>> x = coupled_maps(n_series=4, n_steps=400).values[:, 0]
    >>> states, following = pyedmcl.embed(x, E=3).values[2:-1], x[3:]
    >>> model = SmapRegressor(theta=2.0).fit(states[:200], following[:200])
    >>> bool(model.score(states[200:], following[200:]) > 0.7)
    True
    """

    _function = staticmethod(smap)

    def __init__(
        self, *, theta: float = 1.0, knn: int | None = None, solver: Any = "svd", alpha: float = 1.0,
        dtype: str = "float32", device: Any = None, tune: str | None = None,
    ) -> None:  # fmt: skip
        self.theta = theta
        self.knn = knn
        self.solver = solver
        self.alpha = alpha
        self.dtype = dtype
        self.device = device
        self.tune = tune
