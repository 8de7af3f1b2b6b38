"""A regression's rows through the device: fits around all rows, skill over theta, forecasts that feed themselves."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...data.condition import complete_rows
from ...engines.smap import Fits, LocalFits
from ...errors import InputError, warn
from ..shared import scores
from ..shared.masks import fewest
from ..shared.regression import Regression

if TYPE_CHECKING:
    from ...device.executor import Executor

Doubles = NDArray[np.float64]


def local_fits(
    executor: Executor, regression: Regression, knn: int | None, alpha: float, dtype: str, *, once: bool = False
) -> LocalFits:
    """The library of a regression on a device; ``once``: for one set of rows.

    Raises
    ------
    InputError
        The device has no double precision, which sums of products need.
    """
    if not executor.info.fp64:
        raise InputError(
            f"device {executor.info.name}: S-map sums products in double precision, which this device lacks; choose "
            "another one, such as device='cpu'"
        )
    return LocalFits(
        executor, regression.library, regression.target, regression.library_rows,
        exclusion_radius=regression.exclusion_radius, knn=knn, alpha=alpha, dtype=dtype, once=once,
    )  # fmt: skip


def warn_of_few(regression: Regression, knn: int | None) -> None:
    """Say where fits without a penalty have fewer library rows than coefficients, and so are not unique."""
    least, coefficients = _fewest(regression), regression.points.shape[1] + 1
    if least is None or min(least, knn or least) >= coefficients:
        return
    slopes = f"{coefficients - 1} slopes (E={regression.E})"
    needs = f"a fit with an intercept and {slopes} needs {coefficients} library rows"
    if least < coefficients:
        radius = max(regression.exclusion_radius, 0)
        where = f"{needs}; some row has {least} (exclusion_radius={radius})"
        remedy = "Use a smaller E or exclusion_radius, or a longer library"
    else:
        where, remedy = f"{needs}, and knn={knn} leaves fewer", "Use a smaller E, or more neighbours"
    warn(f"{where}. Such fits pass through all of their rows, and say little about the system. {remedy}")


def _fewest(regression: Regression) -> int | None:
    """Library rows of the fit that has the fewest; None where no row is predicted."""
    rows = regression.rows[complete_rows(regression.points)]
    if not len(rows):
        return None
    if regression.exclusion_radius < 0:
        return len(regression.library_rows)
    n = 1 + int(max(regression.library_rows[-1], rows.max()))
    library_mask, predicted_rows = np.zeros(n, bool), np.zeros(n, bool)
    library_mask[regression.library_rows], predicted_rows[rows] = True, True
    return fewest(library_mask, predicted_rows, regression.exclusion_radius)


def fit_rows(engine: LocalFits, regression: Regression, thetas: Doubles, *, singular_values: bool = False) -> Fits:
    """Fits around all rows of a regression; NaN where a row touches a gap."""
    complete = complete_rows(regression.points)
    if complete.all():
        return engine.fit(regression.points, regression.rows, thetas, singular_values=singular_values)
    filled = Fits.empty(len(thetas), len(complete), regression.points.shape[1] + 1, singular_values)
    if not complete.any():
        return filled
    fits = engine.fit(regression.points[complete], regression.rows[complete], thetas, singular_values=singular_values)
    for into, values in zip(filled.arrays(), fits.arrays(), strict=True):
        into[:, complete] = values
    return replace(filled, redone=fits.redone)


def skill(predicted: Doubles, observed: Doubles) -> tuple[Doubles, Doubles, Doubles]:
    """rho, mae and rmse (n_thetas,) of predictions (n_thetas, n)."""
    noise = 8 * float(np.finfo(np.float64).eps) * float(np.abs(predicted[np.isfinite(predicted)]).max(initial=0.0))
    rho = scores.pearson(predicted, np.broadcast_to(observed, predicted.shape), noise)
    errors = np.array([scores.errors(one, observed) for one in predicted])
    return rho, errors[:, 0], errors[:, 1]


def check_generation(
    regression: Regression, by_estimator: bool, embedded: bool, other_target: bool, steps: int
) -> None:
    """Refuse what cannot feed itself, naming why."""
    reasons = (
        (embedded, "embedded=True: coordinates cannot be continued by a prediction of one of them"),
        (other_target, "target=...: the predicted series must be the embedded one"),
        (len(regression.names) != regression.E, "lib has several columns; a single series is needed"),
        (regression.Tp != 1, f"Tp={regression.Tp}: each prediction must be the next value, Tp=1"),
        (regression.layout is not None, "groups=...: continue one group at a time"),
        (by_estimator, "solver: forecasts that feed themselves are made with 'svd' or 'ridge'"),
    )
    for applies, why in reasons:
        if applies:
            raise InputError(f"generate_steps={steps} cannot be used with {why}")


def generate(
    engine: LocalFits, regression: Regression, steps: int, thetas: Doubles, *, singular_values: bool = False
) -> tuple[Regression, Fits]:
    """Continue the predicted series after the regression's last row, each theta on a path of its own.

    Returns
    -------
    (Problem, Fits)
        The problem of the generated rows, and their fits.
    """
    E, tau, last = regression.E, regression.tau, int(regression.rows[-1])
    rows = np.arange(last, last + steps)
    # The last row's window of values, newest last: lags that are no multiple of tau are seen by earlier rows.
    window = np.full((E - 1) * tau + 1, np.nan)
    for point, row in zip(regression.points[-tau:][::-1], regression.rows[-tau:][::-1], strict=True):
        for e in range(E):
            at = len(window) - 1 - (last - int(row)) - e * tau
            if at >= 0:
                window[at] = point[e]
    parts: list[list[Fits]] = []
    for theta in thetas:
        values, path = window.copy(), []
        for row in rows:
            point = values[len(values) - 1 - tau * np.arange(E)][None]
            next_row = replace(regression, points=point, rows=np.array([row]), observed=np.array([np.nan]))
            path.append(fit_rows(engine, next_row, np.array([theta]), singular_values=singular_values))
            values = np.append(values[1:], path[-1].predicted[0])
        parts.append(path)

    def join(name: str) -> Any:
        return np.concatenate([np.concatenate([getattr(f, name) for f in path], axis=1) for path in parts])

    fits = Fits(
        join("predicted"), join("variance"), join("coefficients"), join("singular_values") if singular_values else None,
        sum(f.redone for path in parts for f in path),
    )  # fmt: skip
    return replace(regression, rows=rows, observed=np.full(steps, np.nan)), fits
