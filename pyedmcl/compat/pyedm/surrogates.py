"""Surrogate data with pyEDM's arguments and returns."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...data.arguments import room
from ...edm.surrogates.surrogate import surrogate
from ...errors import InputError
from ..checked import checked
from . import frames

_LEAST = 4  # rows of a cubic spline
_METHODS = {"ebisuzaki": "phase", "random_shuffle": "shuffle"}


@checked
def SurrogateData(
    dataFrame: Any = None, column: str | None = None, method: str = "ebisuzaki", numSurrogates: int = 10,
    alpha: float | None = None, smooth: float = 0.8, outputFile: str | None = None,
) -> Any:  # fmt: skip
    """Surrogates of a column beside the frame's time.

    Parameters
    ----------
    dataFrame : DataFrame
        First column the time.
    column : str
    method : {"ebisuzaki", "random_shuffle", "seasonal"}
        The last adds shuffled residuals and Gaussian noise to a smoothing spline, and needs SciPy.
    numSurrogates : int
    alpha : float, optional
        Standard deviation of the noise of "seasonal"; a fifth of the data's range by default.
    smooth : float
        Smoothing factor of its spline.
    outputFile : str, optional
        Also write the frame there as CSV.

    Returns
    -------
    DataFrame
        The time, ``column_1``, ``column_2``, ...; rounded to 8 digits. Of random origin in each call.

    Raises
    ------
    InputError
        An argument cannot be used.
    """
    data = frames.frame(dataFrame, "SurrogateData")
    if not isinstance(column, str) or column not in data.columns:
        raise InputError(f"SurrogateData: column={column!r} is no column of the dataFrame")
    x = frames.doubles(data[column], "SurrogateData")
    if numSurrogates < 1:
        raise InputError(f"SurrogateData: numSurrogates={numSurrogates}; at least 1 is needed")
    room("SurrogateData: numSurrogates", (numSurrogates, len(x)))
    kind = method.lower()
    if kind in _METHODS:
        drawn = surrogate(x, _METHODS[kind], n=numSurrogates)
        if kind == "ebisuzaki":  # pyEDM gives each the data's own standard deviation, and takes the mean out
            spread = np.nanstd(x) / np.nanstd(drawn, axis=1, keepdims=True)
            drawn = (drawn - np.nanmean(drawn, axis=1, keepdims=True)) * spread
    elif kind == "seasonal":
        drawn = _seasonal(x, numSurrogates, alpha, smooth)
    else:
        raise InputError(f"SurrogateData: method={method!r}; 'ebisuzaki', 'random_shuffle' or 'seasonal' is needed")
    pandas = frames.pandas()
    table = pandas.DataFrame(drawn.T, columns=[f"{column}_{i + 1}" for i in range(numSurrogates)]).round(8)
    frame = data.iloc[:, [0]].reset_index(drop=True).join(table)
    if outputFile:
        frame.to_csv(outputFile, index=False)
    return frame


def _seasonal(x: Any, n: int, alpha: float | None, smooth: float) -> Any:
    from ...errors import MissingExtraError

    try:
        from scipy.interpolate import UnivariateSpline  # type: ignore[import-untyped, unused-ignore]
    except ImportError as error:
        raise MissingExtraError("method='seasonal' needs the package 'scipy': pip install scipy") from error
    for name, value in (("alpha", alpha), ("smooth", smooth)):
        if value is not None and value < 0:
            raise InputError(f"SurrogateData: {name}={value}; a number of at least 0 is needed")
    if len(x) < _LEAST or not np.isfinite(x).all():
        raise InputError(f"SurrogateData: method='seasonal' needs {_LEAST} rows at least, and no gaps")
    spline = UnivariateSpline(np.arange(len(x)), x)
    spline.set_smoothing_factor(smooth)
    trend = spline(np.arange(len(x)))
    rng = np.random.default_rng()
    size = np.ptp(x) / 5 if alpha is None else alpha
    return np.array([trend + rng.permutation(x - trend) + rng.normal(0, size, len(x)) for _ in range(n)])
