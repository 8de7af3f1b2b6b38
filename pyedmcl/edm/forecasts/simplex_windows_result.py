"""What simplex projection within windows returns: skill over time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...io.optional import pandas_for
from ...io.result import Result


@dataclass(frozen=True, repr=False)
class WindowedForecast(Result):
    """Simplex projection within each window.

    Attributes
    ----------
    rho, mae, rmse : ndarray (n_windows,)
    skill : ndarray (n_windows,)
        The measure that was asked for; rho by default.
    predicted, observed, variance : ndarray (n_windows, n)
        As of :class:`SimplexResult`: of each row of the window from the first on that has all its lags.
    E : int
    starts, width, time
        As of :class:`WindowedMap`.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> result = pyedmcl.simplex(network.values[:, 0], E=3, windows=(200, 100))
    >>> result.time.tolist(), bool((result.rho > 0.9).all())
    ([99.5, 199.5, 299.5], True)
    >>> result.to_frame().columns.tolist()
    ['start', 'time', 'rho', 'mae', 'rmse']
    """

    row_column: ClassVar = "time"

    rho: NDArray[np.float64]
    mae: NDArray[np.float64]
    rmse: NDArray[np.float64]
    predicted: NDArray[np.float64]
    observed: NDArray[np.float64]
    variance: NDArray[np.float64]
    skill: NDArray[np.float64]
    E: int
    starts: NDArray[np.int_]
    width: int
    time: NDArray[Any]
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def to_frame(self) -> Any:
        """A pandas DataFrame with a row for each window: start, time, rho, mae, rmse."""
        columns = {"start": self.starts, "time": self.time, "rho": self.rho, "mae": self.mae, "rmse": self.rmse}
        return pandas_for("to_frame()").DataFrame(columns)

    def curves(self) -> dict[str, NDArray[Any]]:
        """Skill over time."""
        return {f"E = {self.E}": self.rho}

    def plot(self, path: str | None = None) -> Any:
        """Skill over time; saved to ``path`` if given. Needs matplotlib."""
        from ...plot.windows import skill_over_time

        return skill_over_time(self, path)
