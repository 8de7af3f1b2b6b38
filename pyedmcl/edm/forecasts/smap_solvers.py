"""Other solvers of S-map's local fits: ridge on the device, scikit-learn's estimators row by row on the host."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...data.condition import near_one, squares
from ...engines.smap import Fits
from ...engines.smap_exact import Library
from ...errors import InputError, missing_extra
from ..shared import arguments
from ..shared.regression import Doubles, Regression

_NAMES = ("svd", "ridge", "lasso", "elasticnet")
_KNOWN = f"one of {', '.join(map(repr, _NAMES))}, or a scikit-learn estimator"


@dataclass(frozen=True)
class Solver:
    """How local fits are solved: on the device with penalty ``alpha``, or by an estimator."""

    name: str
    alpha: float = 0.0
    estimator: Any = None

    @property
    def described(self) -> str:
        """For provenance: an estimator by its class."""
        return self.name if self.estimator is None else type(self.estimator).__name__


def solver_of(solver: Any, alpha: Any) -> Solver:
    """Check ``solver`` and ``alpha``.

    Raises
    ------
    InputError
        Neither a known name nor an object with ``fit`` and ``predict``; a penalty that is not above 0.
    MissingExtraError
        scikit-learn is not installed.
    """
    if isinstance(solver, str):
        if solver not in _NAMES:
            raise InputError(f"solver={arguments.shown(solver)}: {_KNOWN}")
        if solver == "svd":
            return Solver("svd")
        alpha = arguments.real(
            "alpha", alpha, f"the penalty of solver={solver!r}, a finite number above 0,", lambda a: 0 < a < np.inf
        )
        if solver == "ridge":
            return Solver("ridge", float(alpha))
        try:
            from sklearn import linear_model
        except ImportError as error:
            raise missing_extra("scikit-learn", "solvers", f"solver={solver!r}") from error
        kind = linear_model.Lasso if solver == "lasso" else linear_model.ElasticNet
        return Solver(solver, estimator=kind(alpha=float(alpha)))
    if not (hasattr(solver, "fit") and hasattr(solver, "predict")):
        raise InputError(f"solver={arguments.shown(solver)}: {_KNOWN} (with fit and predict)")
    return Solver(type(solver).__name__, estimator=solver)


def fit_by_estimator(
    regression: Regression, thetas: Doubles, knn: int | None, estimator: Any, *, weighting: str = "samples"
) -> Fits:
    """Each row's fit by an estimator, on the host.

    Parameters
    ----------
    regression : Regression
    thetas : ndarray (n_thetas,)
    knn : int or None
    estimator : object
        With ``fit`` and ``coef_`` afterwards; ``intercept_`` where it has one.
    weighting : {"samples", "columns"}
        W^2 as sample weights where the estimator takes them (else as "columns"), or columns and target multiplied by W,
        with the estimator's own intercept left unweighted, as pyEDM does.
    """
    out = Fits.empty(len(thetas), len(regression.rows), regression.points.shape[1] + 1, False)
    library = Library(regression.library, regression.target, regression.library_rows, regression.exclusion_radius, knn)
    by_samples = weighting == "samples" and "sample_weight" in inspect.signature(estimator.fit).parameters
    for t in np.flatnonzero(np.isfinite(regression.points).all(axis=1)):
        point = regression.points[t]
        for s, theta in enumerate(thetas):
            near, w, top = library.weights(point, int(regression.rows[t]), float(theta))
            if not len(near):
                continue
            x, y = library.x[near], library.y[near]
            if by_samples:
                fitted = estimator.fit(x, y, sample_weight=(w * top) ** 2)
            else:
                fitted = estimator.fit(x * (w * top)[:, None], y * w * top)
            slopes = np.ravel(fitted.coef_)
            intercept = float(np.ravel(getattr(fitted, "intercept_", 0.0))[0])
            predicted = intercept + float(slopes @ point)
            out.coefficients[s, t] = [intercept, *slopes]
            out.predicted[s, t] = predicted
            apart, exponent = near_one(y - predicted)
            out.variance[s, t] = squares((w * apart**2).sum() / w.sum(), exponent)
    return out
