"""What simplex projection returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...io.optional import pandas_for
from ...io.result import Result


@dataclass(frozen=True, repr=False)
class SimplexResult(Result):
    """Simplex projection of one series; one entry per embedded query row t = (E-1)*tau, ..., n-1.

    Of groups the entries are those of each group in turn.

    Attributes
    ----------
    time : ndarray
        Row number t + Tp that is predicted; of groups, counted within the group.
    observed : ndarray of float64
        Value there, NaN outside the series.
    predicted, variance : ndarray of float64
        Weighted mean of the neighbours' targets, and the weighted variance around it; NaN where there is no neighbour.
    rho, mae, rmse : float
        Pearson correlation (NaN for fewer than 3 pairs or zero variance), mean absolute error, root mean square error.
    group : ndarray of numbers or text, or None
        Label of each entry's group.
    dates : ndarray or None
        The times that the data have for these rows, continued beyond their ends; None where they have none.
    name : str
        What is predicted.
    skill : float
        The measure that was asked for; rho by default.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> result = pyedmcl.simplex(network.values[:, 0], E=3)
    >>> round(result.rho, 2)
    0.99
    >>> result.time[:2].tolist()  # the state of row 2 is the first one, and predicts row 3
    [3, 4]
    >>> result.to_frame().columns.tolist()
    ['time', 'observed', 'predicted', 'variance']
    """

    row_column: ClassVar = "time"

    time: NDArray[np.int_]
    observed: NDArray[np.float64]
    predicted: NDArray[np.float64]
    variance: NDArray[np.float64]
    rho: float
    mae: float
    rmse: float
    E: int
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)
    group: NDArray[Any] | None = None
    dates: NDArray[Any] | None = field(default=None, repr=False)
    name: str = ""
    skill: float = float("nan")

    def to_frame(self) -> Any:
        """A pandas DataFrame with columns (group,) time, observed, predicted, variance; the time as in the data."""
        columns = {} if self.group is None else {"group": self.group}
        columns |= {name: getattr(self, name) for name in ("time", "observed", "predicted", "variance")}
        columns["time"] = self.time if self.dates is None else self.dates
        return pandas_for("to_frame()").DataFrame(columns)

    def plot(self, path: str | None = None) -> Any:
        """Observed against predicted over time; saved to ``path`` if given. Needs matplotlib."""
        from ...plot import predictions

        return predictions(self, path)
